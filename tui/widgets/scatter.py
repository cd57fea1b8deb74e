"""Points in a plane, in braille or other characters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log

from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.terminal.text import Line, Span
from capacity_tui.tui.widgets.dots import Dots

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
    if not values:
        return []
    scaled = [log(value) for value in values] if is_logarithmic(values) else list(values)
    low, high = min(scaled), max(scaled)
    span = high - low or 1.0
    return [round((value - low) / span * (count - 1)) for value in scaled]
