"""Panel 5: what this machine is doing now, as graphs."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.terminal.text import Line, Span, left, line, wrap
from capacity_tui.tui.widgets.graph import plot
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.tui.shown.measured import Reading, Sample

_HIGHEST_GRAPH = 6
HISTORY = 512
"""Samples kept of each reading: more than two to a cell of the widest graph."""

_LABEL = 10
_FEWEST_GRAPHS = 4
"""With room for fewer the values stand without graphs."""
_GRAPH_ROLES = ("graph-1", "graph-2", "graph-3", "graph-4")


class Live(Panel):
    """Graphs of the sensors, oldest at the left."""

    NUMBER = 5
    TITLE = "Live"
    KEYS = ". pause · [ ] rate"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._readings: tuple[Reading, ...] = ()
        self._history: dict[str, deque[float | None]] = {}
        self._state = ""

    def show_state(self, state: str) -> None:
        """Name the interval, or that sampling is paused."""
        self._state = state
        self.repaint()

    def take(self, sample: Sample) -> None:
        """Add a sample to the graphs."""
        self._readings = sample.readings
        for reading in sample.readings:
            self._history.setdefault(reading.name, deque(maxlen=HISTORY)).append(reading.value)
        self.repaint()

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay out label, value and graph of each reading."""
        if not self._readings:
            return [line(Span("reading the sensors…", "dim"))], None
        if self.size.height < min(len(self._readings), _FEWEST_GRAPHS):
            return [line(Span(text, "value")) for text in wrap(self._values(), width)], None
        shown = [reading for reading in self._readings if reading.value is not None]
        missing = [reading for reading in self._readings if reading.value is None]
        room = self.size.height - len(missing)
        height = min(max(room // max(len(shown), 1), 1), _HIGHEST_GRAPH)
        value_width = max((len(reading.text) for reading in shown), default=0)
        lines: list[Line] = []
        for index, reading in enumerate(shown):
            role = _GRAPH_ROLES[index % len(_GRAPH_ROLES)]
            lines += self._graph(reading, role, width, height, value_width)
        for reading in missing:
            reason = f"n/a ({reading.reason})" if reading.reason else "n/a"
            lines.append(line(Span(left(reading.name, _LABEL), "label"), " ", Span(reason, "dim")))
        return lines, None

    def summary(self) -> Line:
        """Return the values without graphs."""
        return line(Span(self._values(), "value"))

    def edge(self) -> str:
        """Return the interval besides the place in the list."""
        return " · ".join(part for part in (self._state, super().edge()) if part)

    def _values(self) -> str:
        known = (reading for reading in self._readings if reading.value is not None)
        # Values stay with their names when the line is broken.
        return " · ".join(f"{reading.name} {reading.text}".replace(" ", "\xa0") for reading in known)

    def _graph(self, reading: Reading, role: str, width: int, height: int, value_width: int) -> list[Line]:
        history = self._history[reading.name]
        seen = max((value for value in history if value is not None), default=0.0)
        room = max(width - _LABEL - value_width - 2, 0)
        rows = plot(history, room, height, reading.maximum or seen, self._glyphs)
        label = Span(left(reading.name, _LABEL), "label")
        value = Span(f" {reading.text:>{value_width}} ", "value")
        blank = Span(" " * (_LABEL + value_width + 2))
        first, *rest = rows
        return [line(label, value, Span(first, role)), *(line(blank, Span(row, role)) for row in rest)]
