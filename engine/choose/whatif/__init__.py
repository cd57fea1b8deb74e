"""One plan with something changed."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
