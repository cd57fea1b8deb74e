"""Finding a field or a row by a part of its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from capacity_tui.tui.actions import Commands
from capacity_tui.tui.screens.plan.comparison import ComparisonTable
from capacity_tui.tui.screens.plan.field_list import FieldList
from capacity_tui.tui.session import Session
from capacity_tui.tui.widgets.prompt import Ask


class Finding:
    """Walks through what a text is found in.

    Args:
        session: what every screen works with.
        ask: asks for a text at the bottom.
        panel: returns the panel that is searched.
    """

    def __init__(self, session: Session, ask: Ask, panel: Callable[[], FieldList | ComparisonTable]) -> None:
        self._session = session
        self._ask = ask
        self._panel = panel
        self._text = ""
        self.commands: Commands = {
            "find.start": self.start,
            "find.next": partial(self.next, 1),
            "find.previous": partial(self.next, -1),
        }

    def start(self) -> None:
        """Ask for a part of a name."""
        self._ask("Find a field or a row", self._text, self._accept)

    def next(self, direction: int) -> None:
        """Go to the next line that was sought."""
        if not self._text:
            self.start()
            return
        panel = self._panel()
        names = [label.lower() for label in panel.labels()]
        is_named = any(self._text in name for name in names)
        more = panel.texts() if isinstance(panel, FieldList) and not is_named else []
        labels = [text.lower() for text in more] or names
        count = len(labels)
        order = [(panel.cursor + direction * step) % count for step in range(1, count + 1)]
        for index in order:
            if self._text in labels[index]:
                panel.move_to(index)
                return
        self._session.say(f"nothing called {self._text} in {panel.TITLE}")

    def _accept(self, text: str) -> str:
        self._text = text.lower()
        if self._text:
            self.next(1)
        return ""
