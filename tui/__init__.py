"""The terminal's side of capacity-tui: the screen and the command line."""

import sys
from types import TracebackType

_tell = sys.excepthook


def _tell_mistakes(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say nothing of Ctrl-C while the program is loading: nothing is there yet that could end."""
    if not issubclass(kind, KeyboardInterrupt):
        _tell(kind, error, trace)


sys.excepthook = _tell_mistakes
