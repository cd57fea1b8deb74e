"""The chosen column in pictures: memory over a step, time, and the roofline."""

from __future__ import annotations

from textual.dom import DOMNode

from capacity_tui.tui.actions import Commands
from capacity_tui.tui.messages import Pictured
from capacity_tui.tui.screens.plan.why import picture_text
from capacity_tui.tui.screens.view_screen import ShowText
from capacity_tui.tui.session import Session
from capacity_tui.tui.terminal.text import Line, Span, line


class Picturing:
    """Has pictures drawn in a thread, and shows them over the panels.

    Args:
        session: what every screen works with.
        screen: who the answers go to.
        show: shows a text over the panels.
    """

    def __init__(self, session: Session, screen: DOMNode, show: ShowText) -> None:
        self._session = session
        self._screen = screen
        self._show = show
        self.commands: Commands = {"why.pictures": self.ask_for_pictures}

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
        ascii_only = self._session.app.has_class("-ascii")

        def build(width: int) -> list[Line]:
            lines: list[Line] = []
            for title, picture in event.pictures:
                lines += [line(Span(title, "heading")), *picture_text(picture, width, ascii_only), line()]
            return lines

        self._show(event.title, build)
