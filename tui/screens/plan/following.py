"""What the keys of panel 4 do: following a number to those it was made from, back again, and pictures of it all."""

from __future__ import annotations

from collections.abc import Callable

from textual.dom import DOMNode

from capacity_tui.engine.api import followed
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.messages import Explained, Pictured
from capacity_tui.tui.screens.plan.why import Why, explain_lines, picture_text
from capacity_tui.tui.session import Session
from capacity_tui.tui.terminal.text import Line, Span, line

ShowText = Callable[[str, Callable[[int], list[Line]]], object]
"""Shows a text over the panels: its title, and what builds its lines for a width."""


class Following:
    """Opens what an explanation is made from.

    Args:
        session: what every screen works with.
        screen: who the answers go to.
        why: shows where a number comes from.
        show: shows a text over the panels.
        leave: called where there is nothing to go back to.
    """

    def __init__(
        self, session: Session, screen: DOMNode, why: Why, show: ShowText, leave: Callable[[], object]
    ) -> None:
        self._session = session
        self._screen = screen
        self._why = why
        self._show = show
        self._leave = leave
        self.commands: Commands = {
            "why.follow": self.follow,
            "why.back": self.back,
            "why.pictures": self.ask_for_pictures,
        }

    def follow(self) -> None:
        """Open the number under the cursor; on any other line the whole explanation."""
        explanation, entry = self._why.explanation, self._why.entry
        if explanation is None:
            return
        if entry is None:
            ascii_only = self._ascii_only
            self._show(explanation.title, lambda width: explain_lines(explanation, width, ascii_only))
        elif entry.key:
            self._explain(entry.key)
        else:
            self._why.open(followed(explanation, entry))

    def back(self) -> None:
        """Go back to the number before, or leave the panel."""
        if not self._why.back():
            self._leave()

    def ask_for_pictures(self) -> None:
        """Have the pictures of the chosen column drawn."""
        document, column = self._session.store.document, self._session.store.column
        if document is None or column is None or self._session.store.is_stale:
            self._session.say("there are no numbers of this plan yet", "warn")
            return
        self._session.ask(
            self._screen, "pictures", lambda _: Pictured(f"Pictures of {column.mode}", document.pictures(column.mode))
        )

    def show_pictures(self, event: Pictured) -> None:
        """Show pictures over the panels."""
        ascii_only = self._ascii_only

        def build(width: int) -> list[Line]:
            lines: list[Line] = []
            for title, picture in event.pictures:
                lines += [line(Span(title, "heading")), *picture_text(picture, width, ascii_only), line()]
            return lines

        self._show(event.title, build)

    @property
    def _ascii_only(self) -> bool:
        return self._session.app.has_class("-ascii")

    def _explain(self, key: str) -> None:
        document, column = self._session.store.document, self._session.store.column
        if document is not None and column is not None and not self._session.store.is_stale:
            self._session.ask(
                self._screen, "follow", lambda _: Explained(document.explain(column.mode, key), is_followed=True)
            )
