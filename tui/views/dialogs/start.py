"""The start prompt: one line that says what is wanted, what was understood of it, and plans to begin with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.record import dataclass
from capacity_tui.tui.actions import dialog_bindings
from capacity_tui.tui.requests import Fault
from capacity_tui.tui.session import Session
from capacity_tui.tui.settings import RecentPlan, recent_plans, remember_plan, shortened
from capacity_tui.tui.text import Line, Span, clip, line, list_row, to_ascii, wrap
from capacity_tui.tui.widgets.lines import ClosesOnce, Lines
from capacity_tui.tui.widgets.prompt import Entry

if TYPE_CHECKING:
    from capacity_tui.tui.shown.results import Understood
    from capacity_tui.tui.view import Document

T = TypeVar("T")
_WANTED = "I want to train · fine-tune · LoRA · QLoRA · serve · classical ML"
_PLACEHOLDER = "llama-3.1-70b lora 8xh100 4k 50M"
_GUIDE = "Type a model, a task and hardware, in any order; sequence length, tokens and batch may follow."
_KEYS = "enter plans it, tab completes, esc goes to the plan"
_LEAVES_OUT = "enter again plans without: {}"
_MOST_GUESSES = 2
_SLACK = 2
_NO_ROW = -1
_LINE = "line"  # What a line that was typed and left is kept under


@dataclass(frozen=True, slots=True)
class _Start:
    """One row of what may be begun with: a line, a file, the name of an example, or a view."""

    text: str
    kind: str
    title: str
    words: str
    group: str


_LOOKS = (
    _Start("run", "view", "a run beside its prediction", "space r at any time", "Look around"),
    _Start("cluster", "view", "a cluster and its queue", "space l at any time", "Look around"),
)
"""What the first start offers to see."""


class StartPrompt(ModalScreen[None], ClosesOnce[None]):
    """Asks what is wanted; what is entered becomes the plan."""

    BINDINGS: ClassVar[list[BindingType]] = dialog_bindings("start")

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._starts: tuple[_Start, ...] = ()
        self._understood: Understood | None = None
        self._refusal = ""
        self._refused = ""
        self._cursor = _NO_ROW

    def compose(self) -> ComposeResult:
        """Put the line above what was understood, and what one may begin with below."""
        with Vertical(classes="dialog", id="start") as frame:
            frame.border_title = Content(to_ascii(_WANTED) if self.app.has_class("-ascii") else _WANTED)
            frame.border_subtitle = Content(_KEYS)
            yield Entry(_PLACEHOLDER, joins_lines=True)
            yield Lines()

    def on_mount(self) -> None:
        entry = self.query_one(Entry)
        entry.focus()
        if left := self._session.left.pop(_LINE, ""):
            entry.offer(left)
        self._ask("starts", lambda _: self._read_starts(), self._take_starts)

    def on_click(self) -> None:
        self.query_one(Entry).focus()

    def _ask(
        self, subject: str, work: Callable[[object], T], show: Callable[[T], object], *, in_turn: bool = False
    ) -> None:
        self._session.ask(self, subject, work, show, failed=self._show_failure, in_turn=in_turn)

    def _take_starts(self, starts: tuple[_Start, ...]) -> None:
        self._starts = starts
        self.show_lines()

    @on(Input.Changed)
    def read(self, event: Input.Changed) -> None:
        """Have what was typed read while it is typed."""
        self._cursor, self._refusal = _NO_ROW, ""
        self._tell_keys(_KEYS)
        self._have_read(event.value)
        self.show_lines()

    def _take_understood(self, understood: Understood, *, is_empty: bool, completes: bool) -> None:
        """Show what a line was taken for, and complete the word under its cursor where that is wanted."""
        self._understood = None if is_empty else understood
        self.query_one(Entry).underline(understood.misread)
        if completes:
            self._complete(understood)
        self.show_lines()

    @on(Input.Submitted)
    def take(self, event: Input.Submitted) -> None:
        """Plan the line, or what the cursor stands on; nothing at all goes to the plan."""
        event.stop()
        if self._cursor != _NO_ROW:
            self._begin(self._starts[self._cursor])
        elif event.value.strip():
            self._plan(event.value)
        else:
            self.dismiss(None)

    def _take_plan(self, document: Document, assumed: tuple[str, ...]) -> None:
        if not self.is_active:
            return
        self._session.request(self.app, "open")  # whatever else was being opened is no longer wanted
        self._session.take_up(document, None, assumed)
        self.dismiss(None)

    def _show_failure(self, fault: Fault) -> None:
        """Say why a line makes no sense; what was typed stays."""
        self.is_answered = False
        self._refusal = "; ".join(filter(None, (": ".join(filter(None, (fault.title, fault.detail))), fault.hint)))
        self._refused = self.query_one(Entry).value
        without = self._understood.meaningless if self._understood else ()
        self._tell_keys(_LEAVES_OUT.format(" ".join(without)) if without else _KEYS)
        self.show_lines()

    def action_leave(self) -> None:
        """Go to the plan; what was typed is there again the next time."""
        self._session.left[_LINE] = self.query_one(Entry).value
        self.dismiss(None)

    def _tell_keys(self, text: str) -> None:
        self.query_one("#start").border_subtitle = Content(clip(text, self.size.width - 8))

    def action_move(self, offset: int) -> None:
        self._cursor = max(_NO_ROW, min(self._cursor + offset, len(self._starts) - 1))
        self.show_lines()

    def action_complete(self) -> None:
        """Complete the word under the cursor, or take a row into the line to change it."""
        entry = self.query_one(Entry)
        if self._cursor != _NO_ROW and self._starts[self._cursor].kind == "line":
            entry.value = self._starts[self._cursor].text
            entry.cursor_position = len(entry.value)
            return
        engine = self._session.engine_if_loaded
        if engine is not None:
            self._complete(engine.read_line(entry.value, entry.cursor_position))
        else:
            self._have_read(entry.value, completes=True)

    def _complete(self, understood: Understood) -> None:
        entry = self.query_one(Entry)
        if understood.suggestions:
            entry.value = understood.suggestions[0].line
            entry.cursor_position = understood.suggestions[0].cursor

    def _have_read(self, text: str, *, completes: bool = False) -> None:
        cursor = self.query_one(Entry).cursor_position

        show = partial(self._take_understood, is_empty=not text.strip(), completes=completes)
        self._ask("read line", lambda _: self._session.engine.read_line(text, cursor), show, in_turn=True)

    def _read_starts(self) -> tuple[_Start, ...]:
        engine = self._session.engine
        return (
            *(_LOOKS if not self._session.guide.is_over else ()),
            *(_recent(plan) for plan in recent_plans()),
            *(_Start(entry.id, "line", entry.title, entry.detail, "Try") for entry in engine.catalogue("line")),
            *(_Start(entry.id, "plan", entry.title, entry.detail, "Examples") for entry in engine.catalogue("profile")),
        )

    def _begin(self, start: _Start) -> None:
        if start.kind == "view":
            self.dismiss(None)
            self.call_later(self._session.show_view, start.text)
            return
        if start.kind == "line":
            self._plan(start.text)
            return
        self._session.open_named(start.text)
        self.dismiss(None)

    def _plan(self, text: str) -> None:
        document = self._session.store.document
        leaves_out = self._understood is not None and bool(self._understood.meaningless) and text == self._refused

        def work(_: object) -> tuple[Document, tuple[str, ...]]:
            engine = self._session.engine
            made, assumed = engine.plan_of_line(text, document, leaves_out=leaves_out)
            with suppress(CapacityError):  # a full disk is no reason not to plan
                remember_plan(RecentPlan(text.strip(), False, engine.read_line(text, 0).words))
            return made, assumed

        self._refusal, self.is_answered = "", True
        self._ask("plan line", work, lambda planned: self._take_plan(*planned))

    # Lines

    def show_lines(self) -> None:
        lines = self.query_one(Lines)
        width = lines.size.width
        if not width:
            return
        above = self._about(width)
        shown, at = list(above), len(above)
        group = ""
        for index, start in enumerate(self._starts):
            if start.group != group:
                group = start.group
                shown.append(line(Span(group, "heading")))
            if index == self._cursor:
                at = len(shown)
            shown.append(self._row(start, index == self._cursor, width))
        lines.show(shown, range(at, at + 1) if self._cursor != _NO_ROW else range(1))

    def _about(self, width: int) -> list[Line]:
        """Return what was understood of the line, always of the same height so that nothing jumps."""
        understood = self._understood
        lines: list[Line] = []
        if understood is None:
            lines += [line(Span(text, "dim")) for text in wrap(_GUIDE, width)]
        else:
            words = understood.words or "nothing yet"
            lines.append(line(Span("understood: ", "label"), Span(clip(words, width - 12), "value")))
            lines += [
                line(Span("assumed: ", "label"), Span(clip(text, width - 9), "dim"))
                for text in understood.guesses[:_MOST_GUESSES]
            ]
            if understood.suggestions:
                names = " · ".join(entry.word for entry in understood.suggestions)
                lines.append(line(Span("tab: ", "label"), Span(clip(names, width - 5), "dim")))
        # The last word may still be on its way to something known.
        refusal = self._refusal or (
            understood.faults[0] if understood and understood.faults and not understood.suggestions else ""
        )
        if refusal:
            lines = [*lines[:_MOST_GUESSES], *(line(Span(text, "bad")) for text in wrap(f"✗ {refusal}", width)[:2])]
        return [*lines, *[line()] * (_MOST_GUESSES + _SLACK - len(lines)), line()]

    def _row(self, start: _Start, here: bool, width: int) -> Line:
        titled = min(max(len(_PLACEHOLDER) + 2, width // 2), width - 1)
        return list_row(here, start.title, start.words, titled, width)


def _recent(plan: RecentPlan) -> _Start:
    if not plan.is_file:
        return _Start(plan.text, "line", plan.text, plan.words, "Recent")
    path = Path(plan.text)
    return _Start(plan.text, "plan", path.name, f"{plan.words} · {shortened(path.parent)}", "Recent")
