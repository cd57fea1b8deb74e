"""Plots of dots and lines, with their axes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, pairwise, repeat
from math import ceil, floor, log, log10
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from capacity_tui.engine.units import format_bytes, format_count
from capacity_tui.tui.text import Glyphs, Line, Span, clip, line, right

if TYPE_CHECKING:
    from capacity_tui.tui.shown.scale import LogChart, Unit


class Tick(NamedTuple):
    """One text of an axis."""

    share: float  # where it stands, 0 at the start and 1 at the end
    text: str
    is_here: bool = False  # whether it stands there in any case, and stands out


def axis_line(ticks: Sequence[Tick], width: int) -> Line:
    """Return texts in one line, each below its place; of those that would touch, the first, or the one that is here."""
    taken: list[tuple[int, Tick]] = []
    for tick in sorted(ticks, key=lambda tick: not tick.is_here):
        middle = round(tick.share * (width - 1))
        size = cell_len(tick.text)
        left = max(0, min(middle - size // 2, width - size))
        if all(left + size < start or left > start + cell_len(other.text) for start, other in taken):
            taken.append((left, tick))
    spans: list[Span] = []
    at = 0
    for left, tick in sorted(taken):
        spans += [Span(" " * (left - at)), Span(tick.text, "key" if tick.is_here else "dim")]
        at = left + cell_len(tick.text)
    return Line((*spans, Span(" " * (width - at))))


def side_by_side(parts: Sequence[Line], gap: int) -> Line:
    """Return lines as one, with a gap between two."""
    spans = list(parts[0].spans)
    for part in parts[1:]:
        spans += [Span(" " * gap), *part.spans]
    return Line(tuple(spans))


_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # Dots of a braille cell, by column and from the top down


class Dots:
    """Dots in cells; places count from the upper left."""

    def __init__(self, width: int, height: int, glyphs: Glyphs) -> None:
        self._is_fine = glyphs is Glyphs.BRAILLE
        self._per_x, self._per_y = (len(_DOTS), len(_DOTS[0])) if self._is_fine else (1, 1)
        self.across = width * self._per_x  # dots from left to right
        self.down = height * self._per_y  # dots from top to bottom
        self._cells: dict[tuple[int, int], int] = {}

    def cell(self, x: int, y: int) -> tuple[int, int]:
        """Return row and column of the cell with a dot."""
        return y // self._per_y, x // self._per_x

    def put(self, x: int, y: int) -> None:
        cell = self.cell(x, y)
        self._cells[cell] = self._cells.get(cell, 0) | _DOTS[x % self._per_x][y % self._per_y]

    def connect(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Draw a straight line from one dot to another."""
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(steps + 1):
            part = step / steps
            self.put(*(round(low + (high - low) * part) for low, high in zip(start, end, strict=True)))

    def drawn(self, coarse: str) -> Iterator[tuple[tuple[int, int], str]]:
        """Yield row and column of each cell that has a dot, with its character."""
        for cell, dots in self._cells.items():
            yield cell, chr(_BRAILLE + dots) if self._is_fine else coarse


_LEFT_DOTS = (0x40, 0x04, 0x02, 0x01)  # Dots of a braille cell from the bottom up, in its left and its right half
_RIGHT_DOTS = (0x80, 0x20, 0x10, 0x08)
_BLANK = str.maketrans(chr(_BRAILLE), " ")  # A blank of one byte in place of one of three
_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*#@"


def plot(values: Sequence[float | None], width: int, height: int, maximum: float, glyphs: Glyphs) -> list[str]:
    """Draw the newest values at the right.

    Args:
        values: samples, oldest first; None leaves a gap.
        height: cells from top to bottom.
        maximum: value at which a column is full.

    Returns:
        The rows, from the top down, each exactly ``width`` cells.
    """
    per_cell = 2 if glyphs is Glyphs.BRAILLE else 1
    steps = 4 if glyphs is Glyphs.BRAILLE else len(_BLOCKS) - 1
    newest = list(values)[max(len(values) - width * per_cell, 0) :]
    padded = [*repeat(None, width * per_cell - len(newest)), *newest]
    levels = [_level(value, maximum, steps * height) for value in padded]
    return [_row(levels, row, steps, glyphs) for row in reversed(range(height))]


def _level(value: float | None, maximum: float, steps: int) -> int:
    """Return how many steps a column is high; a value that is there is at least one."""
    if value is None:
        return 0
    share = value / maximum if maximum > 0 else 0.0
    return max(1, min(round(share * steps), steps))


def _row(levels: list[int], row: int, steps: int, glyphs: Glyphs) -> str:
    inside = [min(max(level - row * steps, 0), steps) for level in levels]
    if glyphs is Glyphs.BRAILLE:
        pairs = zip(inside[::2], inside[1::2], strict=True)
        cells = (chr(_BRAILLE + _dots(_LEFT_DOTS, a) + _dots(_RIGHT_DOTS, b)) for a, b in pairs)
        return "".join(cells).translate(_BLANK)
    marks = _BLOCKS if glyphs is Glyphs.BLOCK else _ASCII
    return "".join(marks[level] for level in inside)


def _dots(dots: tuple[int, ...], level: int) -> int:
    return sum(dots[:level])


_BAND, _VALUE, _CURVE = "░", "─", "•"


def band_plot(
    points: Sequence[tuple[float, float]],
    places: tuple[float, float],
    ends: tuple[float, float],
    band: tuple[float, float, float] | None,
    width: int,
    height: int,
    glyphs: Glyphs,
) -> list[Line]:
    """Draw points, joined in their order.

    Args:
        points: place and value, by rising place.
        places: the first and the last place that there is room for.
        ends: lowest and highest value of the scale.
        band: low end, value and high end of what was predicted; None for nothing.
        height: cells from top to bottom.

    Returns:
        The rows, from the top down, each of ``width`` cells.
    """
    low, high = ends
    span = (high - low) or 1.0

    def depth(value: float, rows: int) -> int:
        return round((1 - min(max((value - low) / span, 0.0), 1.0)) * (rows - 1))

    cells: dict[tuple[int, int], tuple[str, str]] = {}
    if band is not None:
        top, middle, bottom = (depth(value, height) for value in reversed(band))
        for row in range(top, bottom + 1):
            glyph = _VALUE if row == middle else _BAND
            cells.update({(row, column): (glyph, "dim") for column in range(width)})
    if points:
        dots = Dots(width, height, glyphs)
        start, extent = places[0], (places[1] - places[0]) or 1.0
        dots_of = [(round((x - start) / extent * (dots.across - 1)), depth(y, dots.down)) for x, y in points]
        dots.put(*dots_of[0])
        for before, after in pairwise(dots_of):
            dots.connect(before, after)
        cells.update({cell: (drawn, "graph-1") for cell, drawn in dots.drawn(_CURVE)})
    return [Line(tuple(spans_of(cells, row, width))) for row in range(height)]


def spans_of(cells: Mapping[tuple[int, int], tuple[str, str]], row: int, width: int) -> Iterator[Span]:
    """Yield the cells of a row, neighbours of one role as one piece."""
    shown = (cells.get((row, column), (" ", "")) for column in range(width))
    for role, run in groupby(shown, key=itemgetter(1)):
        yield Span("".join(glyph for glyph, _ in run), role)


FRONT, HERE = "●", "◆"  # What stands in a cell with a point of the front, and in that of the cursor


def scatter(
    points: Sequence[tuple[float, float]],
    front: Collection[int],
    here: int | None,
    width: int,
    height: int,
    glyphs: Glyphs,
) -> list[Line]:
    """Draw points, small ones at the lower left.

    Args:
        front: indices of points that stand out.
        here: index of the point under the cursor.
        height: cells from top to bottom.

    Returns:
        The rows, from the top down, each of ``width`` cells.
    """
    dots = Dots(width, height, glyphs)
    xs = _places([x for x, _ in points], dots.across)
    ys = [dots.down - 1 - y for y in _places([y for _, y in points], dots.down)]
    for x, y in zip(xs, ys, strict=True):
        dots.put(x, y)
    cells = {cell: (drawn, "label") for cell, drawn in dots.drawn("·")}
    cells |= {dots.cell(xs[index], ys[index]): (FRONT, "accent") for index in sorted(front)}
    if here is not None:
        cells[dots.cell(xs[here], ys[here])] = (HERE, "key")
    return [
        Line(tuple(Span(*cells.get((row, column), (" ", "label"))) for column in range(width))) for row in range(height)
    ]


def _places(values: Sequence[float], count: int) -> list[int]:
    """Return where values stand among so many places."""
    from capacity_tui.engine.present.pictures import is_logarithmic

    if not values:
        return []
    scaled = [log(value) for value in values] if is_logarithmic(values) else list(values)
    low, high = min(scaled), max(scaled)
    span = high - low or 1.0
    return [round((value - low) / span * (count - 1)) for value in scaled]


_LEAST_WIDTH, _LEAST_HEIGHT = 16, 4
_NEARLY = 0.05  # A power of ten ends an axis also where what is shown goes beyond it by this share of a decade
_AROUND = 2  # Lines besides those of the plane: title and axis
_ROWS_A_TICK, _CELLS_A_TICK = 2, 8
_BOUND, _LOG_CURVE, _ACROSS = "·", "•", "─"


class _Axis:
    """A logarithmic axis over whole powers of ten."""

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
        height: cells from top to bottom.

    Returns:
        The rows, from the top down, each of ``width`` cells; none where there is no room or nothing to draw.
    """
    points = [point for curve in chart.curves for point in curve.points] + ([chart.here] if chart.here else [])
    if height < _LEAST_HEIGHT or not points:
        return []
    rows = height - _AROUND
    up = _Axis([*(y for _, y in points), *(limit.value for limit in chart.limits)], chart.up)
    across = _Axis([x for x, _ in points])
    labels = {rows - 1 - round(tick.share * (rows - 1)): tick.text for tick in up.ticks(rows // _ROWS_A_TICK + 1)}
    gutter = max(map(cell_len, labels.values()), default=0) + 1
    room = width - gutter
    if room < _LEAST_WIDTH:
        return []
    plane = _plane(chart, (across, up), room, rows, glyphs)
    return [
        line(Span(clip(chart.title, width).ljust(width), "label")),
        *(Line((Span(right(labels.get(row, ""), gutter - 1) + " ", "dim"), *spans)) for row, spans in enumerate(plane)),
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
        glyph, role = (_BOUND, "dim") if curve.is_bound else (_LOG_CURVE, "graph-1")
        cells.update({cell: (drawn, role) for cell, drawn in dots.drawn(glyph)})
    if chart.here is not None:
        x, y = chart.here
        row = round((1 - up.share(y)) * (height - 1))
        cells[row, round(across.share(x) * (width - 1))] = (HERE, "key")
    return [tuple(spans_of(cells, row, width)) for row in range(height)]
