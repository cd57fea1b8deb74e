"""Lines one types into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from rich.highlighter import Highlighter
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Paste
from textual.message import Message
from textual.widgets import Input

from capacity_tui.tui.actions import dialog_bindings
from capacity_tui.tui.text import Line, Span, clip, fit, fold, line
from capacity_tui.tui.widgets.lines import Guarded, Lines

_MOST_LINES = 4  # That what is refused takes at the most

Accept = Callable[[str], str]  # Takes what was typed; returns why it is refused, or an empty text when all is well
Follow = Callable[[str | None], str]
"""Is told what is typed so far, and None when the question is withdrawn; returns what to say of it."""

Ask = Callable[[str, str, Accept], None]  # Asks a question, with the text to start from and what takes the answer
AskFollowed = Callable[[str, str, Accept, Follow], None]  # The same, with what follows the typing


class Prompt(Guarded, Vertical):
    """Asks a question, and asks on while the answer is refused."""

    BINDINGS: ClassVar[list[BindingType]] = dialog_bindings("prompt")

    class Closed(Message):
        """The question is answered or withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self._line = line()
        self._accept: Accept = str
        self._question = ""
        self._follow: Follow | None = None
        self._left: dict[str, str] = {}
        self._start = ""

    def compose(self) -> ComposeResult:
        yield Lines()
        yield Entry()

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def ask(self, question: str, value: str, accept: Accept, follow: Follow | None = None) -> None:
        """Ask something else."""
        self._accept, self._question, self._follow, self._start = accept, question, follow, value
        self.add_class("-open")
        entry = self.query_one(Entry)
        left = self._left.pop(question, "")
        entry.value = value
        entry.cursor_position = len(value)
        if left:
            entry.offer(left)
        # At once, so that what is typed next is not taken for commands.
        self.screen.set_focus(entry)
        self._show(line(Span(f" {question}", "label"), Span("   enter accepts, esc cancels", "dim")))

    def on_resize(self) -> None:
        self._show(self._line)

    @on(Input.Changed)
    def follow(self, event: Input.Changed) -> None:
        """Say what comes of what is typed so far, where somebody follows that."""
        event.stop()
        if self._follow is not None and self.is_open:
            comment = self._follow(event.value)
            self._show(line(Span(f" {self._question}  ", "label"), Span(comment, "value")))

    @on(Input.Submitted)
    def take(self, event: Input.Submitted) -> None:
        """Hand the answer over; close unless it is refused."""
        event.stop()
        refusal = self._accept(event.value.strip())
        if refusal:
            self._show(line(Span(f" ✗ {refusal}", "bad")))
        else:
            self.action_close()

    def action_withdraw(self) -> None:
        """Ask no longer, keep what was typed for the next time, and have whoever followed the typing go back."""
        typed = self.query_one(Entry).value
        if typed.strip() and typed != self._start:
            self._left[self._question] = typed
        if self._follow is not None:
            self._follow(None)
        self.action_close()

    def action_close(self) -> None:
        """Ask no longer."""
        self.remove_class("-open")
        self.post_message(self.Closed())

    def _show(self, content: Line) -> None:
        """Show a line above the entry; what is refused takes as many as it needs: its end says what is allowed."""
        self._line = content
        width = max(self.size.width, 1)
        shown = [fit(content, width)]
        if len(content.spans) == 1:
            (span,) = content.spans
            first, *rest = fold(span.text, width)
            # Of what goes on and on, such as a name of thousands of letters, the beginning and the end are told.
            parts = [first, *rest] if len(rest) < _MOST_LINES else [clip(f"{first}…", width), *rest[1 - _MOST_LINES :]]
            shown = [line(span._replace(text=part)) for part in parts]
        lines = self.query_one(Lines)
        lines.styles.height = len(shown)
        lines.show(shown)


class Entry(Guarded, Input):
    """An input of one row.

    Args:
        joins_lines: whether all lines of what is pasted count, as one; else the first.
    """

    def __init__(self, placeholder: str = "", *, joins_lines: bool = False) -> None:
        super().__init__(placeholder=placeholder, compact=True)
        self.cursor_blink = False
        self._joins_lines = joins_lines

    def on_paste(self, event: Paste) -> None:
        if not self._joins_lines:
            return
        event.prevent_default().stop()
        self.replace(" ".join(event.text.replace("\\\n", "\n").split()), *self.selection)

    def offer(self, text: str) -> None:
        """Offer what was typed and left: the next letter replaces it, any other key keeps it."""
        self.value = text
        self.select_all()

    def underline(self, spans: Iterable[tuple[int, int]]) -> None:
        """Underline what was not understood: where it begins and ends."""
        self.highlighter = _Underlined(tuple(spans))
        self.refresh()


class _Underlined(Highlighter):
    """Underlines parts of a text, each from its first character to the one after its last."""

    def __init__(self, spans: tuple[tuple[int, int], ...]) -> None:
        self._spans = spans

    def highlight(self, text: Text) -> None:
        for start, end in self._spans:
            text.stylize("underline", start, end)
