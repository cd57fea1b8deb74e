"""What becomes of rows that are other plans: applied to the plan, or pinned alongside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from textual.dom import DOMNode

from capacity_tui.tui.requests import Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.fields import PINS_KEY
from capacity_tui.tui.view import Document


class PlanRow(Protocol):
    """A row that is another plan."""

    @property
    def change(self) -> Mapping[str, object]:
        """What makes it of the plan."""

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells it from other rows."""


class PlanRows(Protocol):
    """A table of them.

    Attributes:
        taken: key of the row that was taken over last.
        is_old: whether the rows are those of another plan.
    """

    taken: tuple[tuple[str, str], ...]
    is_old: bool

    @property
    def row(self) -> PlanRow | None:
        """The row under the cursor."""

    def chosen(self) -> Sequence[PlanRow]:
        """Return the rows that are marked, or the one under the cursor."""

    def repaint(self) -> None:
        """Show them as they are now."""


class RowActions:
    """Changes the plan by rows of the table; each change is one edit that can be undone.

    Args:
        session: what every screen works with.
        asker: the screen that answers go to.
        table: has the rows.
        keep: keeps the rows for what a plan has become.
    """

    def __init__(self, session: Session, asker: DOMNode, table: PlanRows, keep: Callable[[Document], None]) -> None:
        self._session = session
        self._asker = asker
        self._table = table
        self._keep = keep

    def take(self) -> None:
        """Take the row under the cursor over into the plan."""
        row, document = self._table.row, self._session.store.document
        if row is None or document is None or self._table.is_old:
            return
        changed = document.changed(row.change)
        self._keep(changed)
        if changed == document:
            self._session.say("that is the plan already")
            return
        self._table.taken = row.key
        self._table.repaint()
        self._session.change_to(changed, next(iter(row.change)))
        self._session.say("taken over into the plan; u takes it back, esc shows the plan", "good")

    def pin(self) -> None:
        """Put the rows that are marked, or the one under the cursor, beside the plan."""
        rows, document = self._table.chosen(), self._session.store.document
        if not rows or document is None or self._table.is_old:
            return

        def work(_: Request[Document]) -> Document:
            after = document
            for row in rows:
                after = after.pinned_with(row.change)
            return after

        self._session.ask(self._asker, "pin", work, partial(self._take_pinned, document))

    def _take_pinned(self, before: Document, after: Document) -> None:
        """Take up the plan with others beside it, unless it was edited meanwhile."""
        if before != self._session.store.document:
            self._session.say("the plan has changed meanwhile; P pins it now", "warn")
            return
        names = [name for name in after.pins() if name not in before.pins()]
        self._keep(after)
        self._session.change_to(after, PINS_KEY)
        are = "is" if len(names) == 1 else "are"
        self._session.say(f"{', '.join(names)} {are} pinned beside the plan; u takes that back", "good")
