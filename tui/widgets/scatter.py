"""Points in a plane, in braille or other characters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log

from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.terminal.text import Line, Span

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Dots of a braille cell, by column and from the top down."""
_ACROSS, _DOWN = 2, 4
_WIDE_RANGE = 20.0
"""From this ratio of the ends on a scale is logarithmic."""
FRONT, HERE = "●", "◆"
"""What stands in a cell with a point of the front, and in that of the cursor."""


def is_logarithmic(values: Sequence[float]) -> bool:
    """Return whether values are drawn on a logarithmic scale."""
    return min(values) > 0 and max(values) / min(values) >= _WIDE_RANGE


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
        points: across and up.
        front: indices of points that stand out.
        here: index of the point under the cursor.
        width: cells from left to right.
        height: cells from top to bottom.
        glyphs: what to draw with.

    Returns:
        The rows, from the top down, each of ``width`` cells.
    """
    fine = glyphs is Glyphs.BRAILLE
    across, down = (width * _ACROSS, height * _DOWN) if fine else (width, height)
    dots = [[0] * width for _ in range(height)]
    marks: dict[tuple[int, int], tuple[str, str]] = {}
    xs = _places([x for x, _ in points], across)
    ys = [down - 1 - y for y in _places([y for _, y in points], down)]
    per_x, per_y = (_ACROSS, _DOWN) if fine else (1, 1)
    for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
        cell = y // per_y, x // per_x
        dots[cell[0]][cell[1]] |= _DOTS[x % per_x][y % per_y]
        if index in front:
            marks[cell] = (FRONT, "accent")
    if here is not None:
        marks[ys[here] // per_y, xs[here] // per_x] = (HERE, "key")
    return [
        Line(
            tuple(
                Span(*marks.get((row, column), (_glyph(value, fine), "label"))) for column, value in enumerate(values)
            )
        )
        for row, values in enumerate(dots)
    ]


def _glyph(dots: int, fine: bool) -> str:
    if not dots:
        return " "
    return chr(_BRAILLE + dots) if fine else "·"


def _places(values: Sequence[float], count: int) -> list[int]:
    """Return where values stand among so many places."""
    if not values:
        return []
    scaled = [log(value) for value in values] if is_logarithmic(values) else list(values)
    low, high = min(scaled), max(scaled)
    span = high - low or 1.0
    return [round((value - low) / span * (count - 1)) for value in scaled]
