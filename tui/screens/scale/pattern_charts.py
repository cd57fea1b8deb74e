"""How patterns of a corpus grow, and how often they occur, as pictures."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.terminal.text import Line
from capacity_tui.tui.widgets.axis import beside
from capacity_tui.tui.widgets.lines import Lines
from capacity_tui.tui.widgets.log_plane import log_plane

if TYPE_CHECKING:
    from capacity_tui.tui.shown.charted import LogChart

_GAP = 3
_NARROWEST, _LOWEST = 34, 8
"""Cells and lines below which one picture does without its neighbour."""


class PatternCharts(Lines):
    """Two pictures side by side, or one above the other, or the first alone.

    Args:
        glyphs: what they are drawn with.
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="charts")
        self._glyphs = glyphs
        self._charts: tuple[LogChart, ...] = ()

    def show_charts(self, *charts: LogChart) -> None:
        """Show other pictures, the first in any case."""
        self._charts = charts
        self._repaint()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._repaint()

    def _repaint(self) -> None:
        if self.is_mounted and self.size:
            self.show(self._build(self.size.width, self.size.height))

    def _build(self, width: int, height: int) -> list[Line]:
        count = max(len(self._charts), 1)
        each = (width - _GAP * (count - 1)) // count
        if each >= _NARROWEST:
            drawn = [log_plane(chart, each, height, self._glyphs) for chart in self._charts]
            return [beside(lines, _GAP) for lines in zip_longest(*drawn, fillvalue=Line())]
        shown = self._charts if height // count >= _LOWEST else self._charts[:1]
        return [line for chart in shown for line in log_plane(chart, width, height // len(shown), self._glyphs)]
