"""What every view has in common: three lines at the top, one at the bottom, and the way back to the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from capacity_tui.tui.actions import Commanded, bindings
from capacity_tui.tui.session import Session
from capacity_tui.tui.terminal.text import Line
from capacity_tui.tui.widgets.bars import Footer
from capacity_tui.tui.widgets.guarded import Guarded
from capacity_tui.tui.widgets.head import AnswerStrip, NoteLine, Tabs

ShowText: TypeAlias = Callable[[str, Callable[[int], list[Line]]], object]
"""Shows a text over the view: its title, and what builds its lines for a width."""


class ViewScreen(Commanded, Guarded, Screen[None]):
    """A full screen over the plan; what it shows stands between the lines that all views share.

    What it has no command for, such as undoing, the plan's own view does, which is always there.

    Args:
        session: what every screen works with.
    """

    VIEW: ClassVar[str] = ""
    """Its name in ``VIEWS``."""
    AUTO_FOCUS: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = bindings("view")

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.topic = self.VIEW
        self.footer = Footer(session, self.VIEW)
        self._note = NoteLine(session)
        self.commands = {"view.back": self.back}

    def compose(self) -> ComposeResult:
        """Put the body between the lines that all views share."""
        yield Tabs(self.session, self.VIEW)
        yield AnswerStrip(self.session)
        yield self._note
        yield from self.body()
        yield self.footer

    def body(self) -> ComposeResult:
        """Yield what the view shows."""
        raise NotImplementedError

    def back(self) -> None:
        """Go back to the plan."""
        self.session.show_view("plan")

    def show_text(self, title: str, build: Callable[[int], list[Line]]) -> None:
        """Show a text over the view.

        Args:
            title: what it is about.
            build: returns its lines for a width.
        """
        from capacity_tui.tui.screens.dialogs.text_dialog import TextDialog

        self.app.push_screen(TextDialog(title, build, self.session.copy))

    def choose_view(self) -> None:
        """List the views, and take the key of one."""
        self.footer.list_views()

    def action_perform(self, name: str) -> None:
        """Do what an action asks for, here or in the plan's own view."""
        hearing = self if name in self.commands else self.app.screen_stack[0]
        if isinstance(hearing, Commanded):
            hearing.commands[name]()

    def on_key(self, event: events.Key) -> None:
        """Stop saying what was said when the next key comes; while the views are listed, take the key for one."""
        self._note.clear_status()
        if self.footer.lists_views:
            event.stop()
            event.prevent_default()
            self.footer.list_views(False)
            if view := self.footer.view_of(event.key):
                self.session.show_view(view)
