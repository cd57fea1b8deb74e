"""A curve over a straight scale, with the range that was predicted behind it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.terminal.text import Line, Span
from capacity_tui.tui.widgets.dots import Dots

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
        width: cells from left to right.
        height: cells from top to bottom.
        glyphs: what to draw with.

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
        found = [(round((x - start) / extent * (dots.across - 1)), depth(y, dots.down)) for x, y in points]
        dots.put(*found[0])
        for before, after in pairwise(found):
            dots.connect(before, after)
        cells.update({cell: (drawn, "graph-1") for cell, drawn in dots.drawn(_CURVE)})
    return [_row([cells.get((row, column), (" ", "")) for column in range(width)]) for row in range(height)]


def _row(cells: Sequence[tuple[str, str]]) -> Line:
    """Return cells as a line, neighbours of one role as one piece."""
    runs = groupby(cells, key=itemgetter(1))
    return Line(tuple(Span("".join(glyph for glyph, _ in run), role) for role, run in runs))
