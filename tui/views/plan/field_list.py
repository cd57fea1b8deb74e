"""Fields of a plan or a corpus as a list, and the keys that change the one under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.engine.units import format_count, format_number
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.shown.comparison import Chosen, Trial, short_value, time_against
from capacity_tui.tui.text import MOVED, Line, Span, clip, left, line, wrap
from capacity_tui.tui.widgets.head import mark_of
from capacity_tui.tui.widgets.panel import Findable, Panel

if TYPE_CHECKING:
    from capacity_tui.tui.shown.results import Field


_SLIDER = 9
_LABEL = 15
_NARROWEST_WITH_SLIDER = _LABEL + 12 + _SLIDER
_LOWEST_WITH_TWO_DETAILS = 14
_LOWEST_WITH_HEADINGS = 18
_LARGEST_IN_FULL = 1e7
_OPEN_FROM = 1e15  # Upper ends from here on only keep numbers finite: nobody reads them as a limit
_MOST_DETAILS = 3
_OTHERS = "── all other fields"  # Stands between the fields that matter and the others


class FieldList(Panel):
    """The fields of the plan; the one under the cursor says more."""

    NUMBER = 2
    TITLE = "Config"
    KEYS = "{value.type:last} edit"

    def __init__(self) -> None:
        super().__init__()
        self._fields: tuple[Field, ...] = ()
        self._chosen: Mapping[str, Chosen] = {}
        self._before: Mapping[str, str] = {}
        self._moved: Mapping[str, str] = {}
        self._error: tuple[str, str] = ("", "")
        self._items: list[int | None] = []
        self._trials: tuple[tuple[str, ...], Mapping[str, Trial]] = ((), {})
        self._shows_all = False
        self._listed: tuple[Field, ...] = ()
        self._main: frozenset[str] = frozenset()
        self.sizes: Callable[[str], tuple[int, ...]] = lambda _: ()

    @property
    def field(self) -> Field | None:
        return self._fields[self.cursor] if self.cursor < len(self._fields) else None

    @property
    def chosen(self) -> Chosen | None:
        """What the chosen mode took for the field under the cursor."""
        return self._chosen.get(self.field.key) if self.field else None

    def show_fields(
        self,
        fields: tuple[Field, ...],
        chosen: Mapping[str, Chosen],
        before: Mapping[str, str],
        moved: Mapping[str, str],
    ) -> None:
        key = self.field.key if self.field else ""
        self._chosen, self._before, self._moved = chosen, before, moved
        if not self._shows_all or {field.key for field in fields} != {field.key for field in self._listed}:
            self._main = frozenset(field.key for field in fields if field.is_main or field.key in {*before, *moved})
        self._listed = fields
        # What matters comes first, so that the others can come and go below it.
        self._fields = tuple(sorted(fields, key=lambda field: field.key not in self._main))
        self.cursor = next((index for index, field in enumerate(self._fields) if field.key == key), 0)
        self._shows_all |= self.cursor >= self._main_count
        self.repaint()

    def toggle_all(self) -> None:
        self._shows_all = not self._shows_all
        self.cursor = min(self.cursor, max(self.item_count() - 1, 0))
        self.show_fields(self._listed, self._chosen, self._before, self._moved)
        self.post_message(self.CursorMoved(self))

    def reveal(self, index: int) -> None:
        """Put the cursor on a field that was found, and show all where it is none of those that matter."""
        self._shows_all |= index >= self._main_count
        self.move_to(index)

    @property
    def _main_count(self) -> int:
        return len(self._main)

    def show_error(self, key: str, message: str) -> None:
        """Say under a field why a value was refused; an empty message clears it."""
        if (key, message) != self._error:
            self._error = (key, message)
            self.repaint()

    def values_around(self) -> tuple[str, ...]:
        """Return the values that steps of the field under the cursor lead to; none of a field that changes nothing."""
        from capacity_tui.engine.schema import around

        field = self.field
        if field is None or field.idle or field.catalogue:
            return ()
        return around(field, self.chosen, self.sizes(field.key))

    def show_trials(self, trials: Mapping[str, Trial]) -> None:
        """Show what the plan would be with other values of the field under the cursor."""
        self._trials = tuple(trials), trials
        self.repaint()

    def select(self, key: str) -> None:
        for index, field in enumerate(self._fields):
            if field.key == key:
                self.reveal(index)

    def about(self) -> tuple[str, str]:
        """Return the field under the cursor, what it means, and why it moved with the last edit."""
        field = self.field
        if field is None:
            return "", ""
        moved = f" The last edit changed it too: {self._moved[field.key]}." if field.key in self._moved else ""
        idle = f" It has no effect on this plan: {field.idle}." if field.idle else ""
        return field.label, f"{field.help}{moved}{idle}"

    def findable(self) -> Sequence[Findable]:
        return [
            Findable(field.label, (field.key, *field.synonyms), f"{field.group} {field.help}") for field in self._fields
        ]

    def item_count(self) -> int:
        return len(self._fields) if self._shows_all else self._main_count

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay out the fields, under headings where there is room."""
        if not self._fields:
            return [line(Span("o opens a plan", "dim"))], None
        is_short = len(self._main) < len(self._fields) and not self._shows_all
        headings = self.size.height >= _LOWEST_WITH_HEADINGS and not is_short
        lines: list[Line] = []
        self._items = []
        reveal = range(1)
        group = ""
        for index, field in enumerate(self._fields[: self.item_count()]):
            if index and index == self._main_count:
                self._add(lines, line(Span(clip(_OTHERS, width), "dim")), None)
                group = ""
            if headings and field.group != group:
                group = field.group
                self._add(lines, line(Span(clip(group, width), "heading")), None)
            self._add(lines, self._field_line(field, index, width), index)
            if index == self.cursor:
                details = self._details(field, width)
                for detail in details:
                    self._add(lines, detail, index)
                reveal = range(len(lines) - 1 - len(details), len(lines))
        return lines, reveal

    def summary(self) -> Line:
        if self.field is None:
            return line()
        value = self._value(self.field, 40)
        return Line((Span(f"{self.field.label} ", "label"), *value))

    def edge(self) -> str:
        if not self._fields:
            return ""
        count, main = len(self._fields), self._main_count
        more = "" if main == count else f" · . first {main}" if self._shows_all else f" · . all {count}"
        return f"{self.cursor + 1} of {self.item_count()}{more}"

    def _add(self, lines: list[Line], content: Line, item: int | None) -> None:
        lines.append(content)
        self._items.append(item)

    def _field_line(self, field: Field, index: int, width: int) -> Line:
        here = index == self.cursor
        marker = Span("▌" if here else MOVED if field.key in self._moved else " ", "accent")
        slider = self._slider(field) if here and width >= _NARROWEST_WITH_SLIDER else ""
        if (field.choices or field.catalogue) and not slider:
            slider = "▾"
        label_width = min(_LABEL, width // 2)
        room = width - label_width - 2 - cell_len(slider)
        value = self._value(field, room)
        gap = " " * max(room - sum(cell_len(span.text) for span in value), 0)
        label = Span(left(field.label, label_width), "label")
        return line(marker, label, " ", *value, gap, Span(slider, "dim"), selected=here and self.is_current)

    def _value(self, field: Field, room: int) -> list[Span]:
        if field.is_auto:
            chosen = self._chosen.get(field.key)
            if chosen and cell_len(f"auto → {chosen.text}") > room:
                return [Span("→ ", "dim"), Span(clip(chosen.text, max(room - 2, 0)), "value")]
            return [Span("auto", "dim"), Span(f" → {chosen.text}" if chosen else "", "value")]
        if not field.text:
            chosen = self._chosen.get(field.key)
            return [Span(clip(f"= {chosen.text}" if chosen else "–", room), "dim")]
        text = clip(field.text, room)
        unit = f" {field.unit}" if field.unit and cell_len(text) + cell_len(field.unit) < room else ""
        return [Span(text, "best" if field.key in self._before else "value"), Span(unit, "dim")]

    def _slider(self, field: Field) -> str:
        from capacity_tui.engine.schema import share_of_range

        where = share_of_range(field, self._chosen.get(field.key))
        if where is None:
            return ""
        knob = round(where * (_SLIDER - 5))
        return "◂ " + "━" * knob + "●" + "━" * (_SLIDER - 5 - knob) + " ▸"

    def _details(self, field: Field, width: int) -> list[Line]:
        key, message = self._error
        chosen = self._chosen.get(field.key)
        about, role = (chosen.reason if field.is_auto and chosen and chosen.reason else field.help), "dim"
        if message and key == field.key:
            about, role = f"✗ {message}", "bad"
        elif field.key in self._moved:
            about, role = f"{MOVED} also changed: {self._moved[field.key]}", "accent"
        elif field.idle:
            about, role = f"no effect here: {field.idle}", "warn"
        limits = Span(clip(f"  {self._limits(field)}", width), "dim")
        sweep = [] if role == "bad" else self._sweep(field, width)
        if self.size.height < _LOWEST_WITH_TWO_DETAILS:
            has_limits = role != "bad" and limits.text.strip()
            return sweep or [line(limits if has_limits else Span(clip(f"  {about}", width), role))]
        above = wrap(about, width - 2) if self.size.height >= _LOWEST_WITH_HEADINGS else [clip(about, width - 2)]
        spans = (*(Span(f"  {text}", role) for text in above[:_MOST_DETAILS]), limits)
        return [*(line(span) for span in spans if span.text.strip()), *sweep]

    def _sweep(self, field: Field, width: int) -> list[Line]:
        values = self.values_around()
        trials = self._trials[1] if self._trials[0] == values else {}
        chosen = self._chosen.get(field.key)
        start = field.value if field.value is not None else chosen.value if chosen else None
        current = chosen.text if field.is_auto and chosen else field.text
        if start is not None:
            current = next(
                (value for value in values if value.replace(".", "").isdigit() and float(value) == start), ""
            )
        return sweep_lines(values, current, trials, width, self.size.height >= _LOWEST_WITH_HEADINGS) if values else []

    def _limits(self, field: Field) -> str:
        from capacity_tui.tui.shown.results import Kind

        parts = []
        if field.key in self._before:
            parts.append(f"was {self._before[field.key] or 'not given'}")
        if field.kind is Kind.POWER_OF_TWO:
            parts.append("step ×2")
        elif field.kind in {Kind.INTEGER, Kind.NUMBER}:
            parts.append(f"step {field.step:g}")
        if field.minimum is not None and field.maximum is not None and field.maximum < _OPEN_FROM:
            parts.append(f"range {_limit(field.minimum)}–{_limit(field.maximum)}")
        elif field.minimum is not None:
            parts.append(f"from {_limit(field.minimum)}")
        elif field.choices:
            parts.append(" ".join(field.choices))
        return " · ".join(parts)


def _limit(value: float) -> str:
    if value >= _LARGEST_IN_FULL:
        return format_count(value, decimals=0)
    return format_number(value) if value == round(value) else f"{value:g}"


_INDENT = 2


def sweep_lines(
    values: Sequence[str], current: str, trials: Mapping[str, Trial], width: int, figures: bool = True
) -> list[Line]:
    """Return values in a line, with a verdict each, and below them memory and time where they have room.

    The lines are there before anything is known, so that nothing moves when it is.
    """
    marked = [(value, *_marked(value, value == current, trials.get(value))) for value in values]
    widest = max((cell_len(text) for _, text, _ in marked), default=0) + 1
    # Those around the current value stay where there is no room for all.
    while len(marked) > 1 and widest * len(marked) > width - _INDENT:
        at = next((index for index, entry in enumerate(marked) if entry[0] == current), 0)
        marked.pop(0 if at > len(marked) - 1 - at else -1)
    cell = (width - _INDENT) // max(len(marked), 1)
    first = line(" " * _INDENT, *(Span(text.ljust(cell), role) for _, text, role in marked))
    if not figures:
        return [first]
    known = [trials.get(value) for value, _, _ in marked]
    shares = ["" if one is None or one.share is None else f"{one.share:.0%}".replace("%", " %") for one in known]
    start = trials.get(current)
    times = ["" if one is None else one.time for one in known]
    if any(cell_len(time) >= cell for time in times):
        times = ["" if one is None else time_against(one, start) for one in known]
    rows = [texts if all(cell_len(text) < cell for text in texts) else [] for texts in (shares, times)]
    lines = [line(" " * _INDENT, Span("".join(f" {text}"[:cell].ljust(cell) for text in row), "dim")) for row in rows]
    return [first, *lines]


def _marked(value: str, is_current: bool, trial: Trial | None) -> tuple[str, str]:
    """Return a value with its verdict, and the role of its colour."""
    mark = Span(" ", "dim") if trial is None else mark_of(trial.verdict)
    text = f"{short_value(value)}{mark.text}"
    return (f"[{text}]" if is_current else f" {text}"), mark.role


def value_commands(
    step: Callable[[int, bool], None], type_value: Callable[[], None], automatic: Callable[[], None]
) -> Commands:
    """Return what the keys of a field do: step its value, type it or pick it, leave it to what is usual."""
    return {
        "value.more": partial(step, 1, False),
        "value.less": partial(step, -1, False),
        "value.much_more": partial(step, 1, True),
        "value.much_less": partial(step, -1, True),
        "value.type": type_value,
        "value.auto": automatic,
    }
