"""Mistakes of the program itself: told in one line and written down in full."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import make_folder, state_folder
from capacity_tui.tui.messages import Failed

TITLE = "the program made a mistake"
_MOST_BYTES = 1 << 20
"""A file of mistakes that has grown beyond this begins anew."""


def mistakes_file() -> Path:
    """Return where mistakes are written down."""
    return state_folder() / "mistakes.txt"


def failure(error: BaseException) -> Failed:
    """Return what to say about an error: its own words if it was foreseen, else where it is written down."""
    if isinstance(error, CapacityError):
        title = ": ".join(part for part in (str(error.place), error.title) if part)
        return Failed(title, error.hint, error.detail)
    trace = "".join(traceback.format_exception(error))
    path = _written_down(trace)
    hint = "the plan is kept, ! shows what happened" + (f"; it is written down in {path}" if path else "")
    return Failed(TITLE, hint, trace)


@contextmanager
def reported(tell: Callable[[Failed], object]) -> Iterator[None]:
    """Tell whatever goes wrong in a thread, foreseen or not, instead of raising it."""
    try:
        yield
    except (Exception, SystemExit) as error:  # code of other packages may try to end the program
        tell(failure(error))


def _written_down(trace: str) -> Path | None:
    """Add a traceback to the file of mistakes; return the file, None where it cannot be written."""
    path = mistakes_file()
    try:
        make_folder(path.parent)
        is_full = path.exists() and path.stat().st_size > _MOST_BYTES
        with path.open("w" if is_full else "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')}\n{trace}\n")
    except (OSError, CapacityError):
        return None
    return path
