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

from capacity_tui.tui.text import Span, line
from capacity_tui.tui.widgets.lines import Lines

Answer = Callable[[str], str]
"""Takes what was typed; returns why it is refused, or an empty text when all is well."""


class Prompt(Vertical):
    """Asks a question, and asks on while the answer is refused.

    Args:
        question: what is asked.
        value: the text to start from.
        answer: called with each answer.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Cancel")]

    class Closed(Message):
        """The prompt is gone."""

    def __init__(self, question: str, value: str, answer: Answer) -> None:
        super().__init__()
        self._question = question
        self._value = value
        self._answer = answer

    def compose(self) -> ComposeResult:
        """Put the question above the input."""
        yield Lines()
        entry = Input(self._value, compact=True)
        entry.cursor_blink = False
        yield entry

    def on_mount(self) -> None:
        """Start typing."""
        self.query_one(Input).focus()

    def on_resize(self) -> None:
        """Show the question once there is room for it."""
        if not self.query_one(Lines).lines:
            self._show(Span(f" {self._question}", "label"), Span("   enter takes it, esc cancels", "dim"))

    @on(Input.Submitted)
    def take(self, event: Input.Submitted) -> None:
        """Hand the answer over; close unless it is refused."""
        event.stop()
        refusal = self._answer(event.value.strip())
        if refusal:
            self._show(Span(f" ✗ {refusal}", "bad"))
        else:
            self.action_close()

    def action_close(self) -> None:
        """Go away."""
        self.post_message(self.Closed())
        self.remove()

    def _show(self, *spans: Span) -> None:
        self.query_one(Lines).show([line(*spans)])
