"""Pinning plans as columns beside the plan, naming them, and taking them away."""

from __future__ import annotations

from collections.abc import Callable

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.comparison import Column
from capacity_tui.tui.shown.fields import PINS_KEY
from capacity_tui.tui.store import TAKEN
from capacity_tui.tui.view import Document
from capacity_tui.tui.widgets.prompt import Ask


class PlanPins:
    """Changes what stands beside the plan; each change is an edit that can be undone.

    Args:
        session: what every screen works with.
        ask: asks for a text at the bottom.
        explain: goes to where the number under the cursor comes from.
    """

    def __init__(self, session: Session, ask: Ask, explain: Callable[[], object]) -> None:
        self._session = session
        self._store = session.store
        self._ask = ask
        self._explain = explain
        self.commands: Commands = {"pin.toggle": self.toggle, "pin.rename": self.rename, "plans.enter": self.enter}

    def toggle(self) -> None:
        """Pin the plan of the chosen column, or take a pinned one away."""
        document, column = self._chosen()
        if document is None or column is None:
            return
        if column.is_pinned:
            self._change(lambda: document.unpinned(column.mode), f"{column.mode} is gone; u brings it back")
            return
        before = set(document.pins())
        if self._change(lambda: document.pinned(column.mode)) and self._store.document is not None:
            name = next(name for name in self._store.document.pins() if name not in before)
            self._session.say(f"{column.head} is pinned as {name}: R renames it, P on it takes it away")

    def enter(self) -> None:
        """Take a pinned plan over as the plan; go to the explanation of any other."""
        column = self._store.column
        if column is None or not column.is_pinned:
            self._explain()
            return
        document, column = self._chosen()
        if document is None or column is None:
            return
        self._store.choose("")
        self._session.change_to(document.taken(column.mode), TAKEN)
        self._session.say(f"{column.mode} is the plan now: u brings the one before back")

    def rename(self) -> None:
        """Ask for another name of the chosen column, which is pinned."""
        document, column = self._chosen()
        if document is None or column is None:
            return
        if not column.is_pinned:
            self._session.say("only pinned columns have names of yours: P pins, c chooses", "warn")
            return

        def accept(text: str) -> str:
            new = text.strip()
            comparison = self._store.comparison
            if new != column.mode and comparison is not None and comparison.column(new) is not None:
                return "another column is called so"
            try:
                after = document.renamed(column.mode, new)
            except CapacityError as error:
                return f"{error.title} ({error.hint})" if error.hint else error.title
            self._store.choose(new)
            self._session.change_to(after, PINS_KEY)
            return ""

        self._ask("Name of the column", column.mode, accept)

    def _chosen(self) -> tuple[Document | None, Column | None]:
        """Return the plan and the chosen column; say why there are none."""
        document, column = self._store.document, self._store.column
        if document is None or column is None or self._store.is_stale:
            self._session.say("there are no numbers of this plan yet", "warn")
            return None, None
        return document, column

    def _change(self, changed: Callable[[], Document], message: str = "") -> bool:
        """Take up a changed plan, and say why where there is none."""
        try:
            after = changed()
        except CapacityError as error:
            self._session.say(f"{error.title}: {error.hint or error.detail}", "bad")
            return False
        self._session.change_to(after, PINS_KEY)
        if message:
            self._session.say(message)
        return True
