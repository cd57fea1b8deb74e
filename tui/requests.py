"""Requests that threads answer: each has a number, and an older answer never wins; mistakes of the program included."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from textual.dom import DOMNode
from textual.message import Message

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import make_folder, state_folder


class Request:
    """Something that a thread is asked for.

    Args:
        asker: who the answers go to.
        subject: what is asked for.
        newest: the number of the asker's newest request on each subject.

    Attributes:
        subject: what is asked for; a newer request of the asker makes the answers to older ones worthless.
        number: counts the asker's requests on the subject.
        cancelled: set when nobody waits for an answer any more.
    """

    def __init__(self, asker: DOMNode, subject: str, newest: dict[str, int]) -> None:
        self.subject = subject
        self.number = newest[subject] = newest.get(subject, 0) + 1
        self.cancelled = threading.Event()
        self._asker = asker
        self._newest = newest

    @property
    def is_newest(self) -> bool:
        """Whether nothing newer was asked for on the subject."""
        return self.number == self._newest[self.subject]

    def answer(self, answer: Answer) -> None:
        """Send an answer, one of any number; may be called in any thread."""
        answer.request = self
        self._asker.post_message(answer)


class Answer(Message):
    """What a thread found out. An outdated answer reaches no handler of a ``Guarded`` screen or widget.

    Attributes:
        request: what was asked for, None where nothing was.
    """

    request: Request | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether something newer was asked for meanwhile."""
        return self.request is not None and not self.request.is_newest

    def drop(self) -> None:
        """Let go of what the answer holds; called in place of handlers when it is outdated."""


@dataclass(eq=False)
class Failed(Answer):
    """Something did not work."""

    title: str
    hint: str
    detail: str

    @property
    def in_short(self) -> str:
        """Title and remedy in one line."""
        return ": ".join(part for part in (self.title, self.hint or self.detail) if part)


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
