"""Efficiency, and the share of a step that waits for others, over the number of devices, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING

from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.terminal.text import Line, Span, clip, line
from capacity_tui.tui.widgets.axis import Tick, axis_line, beside
from capacity_tui.tui.widgets.graph import plot, samples_per_cell
from capacity_tui.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from capacity_tui.tui.shown.scaled import ScaledPlan, ScaledRow

_GAP = 3
_NARROWEST = 33
"""Cells below which one picture stands alone."""
_LEAST_HEIGHT = 4
_KILO = 1024


class ScaledPictures(Lines):
    """Two pictures side by side, or the first alone.

    Args:
        glyphs: what they are drawn with.
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="growth")
        self._glyphs = glyphs
        self._plan: ScaledPlan | None = None
        self._here: int | None = None

    def show_plan(self, plan: ScaledPlan | None, here: int | None) -> None:
        """Draw what is known.

        Args:
            plan: the plan over device counts.
            here: devices of the row under the cursor.
        """
        self._plan, self._here = plan, here
        self.repaint()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.repaint()

    def repaint(self) -> None:
        """Draw anew, and paint the lines that differ."""
        if self.is_mounted and self.size:
            self.show(self._build(self.size.width, self.size.height))

    def _build(self, width: int, height: int) -> list[Line]:
        rows = self._plan.rows if self._plan else ()
        if len(rows) < 2 or height < _LEAST_HEIGHT:
            return []
        both = width >= 2 * _NARROWEST + _GAP
        each = (width - _GAP) // 2 if both else width
        drawn = [self._picture("efficiency", [row.efficiency for row in rows], rows, each, height, "graph-1")]
        if both:
            waits = [row.waits for row in rows]
            drawn.append(self._picture("waits for other devices", waits, rows, each, height, "graph-2"))
        return [beside(lines, _GAP) for lines in zip(*drawn, strict=True)]

    def _picture(
        self,
        title: str,
        shares: Sequence[float | None],
        rows: Sequence[ScaledRow],
        width: int,
        height: int,
        role: str,
    ) -> list[Line]:
        """Return a curve under its title, with the counts below."""
        places = [log2(row.devices) for row in rows]
        samples = _between(places, shares, width * samples_per_cell(self._glyphs))
        curve = plot(samples, width, height - 2, 1.0, self._glyphs)
        head = f"{title}, to 100 %"
        return [
            line(Span(clip(head, width).ljust(width), "label")),
            *(line(Span(row, role)) for row in curve),
            self._axis(places, rows, width),
        ]

    def _axis(self, places: Sequence[float], rows: Sequence[ScaledRow], width: int) -> Line:
        """Return the counts below the curve, that of the cursor in any case."""
        start, extent = places[0], places[-1] - places[0] or 1.0
        ticks = [
            Tick((place - start) / extent, _short(row.devices), row.devices == self._here)
            for place, row in zip(places, rows, strict=True)
        ]
        return axis_line(ticks, width)


def _between(places: Sequence[float], values: Sequence[float | None], count: int) -> list[float | None]:
    """Return so many values from the first place to the last, in straight lines between those that are known."""
    extent = places[-1] - places[0] or 1.0
    found: list[float | None] = []
    for index in range(count):
        at = places[0] + extent * index / max(count - 1, 1)
        right = next((place for place in range(1, len(places)) if places[place] >= at), len(places) - 1)
        low, high = values[right - 1], values[right]
        if low is None or high is None:
            found.append(high if at >= places[right] else low if at <= places[right - 1] else None)
            continue
        share = (at - places[right - 1]) / (places[right] - places[right - 1])
        found.append(low + (high - low) * share)
    return found


def _short(devices: int) -> str:
    """Return a count, in thousands of 1024 where it is a multiple."""
    return f"{devices // _KILO}k" if devices >= _KILO and devices % _KILO == 0 else str(devices)
