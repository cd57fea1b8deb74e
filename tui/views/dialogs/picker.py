"""Pick one of many, also with what the plan would be with each: estimated in a thread while the list is open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.fuzzy import FuzzySearch
from textual.screen import ModalScreen
from textual.widgets import Input

from capacity_tui.engine.record import dataclass
from capacity_tui.tui.actions import dialog_bindings
from capacity_tui.tui.requests import Fault, Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.comparison import ORDERS, Trial, best_of, is_called
from capacity_tui.tui.shown.results import Choice
from capacity_tui.tui.text import Line, Span, clip, left, line, list_row, marked
from capacity_tui.tui.widgets.head import mark_of
from capacity_tui.tui.widgets.lines import GAP, ClosesOnce, Lines, fitted
from capacity_tui.tui.widgets.prompt import Entry

_TITLE_WIDTH = 30
_COUNTED = re.compile(r"\d+\s*[x×]\s*\S.*", re.IGNORECASE)
_FILES = {".yaml", ".yml", ".json", ".gguf"}


@dataclass(frozen=True, slots=True)
class Typed:
    """Text that is an answer as it stands, without being in the list."""

    hint: str  # how it is written, for the line below the list
    matches: Callable[[str], bool]  # whether a text is one


PATH = Typed("a path", lambda text: any(mark in text for mark in "/\\~") or Path(text).suffix in _FILES)
COUNTED = Typed("8xH100-SXM", lambda text: _COUNTED.fullmatch(text) is not None)


class Picker(ModalScreen[str | None], ClosesOnce[str | None]):
    """Shows what there is, best match first; returns the id, or what was typed where that is an answer itself."""

    BINDINGS: ClassVar[list[BindingType]] = dialog_bindings("picker")

    def __init__(
        self,
        session: Session,
        title: str,
        read: Callable[[], tuple[Choice, ...]],
        current: str = "",
        typed: Typed | None = None,
    ) -> None:
        super().__init__()
        self._session = session
        self._title = title
        self._read = read
        self._current = current
        self._typed = typed
        self._choices: tuple[Choice, ...] = ()
        self._matches: list[Choice] = []
        self._cursor = 0
        self._message = "reading…"
        self._is_read = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as frame:
            frame.border_title = Content(self._title)
            instead = f", or type {self._typed.hint}" if self._typed else ""
            frame.border_subtitle = Content(f"type to filter{instead}, enter accepts, esc cancels")
            yield Entry("filter")
            yield Lines()

    def on_mount(self) -> None:
        entry = self.query_one(Entry)
        entry.focus()
        if left := self._session.left.pop(self._title, ""):
            entry.offer(left)
        self._session.ask(self, "catalogue", lambda _: self._read(), self._take_choices, failed=self._show_failure)

    def _take_choices(self, choices: tuple[Choice, ...]) -> None:
        self._choices, self._is_read = choices, True
        typed = self.query_one(Entry).value
        self._filter(typed)
        ids = [choice.id for choice in self._matches]
        self._cursor = ids.index(self._current) if self._current in ids and not typed else 0
        self.show_lines()
        if self.is_answered:
            self.take()

    def _show_failure(self, fault: Fault) -> None:
        self.is_answered, self._message = False, fault.in_short
        self.show_lines()

    @on(Input.Changed)
    def filter_choices(self, event: Input.Changed) -> None:
        self._filter(event.value)
        self._cursor = 0
        self.show_lines()

    @on(Input.Submitted)
    def take(self) -> None:
        """Return the choice under the cursor; while they are read, once they are there."""
        self.is_answered = not self._is_read
        if self._matches:
            self.dismiss(self._matches[self._cursor].id)

    def on_click(self) -> None:
        self.query_one(Entry).focus()

    def action_leave(self) -> None:
        """Pick nothing; what was typed is there again the next time."""
        self._session.left[self._title] = self.query_one(Entry).value
        self.dismiss(None)

    def action_move(self, offset: int) -> None:
        self._cursor = max(0, min(self._cursor + offset, len(self._matches) - 1))
        self.show_lines()

    def _filter(self, text: str) -> None:
        words = text.split()
        if not words:
            self._matches = list(self._choices)
            return
        search = FuzzySearch()
        scored = []
        for choice in self._choices:
            candidate = f"{choice.id} {choice.title}"
            scores = [search.match(word, candidate)[0] for word in words]
            if all(scores):
                scored.append((sum(scores), choice))
        self._matches = [choice for _, choice in sorted(scored, key=lambda pair: -pair[0])]
        typed = text.strip()
        if self._typed and self._typed.matches(typed) and typed not in [choice.id for choice in self._matches]:
            self._matches.insert(0, Choice(typed, typed, "as typed"))
        self._message = "nothing matches"

    def show_lines(self) -> None:
        lines = self.query_one(Lines)
        width = lines.size.width
        if not self._matches:
            lines.show([line(Span(self._message, "dim"))])
            return
        shown = [self._line(choice, index, width) for index, choice in enumerate(self._matches)]
        head = self._head(width)
        above = [] if head is None else [head]
        at = self._cursor + len(above)
        lines.show([*above, *shown], range(at if self._cursor else 0, at + 1), pinned=len(above))

    def _head(self, width: int) -> Line | None:  # noqa: ARG002 - for lists with columns
        return None

    def _line(self, choice: Choice, index: int, width: int) -> Line:
        titled = min(max(_TITLE_WIDTH, width // 3), width)
        role = "best" if choice.id == self._current else "value"
        return list_row(index == self._cursor, choice.title, choice.detail, titled, width, role)


_TITLE = 28
_NAMES = "source"
_COLUMNS = (("memory", 18), ("time", 15), ("cost", 11), ("price", 11), (_NAMES, 14))
_LEAST_DETAIL = 8
_LISTED = "as listed"
_AT_ONCE = 4  # Rows that are shown together, so that a slow line is not kept busy


class TrialPicker(Picker):
    """A picker whose rows say whether the plan fits with them, what it needs, and what an hour costs."""

    BINDINGS: ClassVar[list[BindingType]] = dialog_bindings("trials")

    def __init__(
        self,
        session: Session,
        title: str,
        read: Callable[[], tuple[Choice, ...]],
        attempt: Callable[[str], Trial],
        current: str = "",
        typed: Typed | None = None,
        order: str = "",
    ) -> None:
        super().__init__(session, title, read, current, typed)
        self._attempt = attempt
        self._trials: dict[str, Trial] = {}
        self._best: dict[str, str] = {}
        self._order = order or _LISTED
        self._wanted: tuple[str, ...] = ()
        self._is_trying = False

    def on_mount(self) -> None:
        self.query_one(".dialog").add_class("-wide")
        self._say_order()

    def _take_choices(self, choices: tuple[Choice, ...]) -> None:
        """Try one row after another once they are known and in sight."""
        super()._take_choices(choices)
        self.call_after_refresh(self._want)

    def _take_trials(self, trials: dict[str, Trial]) -> None:
        """Show what came in; nothing more does after an empty answer."""
        if not trials:
            self._is_trying = False
            self._want()
            return
        self._trials |= trials
        self._best = best_of(self._trials)
        self._sort()
        self.show_lines()

    def action_sort(self) -> None:
        names = (_LISTED, *ORDERS)
        self._order = names[(names.index(self._order) + 1) % len(names)]
        self._say_order()
        self._cursor = 0
        self._filter(self.query_one(Entry).value)
        self.show_lines()
        self._want()

    def _say_order(self) -> None:
        """Say above the list how it is sorted: the head of its columns has no room for that everywhere."""
        order = self._order if self._order == _LISTED else f"by {self._order}"
        self.query_one(".dialog").border_title = Content(f"{self._title}, {order} (tab sorts)")

    def action_move(self, offset: int) -> None:
        super().action_move(offset)
        self._want()

    def _filter(self, text: str) -> None:
        super()._filter(text)
        self._sort()
        self.call_after_refresh(self._want)

    def _sort(self) -> None:
        """Put what was tried into the wanted order, those called as typed first; the cursor stays on its row."""
        if self._order == _LISTED:
            return
        here = self._matches[self._cursor].id if self._cursor and self._cursor < len(self._matches) else ""
        by = ORDERS[self._order]
        words = self.query_one(Entry).value.casefold().split()
        known = {choice.id: by(self._trials[choice.id]) for choice in self._matches if choice.id in self._trials}
        self._matches.sort(
            key=lambda choice: (not is_called(choice.id, words), choice.id not in known, known.get(choice.id, ()))
        )
        self._cursor = next((index for index, choice in enumerate(self._matches) if choice.id == here), 0)

    # In a thread

    def _try_rows(self, request: Request[dict[str, Trial]]) -> dict[str, Trial]:
        """Try rows until all that are wanted are known, or nobody waits; return none at the end."""
        done = set(self._trials)
        batch: dict[str, Trial] = {}
        while not request.cancelled.is_set():
            name = next((row for row in self._left() if row not in done), None)
            if name is not None:
                done.add(name)
                batch[name] = self._attempt(name)
            if batch and (name is None or len(batch) >= _AT_ONCE):
                request.answer(batch)
                batch = {}
            if name is None:
                break
        return {}

    def _left(self) -> Iterator[str]:
        """Yield ids of rows, those in sight first; an order other than the list's needs all of them."""
        yield from self._wanted
        if self._order != _LISTED:
            yield from (choice.id for choice in tuple(self._matches))
            yield from (choice.id for choice in self._choices)

    # Lines

    def _want(self) -> None:
        """Note which rows are in sight, and have them tried where nothing is at it."""
        lines = self.query_one(Lines)
        seen = self._matches[max(lines.top - 1, 0) : lines.top + lines.size.height]
        self._wanted = tuple(choice.id for choice in seen)
        if not self._is_trying and any(row not in self._trials for row in self._left()):
            self._is_trying = True
            self._session.ask(self, "try", self._try_rows, self._take_trials, failed=self._show_failure)

    def _titled(self, choice: Choice) -> tuple[Span, Span]:
        """Return the name of a choice, and at its right what it is best at."""
        best = self._best.get(choice.id, "")
        room = _TITLE - len(best)
        return (
            Span(left(choice.title, room), "best" if choice.id == self._current else "value"),
            Span(f"{best} ", "good"),
        )

    def _head(self, width: int) -> Line | None:
        names = "".join(_cell(name, name, size) for name, size in _columns_in(width))
        return line(Span(" " * (_TITLE + 4), "dim"), Span(names, "dim"))

    def _line(self, choice: Choice, index: int, width: int) -> Line:
        trial = self._trials.get(choice.id)
        mark = mark_of(trial.verdict) if trial else Span("…", "dim")
        used = _TITLE + 4
        shown = [Span(f"{mark.text} ", mark.role), *self._titled(choice)]
        detail = choice.detail
        if trial and trial.reason:
            detail = trial.reason
        else:
            for name, size in _columns_in(width):
                text = getattr(trial, name) if trial else choice.price if name == "price" else ""
                shown.append(Span(_cell(text, name, size), "value"))
                used += size
        room = max(width - used, 0)
        shown.append(Span(left(detail if room >= _LEAST_DETAIL else "", room), "dim"))
        return marked(index == self._cursor, *shown)


def _cell(text: str, name: str, size: int) -> str:
    """Return a value of a column, and the gap behind it: numbers end below each other, names begin so."""
    clipped = clip(text, size - GAP)
    return left(clipped if name == _NAMES else f"{clipped:>{size - GAP}}", size)


def _columns_in(width: int) -> tuple[tuple[str, int], ...]:
    """Return the columns that there is room for, dropped from the right."""
    columns = fitted([size - GAP for _, size in _COLUMNS], range(1, len(_COLUMNS) + 1), width - _TITLE - 4 - GAP)
    return tuple(_COLUMNS[column] for column in columns)
