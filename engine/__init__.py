"""What capacity-tui knows and computes, without any terminal: scripts use the names of this door, the rest is below.

Results show themselves as tables in notebooks: what writes those is loaded when a notebook asks.
"""

from capacity_tui.engine.door import open_door
from capacity_tui.engine.printable import show_with


def _as_html(result: object) -> str:
    from capacity_tui.engine.present import as_html  # noqa: PLC0415 - loaded where a notebook asks for it

    return as_html(result)


open_door(__name__, __file__)
show_with(_as_html)
