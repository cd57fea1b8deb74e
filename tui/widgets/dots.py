"""A plane of dots: fine ones in braille, one a cell in other characters."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.tui.terminal.glyphs import Glyphs

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Dots of a braille cell, by column and from the top down."""


class Dots:
    """Dots in cells; places count from the upper left.

    Args:
        width: cells from left to right.
        height: cells from top to bottom.
        glyphs: what to draw with.

    Attributes:
        across: dots from left to right.
        down: dots from top to bottom.
    """

    def __init__(self, width: int, height: int, glyphs: Glyphs) -> None:
        self._is_fine = glyphs is Glyphs.BRAILLE
        self._per_x, self._per_y = (len(_DOTS), len(_DOTS[0])) if self._is_fine else (1, 1)
        self.across, self.down = width * self._per_x, height * self._per_y
        self._cells: dict[tuple[int, int], int] = {}

    def cell(self, x: int, y: int) -> tuple[int, int]:
        """Return row and column of the cell with a dot."""
        return y // self._per_y, x // self._per_x

    def put(self, x: int, y: int) -> None:
        """Draw a dot."""
        cell = self.cell(x, y)
        self._cells[cell] = self._cells.get(cell, 0) | _DOTS[x % self._per_x][y % self._per_y]

    def connect(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Draw a straight line from one dot to another."""
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(steps + 1):
            part = step / steps
            self.put(*(round(low + (high - low) * part) for low, high in zip(start, end, strict=True)))

    def drawn(self, coarse: str) -> Iterator[tuple[tuple[int, int], str]]:
        """Yield row and column of each cell that has a dot, with its character.

        Args:
            coarse: the character where dots are not fine.
        """
        for cell, dots in self._cells.items():
            yield cell, chr(_BRAILLE + dots) if self._is_fine else coarse
