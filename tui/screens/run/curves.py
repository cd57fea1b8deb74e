"""How a run went: its figures as curves, with what was predicted behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.cells import cell_len

from capacity_tui.tui.shown.watched import RunGraph
from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.terminal.text import Line, Span, fit, line, right
from capacity_tui.tui.widgets.axis import Tick, axis_line, beside
from capacity_tui.tui.widgets.band_plot import band_plot
from capacity_tui.tui.widgets.panel import Panel

_GAP = 3
_TWO_COLUMNS = 70
"""Cells from which two curves stand side by side."""
_LEAST_HEIGHT = 5
"""Lines of a curve with its title and its axis."""
_SCALE = 10
_NARROWEST_WITH_SCALE = 30


class Curves(Panel):
    """The curves of one run; where there is no room for all, the one under the cursor is drawn.

    Args:
        glyphs: what they are drawn with.
    """

    NUMBER = 2
    TITLE = "Curves"
    KEYS: ClassVar[str] = "+ - newest or all · . pause · z alone"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._graphs: tuple[RunGraph, ...] = ()
        self._state = ""
        self.message = ""

    def show_graphs(self, graphs: tuple[RunGraph, ...], message: str) -> None:
        """Show other curves, or why there are none."""
        self._graphs, self.message = graphs, message
        self.cursor = min(self.cursor, max(len(graphs) - 1, 0))
        self.repaint()

    def show_state(self, state: str) -> None:
        """Say what part of the run is shown, and whether it is followed."""
        self._state = state
        self.repaint()

    def item_count(self) -> int:
        """Return the number of curves."""
        return len(self._graphs)

    def item_at(self, index: int) -> int | None:  # noqa: ARG002 - several stand in one line
        """Return that no line belongs to one curve alone."""
        return None

    def edge(self) -> str:
        """Return what is shown."""
        return self._state

    def summary(self) -> Line:
        """Return the newest values."""
        return line(Span(" · ".join(f"{graph.title} {graph.now}" for graph in self._graphs), "value"))

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Draw all curves, or the one under the cursor below the values of all."""
        graphs, height = self._graphs, self.size.height
        if not graphs:
            return [line(Span(f" {self.message}", "dim"))], None
        has_room = height // len(graphs) >= _LEAST_HEIGHT
        columns = 2 if width >= _TWO_COLUMNS and len(graphs) > 1 and not has_room else 1
        rows = -(-len(graphs) // columns)
        if height // rows < _LEAST_HEIGHT:
            return self._one_of(width, height), None
        each, lines = (width - _GAP * (columns - 1)) // columns, []
        for row in range(rows):
            tall = height // rows + (row < height % rows)
            drawn = [self._drawn(graph, each, tall) for graph in graphs[row * columns : (row + 1) * columns]]
            lines += [beside(parts, _GAP) for parts in zip(*drawn, strict=True)]
        return lines, None

    def _one_of(self, width: int, height: int) -> list[Line]:
        """Return the values of all curves, and the one under the cursor as far as there is room."""
        room = height - len(self._graphs) + 1
        lines: list[Line] = []
        for index, graph in enumerate(self._graphs):
            at_cursor = index == self.cursor
            drawn = self._drawn(graph, width, room) if at_cursor and room >= _LEAST_HEIGHT - 1 else []
            lines += drawn or [Line(self._title(graph, width).spans, selected=at_cursor)]
        return lines

    def _drawn(self, graph: RunGraph, width: int, height: int) -> list[Line]:
        """Return a curve between its title and its axis, in so many lines."""
        scale = _SCALE if width >= _NARROWEST_WITH_SCALE else 0
        room, rows = width - scale, height - 2
        band = None if graph.band is None else (graph.band.low, graph.band.value, graph.band.high)
        plotted = band_plot(graph.points, graph.places, graph.ends, band, room, rows, self._glyphs)
        labels = {0: graph.high, rows - 1: graph.low}
        return [
            self._title(graph, width),
            *(
                Line((Span(right(labels.get(row, ""), scale - 1) + " " if scale else "", "dim"), *one.spans))
                for row, one in enumerate(plotted)
            ),
            Line((Span(" " * scale), *axis_line(list(_ticks(graph)), room).spans)),
        ]

    def _title(self, graph: RunGraph, width: int) -> Line:
        """Return name, newest value, and on which side of the prediction it lies."""
        mark = Span("✓ " if graph.is_inside else "! ", "good" if graph.is_inside else "warn")
        told = f"{graph.verdict} {graph.predicted}" if graph.verdict else f"predicted {graph.predicted}"
        spans = [Span(f"{graph.title} ", "label"), Span(f"{graph.now}  ", "best")]
        if graph.verdict:
            spans.append(mark)
        if graph.predicted:
            spans.append(Span(told, "label" if graph.is_inside else "warn"))
        cut = fit(Line(tuple(spans)), width)
        return Line((*cut.spans, Span(" " * (width - cell_len(cut.plain)))))


def _ticks(graph: RunGraph) -> Iterator[Tick]:
    """Yield where the curve ends and where it begins; the end counts more where there is room for one."""
    begins, ends = graph.places
    extent = (ends - begins) or 1.0
    for place, text in ((graph.points[-1][0], graph.last), (graph.points[0][0], graph.first)):
        yield Tick((place - begins) / extent, text)
