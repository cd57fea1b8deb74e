"""The view that searches: a question about the plan, the rows that answer it, and a picture of what they weigh."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.screens.asking.found_table import FoundTable
from capacity_tui.tui.screens.asking.screen import AskingScreen
from capacity_tui.tui.screens.find.front import Front
from capacity_tui.tui.screens.find.rules import nothing_found, rule_lines
from capacity_tui.tui.session import Session

if TYPE_CHECKING:
    from capacity_tui.tui.shown.found import Found


class FindScreen(AskingScreen):
    """Finds plans around the current one.

    Args:
        session: what every screen works with.
    """

    VIEW = "find"
    BINDINGS: ClassVar[list[BindingType]] = bindings("find")

    def __init__(self, session: Session) -> None:
        front = Front(session.glyphs)
        super().__init__(session, FoundTable(), front, lambda document, said: document.question(said))
        self._front = front
        self.commands = {**self.commands, "found.rules": self._show_rules}

    def nothing_found(self, found: Found) -> str:
        """Return what excluded most."""
        return nothing_found(found)

    def show_row(self) -> None:
        """Mark the row under the cursor in the picture."""
        shown, row = self.table.shown, self.table.row
        self._front.show_found(self.table.found, shown, shown[self.table.cursor] if row is not None else None)

    def _show_rules(self) -> None:
        """Show what rules excluded."""
        found = self.table.found
        self.show_text("What was excluded, and by what", lambda width: rule_lines(found, width))
