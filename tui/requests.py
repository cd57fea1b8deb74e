"""What screens ask of threads: every request has a number, and an older answer never wins."""

from __future__ import annotations

import threading

from textual.dom import DOMNode
from textual.message import Message


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
