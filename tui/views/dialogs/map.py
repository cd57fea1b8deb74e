"""A map of two fields: a verdict for each pair of values, and one figure alongside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, TypeAlias

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from capacity_tui.engine.keys import Key
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import around
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.actions import Commands, dialog_bindings
from capacity_tui.tui.requests import Fault, Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.comparison import Trial, short_value, time_against
from capacity_tui.tui.shown.results import Choice, Field, Kind
from capacity_tui.tui.text import Line, Span, clip, left, line, right, wrap
from capacity_tui.tui.views.dialogs.picker import Picker
from capacity_tui.tui.widgets.head import mark_of, worded
from capacity_tui.tui.widgets.lines import ClosesOnce, Lines

Pair: TypeAlias = tuple[str, str]
Attempt: TypeAlias = Callable[[Pair, Sequence[Pair]], Iterator[tuple[Mapping[Pair, Trial], bool]]]
"""Tries the plan with pairs of values of two fields, by their keys; says of each answer whether it is the last word."""

_AROUND = 12  # Cells of the frame, the labels and a margin
_BELOW = 10  # Lines of the frame, the heads and the words below


class MapDialog(ModalScreen[Mapping[str, object] | None], ClosesOnce[Mapping[str, object] | None]):
    """Shows the map; returns the pair of values that is taken, as a change of the plan.

    Args:
        fields: numbers of the plan.
        keys: the fields across and down to begin with.
        values: returns the values around that of a field, so many each way, and which is its own.
        attempt: tries the plan; runs in a thread.
    """

    BINDINGS: ClassVar[list[BindingType]] = dialog_bindings("map")

    def __init__(
        self,
        session: Session,
        fields: Sequence[Field],
        keys: Pair,
        values: Callable[[Field, int], tuple[tuple[str, ...], int]],
        attempt: Attempt,
    ) -> None:
        super().__init__()
        self._session = session
        self._fields = {field.key: field for field in fields}
        self._keys = keys
        self._values = values
        self._attempt = attempt
        self._axes: tuple[Axis, Axis] | None = None
        self._cursor = (0, 0)
        self._shown = Shown.MEMORY
        self._trials: dict[Pair, Trial] = {}
        self._settled: frozenset[Pair] = frozenset()
        self._message = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as frame:
            frame.border_title = Content("Map of two fields")
            frame.border_subtitle = Content("enter apply, x y fields, tab memory or time, E picture")
            yield Lines()

    def on_mount(self) -> None:
        self.call_after_refresh(self._begin)

    def _take_cells(self, trials: Mapping[Pair, Trial], settled: bool) -> None:
        """Show what came in, and whether that is the last word on these pairs."""
        self._trials |= trials
        if settled:
            self._settled |= trials.keys()
        self.show_lines()

    def _show_failure(self, fault: Fault) -> None:
        self._message = fault.in_short
        self.show_lines()

    def action_move(self, across: int, down: int) -> None:
        if self._axes is not None:
            wanted = zip(self._cursor, (across, down), self._axes, strict=True)
            column, row = (max(0, min(at + by, len(axis.values) - 1)) for at, by, axis in wanted)
            self._cursor = column, row
            self.show_lines()

    def action_turn(self) -> None:
        self._shown = Shown.TIME if self._shown is Shown.MEMORY else Shown.MEMORY
        self.show_lines()

    def action_take(self) -> None:
        """Return the pair under the cursor, unless it cannot be."""
        if self._axes is None:
            return
        pair = self._map(self._axes).pair
        trial = self._trials.get(pair)
        if trial is not None and trial.verdict is Verdict.CANNOT_RUN:
            return
        self.dismiss(dict(zip(self._keys, pair, strict=True)))

    def action_export(self) -> None:
        from capacity_tui.tui.views.dialogs.export import export_pictures

        if self._axes is not None:
            export_pictures(self._session, "map", (("Map", map_file(self._map(self._axes))),))

    def action_pick(self, place: int) -> None:
        other = self._keys[1 - place]
        choices = tuple(Choice(key, field.label, field.group) for key, field in self._fields.items() if key != other)

        def picked(key: str | None) -> None:
            if key is not None:
                self._keys = (key, other) if place == 0 else (other, key)
                self._begin()

        title = "Field across" if place == 0 else "Field down"
        self.app.push_screen(Picker(self._session, title, lambda: choices, self._keys[place]), picked)

    def _begin(self) -> None:
        """Try the pairs of these two fields, those near the plan's own first."""
        size = self.app.size
        reach = (min(size.width, 84) - _AROUND) // CELL // 2, max(min((size.height - _BELOW) // 2, 4), 1)
        across, down = (
            Axis(self._fields[key], *self._values(self._fields[key], most))
            for key, most in zip(self._keys, reach, strict=True)
        )
        self._axes = across, down
        self._cursor = across.own, down.own
        self._trials, self._settled, self._message = {}, frozenset(), ""
        places = [(column, row) for row in range(len(down.values)) for column in range(len(across.values))]
        places.sort(key=lambda place: abs(place[0] - across.own) + abs(place[1] - down.own))
        pairs = [(across.values[column], down.values[row]) for column, row in places]
        keys, attempt = self._keys, self._attempt

        def work(request: Request[tuple[Mapping[Pair, Trial], bool]]) -> None:
            for answer in attempt(keys, pairs):
                if request.cancelled.is_set():
                    return
                request.answer(answer)

        self._session.ask(self, "map", work, lambda answer: self._take_cells(*answer), failed=self._show_failure)
        self.show_lines()

    def _map(self, axes: tuple[Axis, Axis]) -> PlanMap:
        return PlanMap(*axes, self._trials, self._settled, self._cursor, self._shown)

    def show_lines(self) -> None:
        """Lay the map out, and below it the pair under the cursor."""
        lines = self.query_one(Lines)
        if self._axes is None or not lines.size:
            return
        shown = map_lines(self._map(self._axes), lines.size.width)
        row = self._cursor[1] + 2
        lines.show([*shown, line(Span(self._message, "bad"))], range(row, row + 1), pinned=2)


CELL = 9
_LABEL = 10
_MANY = 10  # Times the memory there is, from where on nobody reads percents


class Shown(StrEnum):
    """What stands beside a verdict."""

    MEMORY = "memory"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Axis:
    """A field of the map."""

    field: Field
    values: tuple[str, ...]  # what it may be, in order, as it is typed
    own: int  # which of them the plan has


@dataclass(frozen=True, slots=True)
class PlanMap:
    """What is shown."""

    across: Axis  # the field whose values stand side by side
    down: Axis  # the field whose values stand below one another
    trials: Mapping[tuple[str, str], Trial]  # what the plan would be, by the values across and down
    settled: frozenset[tuple[str, str]]  # pairs for which all that is open was chosen anew
    cursor: tuple[int, int]  # place of the pair under the cursor, across and down
    shown: Shown  # what stands beside a verdict

    @property
    def pair(self) -> tuple[str, str]:
        return self.across.values[self.cursor[0]], self.down.values[self.cursor[1]]

    @property
    def own(self) -> Trial | None:
        return self.trials.get((self.across.values[self.across.own], self.down.values[self.down.own]))


def map_lines(shown: PlanMap, width: int) -> list[Line]:
    """Return a map as lines: heads, a line for each value down, and the pair under the cursor in words."""
    across, down = shown.across, shown.down
    first, last = _in_sight(len(across.values), shown.cursor[0], max((width - _LABEL) // CELL, 1))
    columns = range(first, last)
    heads = (Span(right(short_value(across.values[at]), CELL - 2) + "  ", _head(at, across)) for at in columns)
    lines = [
        line(Span(left("", _LABEL)), Span(clip(f" {across.field.label} →", width - _LABEL), "label")),
        line(Span(left(f"{down.field.label} ↓", _LABEL), "label"), *heads),
    ]
    for row, value in enumerate(down.values):
        cells = (_cell(shown, at, row) for at in columns)
        lines.append(line(Span(right(short_value(value), _LABEL - 2) + "  ", _head(row, down)), *cells))
    return [*lines, line(), *_words(shown, width)]


def map_file(shown: PlanMap) -> str:
    from capacity_tui.engine.present.pictures import Grid, grid_file

    def cell(column: int, row: int) -> tuple[str, str]:
        trial = shown.trials.get((shown.across.values[column], shown.down.values[row]))
        return ("dim", "…") if trial is None else (trial.verdict.tone, _figure(shown, trial))

    columns = range(len(shown.across.values))
    rows = tuple(
        (short_value(value), tuple(cell(column, row) for column in columns))
        for row, value in enumerate(shown.down.values)
    )
    title = f"{shown.shown.capitalize()}: {shown.across.field.label} across, {shown.down.field.label} down"
    heads = tuple(short_value(value) for value in shown.across.values)
    return grid_file(Grid(title, heads, rows, (shown.down.own, shown.across.own)))


def _in_sight(count: int, at: int, room: int) -> tuple[int, int]:
    """Return which columns are shown: all, or as many around the cursor as have room."""
    first = min(max(at - room // 2, 0), max(count - room, 0))
    return first, min(first + room, count)


def _head(at: int, axis: Axis) -> str:
    return "best" if at == axis.own else "label"


def _cell(shown: PlanMap, column: int, row: int) -> Span:
    """Return a cell: its verdict and figure, the plan's own in brackets, the one under the cursor behind a bar."""
    pair = shown.across.values[column], shown.down.values[row]
    trial = shown.trials.get(pair)
    is_own = (column, row) == (shown.across.own, shown.down.own)
    here = (column, row) == shown.cursor
    text, role = "…", "dim"
    if trial is not None:
        mark = mark_of(trial.verdict)
        role = f"{mark.role}-verdict" if pair in shown.settled else "dim"
        text = f"{mark.text}{_figure(shown, trial):>6}"
    start = "▌" if here else "[" if is_own else " "
    return Span(f"{start}{left(text, CELL - 2)}{']' if is_own else ' '}", "key" if here else role)


def _figure(shown: PlanMap, trial: Trial) -> str:
    if trial.verdict is Verdict.CANNOT_RUN:
        return ""
    if shown.shown is Shown.MEMORY:
        share = trial.share
        return "" if share is None else f"×{share:.0f}" if share >= _MANY else f"{share:.0%}".replace("%", " %")
    text = time_against(trial, shown.own)
    return text if cell_len(text) <= CELL - 3 else text.partition(" ")[0]


def _words(shown: PlanMap, width: int) -> list[Line]:
    """Return what the pair under the cursor is, and what it comes to."""
    names = (f"{shown.across.field.label} {shown.pair[0]}", f"{shown.down.field.label} {shown.pair[1]}")
    trial = shown.trials.get(shown.pair)
    lines = [line(Span(clip(", ".join(names), width), "best"))]
    if trial is None:
        return [*lines, line(Span("trying…", "dim"))]
    if trial.verdict is Verdict.CANNOT_RUN:
        words = worded(trial.verdict, f"{trial.verdict.words}: {trial.reason}").text
        return [*lines, *(line(Span(text, "bad")) for text in wrap(words, width))]
    verdict = worded(trial.verdict, trial.words)
    figures = " · ".join(text for text in (trial.memory, trial.time, trial.price) if text)
    if shown.pair not in shown.settled:
        lines.append(line(Span(clip("dim: open fields as they are now; recomputing", width), "dim")))
    lines.append(line(verdict, Span(clip(f"  {figures}", width - cell_len(verdict.text)), "value")))
    also = wrap(f"with {trial.also}", width, "  ") if trial.also else ()
    return [*lines, *(line(Span(text, "dim")) for text in also)]


_NUMBERS = (Kind.INTEGER, Kind.POWER_OF_TWO, Kind.NUMBER)

_USUAL = (
    *(
        Key.TRAINING_MICRO_BATCH,
        Key.INFERENCE_BATCH,
        Key.INFERENCE_CONCURRENCY,
        Key.INFERENCE_REQUEST_RATE,
        f"{Key.MODEL_SPEC}.n",
    ),
    *(Key.TRAINING_SEQ_LEN, Key.INFERENCE_PROMPT_TOKENS, f"{Key.MODEL_SPEC}.image_size", f"{Key.MODEL_SPEC}.p"),
    *(Key.TRAINING_GLOBAL_BATCH, Key.HARDWARE_DEVICES),
)
"""Fields that a map begins with, where the plan has them: the first two."""

_LEAST = 2


class FieldMap:
    """Opens the map of two fields."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = session.store
        self.commands: Commands = {"map.show": self.show}

    def show(self) -> None:
        numbers = self._session.numbers()
        if numbers is None:
            return
        document, _ = numbers
        fields = [field for field in document.fields() if not field.idle and field.kind in _NUMBERS]
        fields = [field for field in fields if self._values(field, 1)[0]]
        usual = [key for key in _USUAL if any(field.key == key for field in fields)]
        keys = list(dict.fromkeys((*usual, *(field.key for field in fields))))
        if len(keys) < _LEAST:
            self._session.say("this plan has no two numbers to map")
            return
        dialog = MapDialog(self._session, fields, (keys[0], keys[1]), self._values, document.trial_pairs)
        self._session.app.push_screen(dialog, self._take)

    def _take(self, change: Mapping[str, object] | None) -> None:
        if change is None:
            return
        refusal = self._session.apply(change)
        fields = () if self._store.document is None else self._store.document.fields()
        words = ", ".join(f"{field.label} {change[field.key]}" for field in fields if field.key in change)
        self._session.say(refusal or f"{words}: {{edit.undo}} undoes it", "bad" if refusal else "good")

    def _values(self, field: Field, reach: int) -> tuple[tuple[str, ...], int]:
        """Return the values around that of a field, and which is its own; none where it has none."""
        document, column = self._store.document, self._store.mode_column
        chosen = column.chosen.get(field.key) if column else None
        start = field.value if field.value is not None else chosen.value if chosen else None
        if document is None or start is None:
            return (), 0
        values = around(field, chosen, document.sizes(field.key), reach)
        return values, next((at for at, value in enumerate(values) if float(value) == start), 0)
