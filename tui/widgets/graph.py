"""Filled line graphs in braille, block or ASCII characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from capacity_tui.tui.terminal.glyphs import Glyphs

# Dots of a braille cell from the bottom up, in its left and its right half.
_LEFT_DOTS = (0x40, 0x04, 0x02, 0x01)
_RIGHT_DOTS = (0x80, 0x20, 0x10, 0x08)
_BRAILLE = 0x2800
_BLANK = str.maketrans(chr(_BRAILLE), " ")
"""A blank of one byte in place of one of three."""
_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*#@"


def samples_per_cell(glyphs: Glyphs) -> int:
    """Return how many samples stand side by side in one cell."""
    return 2 if glyphs is Glyphs.BRAILLE else 1


def plot(values: Sequence[float | None], width: int, height: int, maximum: float, glyphs: Glyphs) -> list[str]:
    """Draw the newest values at the right.

    Args:
        values: samples, oldest first; None leaves a gap.
        width: cells from left to right.
        height: cells from top to bottom.
        maximum: value at which a column is full.
        glyphs: what to draw with.

    Returns:
        The rows, from the top down, each exactly ``width`` cells.
    """
    per_cell = samples_per_cell(glyphs)
    steps = 4 if glyphs is Glyphs.BRAILLE else len(_BLOCKS) - 1
    newest = list(values)[-width * per_cell :]
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
