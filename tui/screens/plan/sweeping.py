"""Other values of the field under the cursor: what the plan would be with each, and the largest with which it fits."""

from __future__ import annotations

from contextlib import suppress

from textual.dom import DOMNode

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.schema import stepped
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.messages import LimitFound, RowsTried
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.plan.field_list import FieldList
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.tried import Tried
from capacity_tui.tui.view import Field

SWEEP_AFTER_SECONDS = 0.15


class Sweeping:
    """Has the plan tried with other values of a field, once the cursor rests on it.

    Args:
        session: what every screen works with.
        screen: who the answers go to.
        fields: the panel whose cursor says which field is meant.
    """

    def __init__(self, session: Session, screen: DOMNode, fields: FieldList) -> None:
        self._session = session
        self._store = session.store
        self._screen = screen
        self._fields = fields
        self._asked: tuple[int, str, tuple[str, ...]] | None = None
        self.commands: Commands = {"value.limit": self.to_the_limit}
        fields.sizes = self._sizes
        session.answers.subscribe(screen, lambda _: self.follow())

    def follow(self) -> None:
        """Try the values around that of the field under the cursor, unless they are known, and its next steps ahead."""
        document, field = self._store.document, self._fields.field
        if document is None or field is None or self._store.is_stale:
            return
        values = self._fields.values_around()
        asked = (self._store.generation, field.key, values)
        if asked == self._asked:
            return
        self._asked = asked
        chosen, sizes = self._fields.chosen, document.sizes(field.key)
        steps = [stepped(field, direction, chosen=chosen, sizes=sizes) for direction in (1, -1)]

        def work(request: Request) -> RowsTried | None:
            if not values or request.cancelled.wait(SWEEP_AFTER_SECONDS):
                return None
            tried: dict[str, Tried] = {}
            for value in values:
                if request.cancelled.is_set():
                    return None
                tried[value] = document.tried(field.key, value)
            request.answer(RowsTried(tried))
            for text in steps:
                if text is None or request.cancelled.is_set():
                    continue
                with suppress(CapacityError):
                    document.foresee({field.key: text})
            return None

        self._session.ask(self._screen, "sweep", work)

    def show(self, event: RowsTried) -> None:
        """Show what was tried."""
        self._fields.show_tried(tuple(event.tried), event.tried)

    def to_the_limit(self) -> None:
        """Have the largest value of the field under the cursor found with which the plan fits."""
        # The fields are those of the plan itself, also while a pinned one is chosen.
        document, field, column = self._store.document, self._fields.field, self._store.mode_column
        if document is None or field is None or column is None:
            return
        self._session.say(f"looking for the limit of {field.label}…")
        generation = self._store.generation
        self._session.ask(
            self._screen, "limit", lambda _: LimitFound(generation, field.key, document.limit(column.mode, field.key))
        )

    def take_limit(self, event: LimitFound) -> None:
        """Take the value that was found, unless the plan has changed meanwhile."""
        limit, field = event.limit, next((f for f in self._described() if f.key == event.key), None)
        if event.generation != self._store.generation or field is None:
            return
        if limit.value is None:
            self._session.say(f"no value of {field.label} makes it fit", "warn")
            return
        refusal = self._session.change(event.key, str(limit.value))
        beyond = "the end of its range" if limit.beyond is None else f"{limit.beyond} breaks a limit"
        tight = ", tight" if limit.verdict is Verdict.TIGHT else ""
        self._session.say(refusal or f"{field.label} {limit.value}{tight}: {beyond}", "bad" if refusal else "good")

    def _described(self) -> tuple[Field, ...]:
        return () if self._store.document is None else self._store.document.fields()

    def _sizes(self, key: str) -> tuple[int, ...]:
        return () if self._store.document is None else self._store.document.sizes(key)
