"""Questions that threads answer, each with a number: an older answer never wins. Mistakes are answers too."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

from textual.dom import DOMNode
from textual.message import Message

from capacity_tui.engine.errors import CapacityError, while_wanted
from capacity_tui.engine.files import make_folder, state_folder
from capacity_tui.engine.record import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Fault:
    """Something did not work."""

    title: str
    hint: str
    detail: str

    @property
    def in_short(self) -> str:
        """Title and remedy in one line."""
        return ": ".join(part for part in (self.title, self.hint or self.detail) if part)


class Request(Generic[T]):
    """Something that a thread is asked for.

    Args:
        newest: the number of the requester's newest request on each subject.
        show: called with an answer, as what follows by the requester, never in a thread.
        failed: called with what went wrong.
        drop: called with an outdated answer, to let go of what it holds.
    """

    def __init__(
        self,
        requester: DOMNode,
        subject: str,
        newest: dict[str, int],
        show: Callable[[T], object] | None,
        failed: Callable[[Fault], object],
        drop: Callable[[T], object] | None,
    ) -> None:
        # what is asked for; a newer request makes the answers to older ones worthless
        self.subject = subject
        self.number = newest[subject] = newest.get(subject, 0) + 1  # counts the requester's requests on the subject
        self.cancelled = threading.Event()  # set when nobody waits for an answer any more
        self.show, self.failed, self.drop = show, failed, drop
        self._requester = requester
        self._newest = newest

    @property
    def is_newest(self) -> bool:
        """Whether nothing newer was asked for on the subject."""
        return self.number == self._newest[self.subject]

    def while_wanted(self, work: Callable[[], T]) -> T | None:
        """Return what some estimating comes to; None once nobody waits for it any more, as soon as that is so."""
        return while_wanted(work, lambda: not self.cancelled.is_set())

    def answer(self, value: T) -> None:
        """Send an answer, one of any number; may be called in any thread."""
        self._requester.post_message(Answered(self, value))

    def fail(self, fault: Fault) -> None:
        """Send what went wrong; may be called in any thread."""
        self._requester.post_message(Answered(self, fault))


class Answered(Message, Generic[T], bubble=False):
    """The one message of threads: an answer to a request, or the fault in its place."""

    def __init__(self, request: Request[T], value: T | Fault) -> None:
        super().__init__()
        self._request = request
        self._value = value

    def deliver(self) -> None:
        """Hand the answer to who asked, unless something newer was asked for meanwhile."""
        request, value = self._request, self._value
        if isinstance(value, Fault):
            if request.is_newest:
                request.failed(value)
        elif (handler := request.show if request.is_newest else request.drop) is not None:
            handler(value)


TITLE = "internal error"
_MOST_BYTES = 1 << 20  # A file of mistakes that has grown beyond this begins anew


def mistakes_file() -> Path:
    return state_folder() / "mistakes.txt"


def fault_of(error: BaseException) -> Fault:
    """Return what to say about an error: its own words if it was foreseen, else where it is written down."""
    if isinstance(error, CapacityError):
        title = ": ".join(part for part in (str(error.place), error.title) if part)
        return Fault(title, error.hint, error.detail)
    trace = "".join(traceback.format_exception(error))
    path = _written_down(trace)
    hint = "your plan is kept, ! shows the details" + (f"; logged to {path}" if path else "")
    return Fault(TITLE, hint, trace)


@contextmanager
def reported(failed: Callable[[Fault], object]) -> Iterator[None]:
    """Report whatever goes wrong in a thread, foreseen or not, instead of raising it."""
    try:
        yield
    except (Exception, SystemExit) as error:  # code of other packages may try to end the program
        failed(fault_of(error))


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
