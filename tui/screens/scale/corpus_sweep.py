"""What the patterns would take with the values around that of a field of the corpus."""

from __future__ import annotations

from textual.dom import DOMNode

from capacity_tui.tui.messages import RowsTried
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.plan import sweeping
from capacity_tui.tui.screens.scale.corpus import CorpusFields
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.stored import Corpus
from capacity_tui.tui.shown.tried import Tried


class CorpusSweep:
    """Has the values around that of the field under the cursor tried, once the keys rest.

    Args:
        session: what every screen works with.
        screen: the screen that the answers go to.
        fields: the panel whose cursor says which field is meant.
    """

    SUBJECT = "sweep"

    def __init__(self, session: Session, screen: DOMNode, fields: CorpusFields) -> None:
        self._session, self._screen, self._fields = session, screen, fields
        self._asked: tuple[Corpus, str] | None = None

    def follow(self, corpus: Corpus | None) -> None:
        """Try the values around that of the field under the cursor, unless they are known."""
        field = self._fields.field
        if corpus is None or field is None or self._asked == (corpus, field.key):
            return
        self._asked = corpus, field.key
        values = self._fields.values_around()

        def work(request: Request) -> RowsTried | None:
            if not values or request.cancelled.wait(sweeping.SWEEP_AFTER_SECONDS):
                return None
            tried: dict[str, Tried] = {}
            for value in values:
                if request.cancelled.is_set():
                    return None
                tried[value] = corpus.tried(field.key, value)
            return RowsTried(tried)

        self._session.ask(self._screen, self.SUBJECT, work)

    def show(self, event: RowsTried) -> None:
        """Show what was tried."""
        self._fields.show_tried(tuple(event.tried), event.tried)
