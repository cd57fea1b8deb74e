"""Curves over two logarithmic axes, in braille or other characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from math import ceil, floor, log10
from operator import itemgetter
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.engine.units import format_bytes, format_count
from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.terminal.text import Line, Span, clip, line, right
from capacity_tui.tui.widgets.axis import Tick, axis_line
from capacity_tui.tui.widgets.dots import Dots
from capacity_tui.tui.widgets.scatter import HERE

if TYPE_CHECKING:
    from capacity_tui.tui.shown.charted import LogChart, Unit

_LEAST_WIDTH, _LEAST_HEIGHT = 16, 4
_NEARLY = 0.05
"""A power of ten ends an axis also where what is shown goes beyond it by this share of a decade."""
_AROUND = 2
"""Lines besides those of the plane: title and axis."""
_ROWS_A_TICK, _CELLS_A_TICK = 2, 8
_BOUND, _CURVE, _ACROSS = "·", "•", "─"


class _Axis:
    """A logarithmic axis over whole powers of ten.

    Args:
        values: what is to be in sight.
        unit: what it counts.
    """

    def __init__(self, values: Sequence[float], unit: Unit = "") -> None:
        self.low, self.high = floor(log10(min(values)) + _NEARLY), ceil(log10(max(values)) - _NEARLY)
        self.high = max(self.high, self.low + 1)
        self._unit = unit

    def share(self, value: float) -> float:
        """Return where a value stands, 0 at the low end and 1 at the high one."""
        return min(max((log10(value) - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self, most: int) -> Iterator[Tick]:
        """Yield at most so many powers of ten."""
        every = max(ceil((self.high - self.low + 1) / max(most, 2)), 1)
        for power in range(self.low, self.high + 1, every):
            yield Tick((power - self.low) / (self.high - self.low), self._text(10.0**power))

    def _text(self, value: float) -> str:
        if value < 1:
            return f"{value:g}"
        text = format_bytes(value, "GB") if self._unit else format_count(value, decimals=0)
        number, _, suffix = text.partition(" ")
        return f"{float(number):g}{suffix}" if number.replace(".", "").isdigit() else text


def log_plane(chart: LogChart, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Draw curves under their title, with what the axes count beside and below them.

    Args:
        chart: what to draw.
        width: cells from left to right.
        height: cells from top to bottom.
        glyphs: what to draw with.

    Returns:
        The rows, from the top down, each of ``width`` cells; none where there is no room or nothing to draw.
    """
    points = [point for curve in chart.curves for point in curve.points] + ([chart.here] if chart.here else [])
    if height < _LEAST_HEIGHT or not points:
        return []
    rows = height - _AROUND
    up = _Axis([*(y for _, y in points), *(limit.value for limit in chart.limits)], chart.up)
    across = _Axis([x for x, _ in points])
    beside = {rows - 1 - round(tick.share * (rows - 1)): tick.text for tick in up.ticks(rows // _ROWS_A_TICK + 1)}
    gutter = max(map(cell_len, beside.values()), default=0) + 1
    room = width - gutter
    if room < _LEAST_WIDTH:
        return []
    plane = _plane(chart, (across, up), room, rows, glyphs)
    return [
        line(Span(clip(chart.title, width).ljust(width), "label")),
        *(Line((Span(right(beside.get(row, ""), gutter - 1) + " ", "dim"), *spans)) for row, spans in enumerate(plane)),
        Line((Span(" " * gutter), *axis_line(list(across.ticks(room // _CELLS_A_TICK)), room).spans)),
    ]


def _plane(
    chart: LogChart, axes: tuple[_Axis, _Axis], width: int, height: int, glyphs: Glyphs
) -> list[tuple[Span, ...]]:
    """Return the rows of the plane: limits behind the curves, the point that is here before them."""
    across, up = axes
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    free: dict[int, int] = {}
    for limit in chart.limits:
        row = round((1 - up.share(limit.value)) * (height - 1))
        start = free.get(row, 1)
        if start == 1:
            cells.update({(row, column): (_ACROSS, "warn") for column in range(width)})
        label = clip(f" {limit.label} ", max(width - start, 0))
        cells.update({(row, start + place): (letter, "warn") for place, letter in enumerate(label)})
        free[row] = start + len(label) + 1
    for curve in chart.curves:
        dots = Dots(width, height, glyphs)
        places = [
            (round(across.share(x) * (dots.across - 1)), round((1 - up.share(y)) * (dots.down - 1)))
            for x, y in curve.points
        ]
        for before, after in pairwise(places):
            dots.connect(before, after)
        glyph, role = (_BOUND, "dim") if curve.is_bound else (_CURVE, "graph-1")
        cells.update({cell: (drawn, role) for cell, drawn in dots.drawn(glyph)})
    if chart.here is not None:
        x, y = chart.here
        row = round((1 - up.share(y)) * (height - 1))
        cells[row, round(across.share(x) * (width - 1))] = (HERE, "key")
    return [tuple(_spans([cells.get((row, column), (" ", "")) for column in range(width)])) for row in range(height)]


def _spans(cells: Sequence[tuple[str, str]]) -> Iterator[Span]:
    """Yield neighbours of one role as one piece."""
    for role, run in groupby(cells, key=itemgetter(1)):
        yield Span("".join(glyph for glyph, _ in run), role)
