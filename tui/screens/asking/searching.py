"""Asking for plans in a thread: one search at a time, and what it was asked about."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual.dom import DOMNode

from capacity_tui.tui.messages import Asked, Searched
from capacity_tui.tui.requests import Request
from capacity_tui.tui.session import Session

if TYPE_CHECKING:
    from capacity_tui.tui.shown.found import Question
    from capacity_tui.tui.view import Document

Begin: TypeAlias = "Callable[[Document, Mapping[str, str]], Question]"
"""Returns the question about a plan: what the user said, and what makes sense at once for the rest."""


class Searching:
    """Keeps the question, and has it answered anew when it or the plan changes.

    A search goes on while another view is shown, unless the plan changes: then its answer would be of no use.

    Args:
        session: what every screen works with.
        asker: the screen that the answers go to.
        begin: returns the question about a plan.

    Attributes:
        question: what is asked; None before it is known.
        is_running: whether a search is under way.
        was_stopped: whether the last one was stopped before its end.
    """

    SUBJECT: ClassVar[str] = "search"

    def __init__(self, session: Session, asker: DOMNode, begin: Begin) -> None:
        self._begin = begin
        self._session = session
        self._asker = asker
        self._stop = threading.Event()
        self._said: Mapping[str, str] = {}
        self._answered: list[Document] = []
        self.question: Question | None = None
        self.is_running = False
        self.was_stopped = False

    @property
    def is_current(self) -> bool:
        """Whether the rows are those of the plan: it is the one that was asked about, or has taken up one of them."""
        return self._session.store.document in self._answered

    def follow(self) -> bool:
        """Ask about the plan as it is now; return whether that is anything new."""
        if self._session.store.document is None or self.is_current:
            return False
        self._ask(None)
        return True

    def edit(self, key: str, text: str) -> None:
        """Ask otherwise.

        Raises:
            CapacityError: the text makes no sense there; the question stays.
        """
        if self.question is None:
            return
        self.question = self.question.edited(key, text)
        self._said = self.question.said
        self._ask(self.question)

    def take_asked(self, event: Asked) -> None:
        """Take up the question as it was understood."""
        self.question = event.question

    def take_up(self, document: Document) -> None:
        """Keep the rows for what the plan has become with one of them."""
        self._answered.append(document)

    def forget(self) -> None:
        """Take no answer for one about the plan as it is."""
        self._answered = []

    def stop(self) -> bool:
        """Stop searching, and keep the best so far; return whether there was anything to stop."""
        if not self.is_running or self._stop.is_set():
            return False
        self._stop.set()
        self.was_stopped = True
        return True

    def give_up(self) -> None:
        """Search no more for a plan that is not there any more."""
        self._stop.set()
        self._session.cancel(self._asker, self.SUBJECT)
        self.is_running = False

    def ended(self) -> None:
        """Note that the search has ended."""
        self.is_running = False

    def _ask(self, question: Question | None) -> None:
        document = self._session.store.document
        if document is None:
            return
        self._stop.set()
        stop = self._stop = threading.Event()
        self._answered, self.is_running, self.was_stopped = [document], True, False
        self._session.ask(self._asker, self.SUBJECT, self._work(document, question, stop))

    def _work(
        self, document: Document, question: Question | None, stop: threading.Event
    ) -> Callable[[Request], Searched]:
        said = self._said

        def work(request: Request) -> Searched:
            asked = question or self._begin(document, said)
            request.answer(Asked(document, asked))

            def is_stopped() -> bool:
                return stop.is_set() or request.cancelled.is_set()

            found = asked.answer(lambda so_far: request.answer(Searched(so_far)), is_stopped)
            return Searched(found, is_last=True)

        return work
