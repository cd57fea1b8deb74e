"""A map of two fields as lines: a verdict for each pair of values, and one figure beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.tried import Tried, short_value, time_beside
from capacity_tui.tui.terminal.text import Line, Span, clip, left, line, right, wrap
from capacity_tui.tui.widgets.verdicts import mark_of, worded

if TYPE_CHECKING:
    from capacity_tui.tui.view import Field

CELL = 9
_LABEL = 10
_MANY = 10
"""Times the memory there is, from where on nobody reads percents."""


class Shown(StrEnum):
    """What stands beside a verdict."""

    MEMORY = "memory"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Axis:
    """A field of the map.

    Attributes:
        field: the field.
        values: what it may be, in order, as it is typed.
        own: which of them the plan has.
    """

    field: Field
    values: tuple[str, ...]
    own: int


@dataclass(frozen=True, slots=True)
class PlanMap:
    """What is shown.

    Attributes:
        across: the field whose values stand side by side.
        down: the field whose values stand below one another.
        tried: what the plan would be, by the values across and down.
        settled: pairs for which all that is open was chosen anew.
        cursor: place of the pair under the cursor, across and down.
        shown: what stands beside a verdict.
    """

    across: Axis
    down: Axis
    tried: Mapping[tuple[str, str], Tried]
    settled: frozenset[tuple[str, str]]
    cursor: tuple[int, int]
    shown: Shown

    @property
    def pair(self) -> tuple[str, str]:
        """The values under the cursor."""
        return self.across.values[self.cursor[0]], self.down.values[self.cursor[1]]

    @property
    def own(self) -> Tried | None:
        """The plan as it is."""
        return self.tried.get((self.across.values[self.across.own], self.down.values[self.down.own]))


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


def _in_sight(count: int, at: int, room: int) -> tuple[int, int]:
    """Return which columns are shown: all, or as many around the cursor as have room."""
    first = min(max(at - room // 2, 0), max(count - room, 0))
    return first, min(first + room, count)


def _head(at: int, axis: Axis) -> str:
    return "best" if at == axis.own else "label"


def _cell(shown: PlanMap, column: int, row: int) -> Span:
    """Return a cell: its verdict and figure, the plan's own in brackets, the one under the cursor behind a bar."""
    pair = shown.across.values[column], shown.down.values[row]
    tried = shown.tried.get(pair)
    is_own = (column, row) == (shown.across.own, shown.down.own)
    here = (column, row) == shown.cursor
    text, role = "…", "dim"
    if tried is not None:
        mark = mark_of(tried.verdict)
        text, role = f"{mark.text}{_figure(shown, tried):>6}", mark.role if pair in shown.settled else "dim"
    start = "▌" if here else "[" if is_own else " "
    return Span(f"{start}{left(text, CELL - 2)}{']' if is_own else ' '}", "key" if here else role)


def _figure(shown: PlanMap, tried: Tried) -> str:
    if tried.verdict is Verdict.CANNOT_RUN:
        return ""
    if shown.shown is Shown.MEMORY:
        share = tried.share
        return "" if share is None else f"×{share:.0f}" if share >= _MANY else f"{share:.0%}".replace("%", " %")
    text = time_beside(tried, shown.own)
    return text if cell_len(text) <= CELL - 3 else text.partition(" ")[0]


def _words(shown: PlanMap, width: int) -> list[Line]:
    """Return what the pair under the cursor is, and what it comes to."""
    names = (f"{shown.across.field.label} {shown.pair[0]}", f"{shown.down.field.label} {shown.pair[1]}")
    told = shown.tried.get(shown.pair)
    lines = [line(Span(clip(", ".join(names), width), "best"))]
    if told is None:
        return [*lines, line(Span("trying…", "dim"))]
    if told.verdict is Verdict.CANNOT_RUN:
        said = worded(told.verdict, f"{told.verdict.words}: {told.reason}").text
        return [*lines, *(line(Span(text, "bad")) for text in wrap(said, width))]
    verdict = worded(told.verdict, told.words)
    figures = " · ".join(text for text in (told.memory, told.time, told.price) if text)
    if shown.pair not in shown.settled:
        lines.append(line(Span(clip("dim: what is open as it is now; being chosen anew", width), "dim")))
    return [*lines, line(verdict, Span(clip(f"  {figures}", width - cell_len(verdict.text)), "value"))]
