"""The line at the bottom that asks for one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from capacity_tui.tui.terminal.text import Line, Span, line
from capacity_tui.tui.widgets.entry import Entry
from capacity_tui.tui.widgets.guarded import Guarded
from capacity_tui.tui.widgets.lines import Lines

Accept = Callable[[str], str]
"""Takes what was typed; returns why it is refused, or an empty text when all is well."""
Ask = Callable[[str, str, Accept], None]
"""Asks a question, with the text to start from and what takes the answer."""


class Prompt(Guarded, Vertical):
    """Asks a question, and asks on while the answer is refused."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Cancel")]

    class Closed(Message):
        """The question is answered or withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self._line = line()
        self._accept: Accept = str

    def compose(self) -> ComposeResult:
        """Put the question above the input."""
        yield Lines()
        yield Entry()

    @property
    def is_open(self) -> bool:
        """Whether something is asked."""
        return self.has_class("-open")

    def ask(self, question: str, value: str, accept: Accept) -> None:
        """Ask something else.

        Args:
            question: what is asked.
            value: the text to start from.
            accept: called with each answer.
        """
        self._accept = accept
        self.add_class("-open")
        entry = self.query_one(Entry)
        entry.value = value
        entry.cursor_position = len(value)
        # At once, so that what is typed next is not taken for commands.
        self.screen.set_focus(entry)
        self._show(line(Span(f" {question}", "label"), Span("   enter takes it, esc cancels", "dim")))

    def on_resize(self) -> None:
        """Show the question once there is room for it."""
        self._show(self._line)

    @on(Input.Submitted)
    def take(self, event: Input.Submitted) -> None:
        """Hand the answer over; close unless it is refused."""
        event.stop()
        refusal = self._accept(event.value.strip())
        if refusal:
            self._show(line(Span(f" ✗ {refusal}", "bad")))
        else:
            self.action_close()

    def action_close(self) -> None:
        """Ask no longer."""
        self.remove_class("-open")
        self.post_message(self.Closed())

    def _show(self, content: Line) -> None:
        self._line = content
        self.query_one(Lines).show([content])
