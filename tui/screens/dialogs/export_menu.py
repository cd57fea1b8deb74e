"""What a plan can leave the program as: files of it, a command, reports; each with a look at what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from capacity_tui.tui.messages import Exported, Failed
from capacity_tui.tui.screens.dialogs.moves import MOVES
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.exported import Export
from capacity_tui.tui.terminal.text import Line, Span, clip, fold, left, line
from capacity_tui.tui.widgets.guarded import ClosesOnce
from capacity_tui.tui.widgets.lines import Lines

_TITLE_WIDTH = 26


class ExportMenu(ModalScreen[Export | None], ClosesOnce[Export | None]):
    """Shows the forms a plan can be written in; returns the one that is to be written.

    Args:
        session: what every screen works with.
        title: which plan it is.
        read: returns the forms; runs in a thread.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Cancel"),
        *MOVES,
        Binding("enter", "write", "Write"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, session: Session, title: str, read: Callable[[], tuple[Export, ...]]) -> None:
        super().__init__()
        self._session = session
        self._title = title
        self._read = read
        self._exports: tuple[Export, ...] = ()
        self._cursor = 0
        self._message = "writing…"
        self._when_read: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        """Put the list above the text."""
        with Vertical(classes="dialog") as frame:
            frame.border_title = Content(self._title)
            frame.border_subtitle = Content("enter writes it, y copies it, esc cancels")
            yield Lines(id="exports")
            yield Lines(id="export-text")

    def on_mount(self) -> None:
        """Have everything written that there is to choose from."""
        self._session.ask(self, "exports", lambda _: Exported(self._read()))

    def on_resize(self) -> None:
        """Lay the list out once its size is known."""
        self.call_after_refresh(self._show)

    @on(Exported)
    def take_exports(self, event: Exported) -> None:
        """Show what can be chosen."""
        self._exports = event.exports
        self.query_one("#exports", Lines).styles.height = len(event.exports) + 1
        self.call_after_refresh(self._show)
        if self._when_read is not None:
            self._when_read()

    @on(Failed)
    def show_failure(self, event: Failed) -> None:
        """Say why there is nothing to write."""
        event.stop()
        self._when_read, self.is_answered, self._message = None, False, event.in_short
        self._show()

    def action_move(self, offset: int) -> None:
        """Move the cursor."""
        self._cursor = max(0, min(self._cursor + offset, len(self._exports) - 1))
        self._show()

    def action_write(self) -> None:
        """Return what is under the cursor; while all of it is written, once it is there."""
        if self._exports:
            self.dismiss(self._exports[self._cursor])
        else:
            self._wait_to(self.action_write)

    def action_copy(self) -> None:
        """Copy what is under the cursor, which also goes to a file: a terminal may refuse."""
        if self._exports:
            chosen = self._exports[self._cursor]
            self._session.copy(chosen.text, chosen.name)
            self.dismiss(None)
        else:
            self._wait_to(self.action_copy)

    def _wait_to(self, act: Callable[[], None]) -> None:
        self._when_read, self.is_answered = act, True

    def _show(self) -> None:
        lines, text = self.query_one("#exports", Lines), self.query_one("#export-text", Lines)
        if not self._exports:
            lines.show([line(Span(self._message, "dim"))])
            return
        width = lines.size.width
        shown = [self._line(export, index, width) for index, export in enumerate(self._exports)]
        lines.show([*shown, line()], range(self._cursor, self._cursor + 1))
        parts = (part for whole in self._exports[self._cursor].text.splitlines() for part in fold(whole, width))
        text.show([line(Span(part, "dim")) for part in parts])

    def _line(self, export: Export, index: int, width: int) -> Line:
        room = max(width - _TITLE_WIDTH - 2, 0)
        return line(
            Span("▌" if index == self._cursor else " ", "accent"),
            Span(left(export.title, min(_TITLE_WIDTH, width)), "value"),
            " ",
            Span(left(clip(export.detail, room), room), "dim"),
            selected=index == self._cursor,
        )
