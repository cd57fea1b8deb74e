"""A scrollable text over the screen, which can be copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from capacity_tui.tui.screens.dialogs.moves import MOVES
from capacity_tui.tui.terminal.glyphs import to_ascii
from capacity_tui.tui.terminal.text import Line
from capacity_tui.tui.widgets.guarded import ClosesOnce
from capacity_tui.tui.widgets.lines import Lines


class TextDialog(ModalScreen[None], ClosesOnce[None]):
    """Shows lines that are laid out for the width there is.

    Args:
        title: what stands in the frame.
        build: returns the lines for a width.
        copy: called with the plain text when it is to be copied.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1", "dismiss", "Close"),
        *MOVES,
        Binding("pageup", "scroll_page(-1)", "One page up"),
        Binding("pagedown", "scroll_page(1)", "One page down"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, title: str, build: Callable[[int], list[Line]], copy: Callable[[str], None]) -> None:
        super().__init__()
        self._title = title
        self._build = build
        self._copy = copy

    def compose(self) -> ComposeResult:
        """Put the lines into a frame."""
        with Vertical(classes="dialog") as frame:
            ascii_only = self.app.has_class("-ascii")
            frame.border_title = Content(to_ascii(self._title) if ascii_only else self._title)
            frame.border_subtitle = Content("j k scroll, y copy, esc close")
            yield TextLines(self._build)

    def action_move(self, offset: int) -> None:
        """Scroll by lines."""
        self.query_one(TextLines).scroll_lines(offset)

    def action_scroll_page(self, direction: int) -> None:
        """Scroll by pages."""
        lines = self.query_one(TextLines)
        lines.scroll_lines(direction * max(lines.size.height - 1, 1))

    def on_mouse_scroll_down(self) -> None:
        """Scroll down."""
        self.action_move(3)

    def on_mouse_scroll_up(self) -> None:
        """Scroll up."""
        self.action_move(-3)

    def action_copy(self) -> None:
        """Copy all lines."""
        self._copy("\n".join(content.plain.rstrip() for content in self.query_one(TextLines).lines) + "\n")
        self.dismiss()


class TextLines(Lines):
    """Lines that are built anew for each width."""

    def __init__(self, build: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._build = build

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        self.show(self._build(self.size.width))
