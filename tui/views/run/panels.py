"""Panels of the view of runs: the table, the head, the curves, devices and events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rich.cells import cell_len

from capacity_tui.engine.units import format_quantity
from capacity_tui.tui.shown.results import TableColumn
from capacity_tui.tui.text import Glyphs, Line, Span, clip, fit, left, line, marked, right, wrap
from capacity_tui.tui.view import RunDevice, RunEvent, RunGraph, RunRow, Standing
from capacity_tui.tui.widgets.head import gauge
from capacity_tui.tui.widgets.lines import Bar, Painted, TableLayout
from capacity_tui.tui.widgets.panel import HeadedPanel, Panel
from capacity_tui.tui.widgets.plots import Tick, axis_line, band_plot, side_by_side

_GAP = 3
_TWO_COLUMNS = 70  # Cells from which two curves stand side by side
_LEAST_HEIGHT = 5  # Lines of a curve with its title and its axis
_SCALE = 10
_NARROWEST_WITH_SCALE = 30


class Curves(Panel):
    """The curves of one run; where there is no room for all, the one under the cursor is drawn."""

    NUMBER = 2
    TITLE = "Curves"
    KEYS = "{run.newer} {run.older} zoom · {run.pause} pause · {run.zoom} full screen"
    state = Painted("")  # what part of the run is shown, and whether it is followed

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._graphs: tuple[RunGraph, ...] = ()

    def show_graphs(self, graphs: tuple[RunGraph, ...], message: str) -> None:
        self._graphs, self.message = graphs, message
        self.keep_cursor()
        self.repaint()

    def item_count(self) -> int:
        return len(self._graphs)

    def item_at(self, index: int) -> int | None:  # noqa: ARG002 - several stand in one line
        """Return that no line belongs to one curve alone."""
        return None

    def edge(self) -> str:
        return self.state

    def summary(self) -> Line:
        return line(Span(" · ".join(f"{graph.title} {graph.now}" for graph in self._graphs), "value"))

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Draw all curves, or the one under the cursor below the values of all."""
        graphs, height = self._graphs, self.size.height
        if not graphs:
            return self.lines_of_message()
        has_room = height // len(graphs) >= _LEAST_HEIGHT
        columns = 2 if width >= _TWO_COLUMNS and len(graphs) > 1 and not has_room else 1
        rows = -(-len(graphs) // columns)
        if height // rows < _LEAST_HEIGHT:
            return self._one_of(width, height), None
        size, lines = (width - _GAP * (columns - 1)) // columns, []
        for row in range(rows):
            tall = height // rows + (row < height % rows)
            drawn = [self._drawn(graph, size, tall) for graph in graphs[row * columns : (row + 1) * columns]]
            lines += [side_by_side(parts, _GAP) for parts in zip(*drawn, strict=True)]
        return lines, None

    def drawings(self) -> Iterator[tuple[str, str]]:
        from capacity_tui.engine.present.pictures import Axis, Plane, plane_file

        for graph in self._graphs:
            across = Axis(graph.axis, partial(format_quantity, unit="" if graph.axis == "step" else "s"), is_even=True)
            up = Axis(graph.title, partial(format_quantity, unit=graph.unit), is_even=True)
            plane = Plane(graph.title, across, up, ((graph.title, graph.points),), band=graph.band)
            yield graph.title, plane_file(plane)

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
        plotted = band_plot(graph.points, graph.places, graph.ends, graph.band, room, rows, self._glyphs)
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
        spans = [Span(f"{graph.title} ", "label"), Span(f"{graph.now}  ", "best")]
        if graph.verdict:
            spans.append(mark)
        if graph.predicted:
            side = graph.verdict or "predicted"
            value = graph.predicted.partition(" (")[0]
            wordings = (f"{side} {graph.predicted}", f"{side} {value}", side.removesuffix(" of"))
            room = width - sum(cell_len(span.text) for span in spans)
            text = next((wording for wording in wordings if cell_len(wording) <= room), wordings[-1])
            spans.append(Span(text, "label" if graph.is_inside else "warn"))
        cut = fit(Line(tuple(spans)), width)
        return Line((*cut.spans, Span(" " * (width - cell_len(cut.plain)))))


def _ticks(graph: RunGraph) -> Iterator[Tick]:
    """Yield where the curve ends and where it begins; the end counts more where there is room for one."""
    begins, ends = graph.places
    extent = (ends - begins) or 1.0
    for place, text in ((graph.points[-1][0], graph.last), (graph.points[0][0], graph.first)):
        yield Tick((place - begins) / extent, text)


class RunHead(Bar):
    """Says what runs, how far it is, and how long it goes on."""

    status = Painted(Span(""))

    def __init__(self) -> None:
        super().__init__(id="run-head")

    def build(self, width: int) -> Line:
        text, role = self.status[:2]
        return line(Span(clip(f" {text}", width), role)) if text else line()


_MARKS = {
    Standing.GOES_ON: Span("●", "good"),
    Standing.UNWATCHED: Span("?", "warn"),
    Standing.FAILED: Span("✗", "bad"),
    Standing.ENDED: Span("✓", "label"),
    Standing.PAST: Span(" ", "dim"),
    Standing.EXAMPLE: Span("e", "accent"),
}

_FRONT = 4  # Cells in front of the first column: cursor, standing
_LEAST_WIDTH = 6
_WIDEST = 28

_NOTHING = (
    "No run of yours yet. A watched run appears here, and stays when it ends:",
    "  capacity-tui monitor --plan PLAN -- torchrun train.py  beside its plan",
    "  capacity-tui monitor --pid N, or --log FILE            a running process",
    "  capacity-tui profile -- CMD                            what a command uses",
)


class RunsTable(HeadedPanel):
    """One run a line; the cursor stays on its run while others come and go."""

    NUMBER = 1
    TITLE = "Runs"
    KEYS = "{run.take} load its plan · {run.pin} pin · {run.calibrate} calibrate"

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[RunRow, ...] = ()  # the runs
        self._columns: tuple[TableColumn, ...] = ()
        self._is_read = False
        self._chosen = ""

    @property
    def row(self) -> RunRow | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def is_example(self) -> bool:
        """Whether there is no run but the one that shows what a run looks like."""
        return [row.standing for row in self.rows] == [Standing.EXAMPLE]

    def show_rows(self, columns: tuple[TableColumn, ...], rows: tuple[RunRow, ...]) -> None:
        """Show other rows; the cursor stays on the run that one has gone to, else on the first."""
        ids = [row.id for row in rows]
        self._columns, self.rows, self._is_read = columns, rows, True
        self.cursor = ids.index(self._chosen) if self._chosen in ids else 0
        self.repaint()

    def move_to(self, index: int) -> None:
        if self.rows:
            self._chosen = self.rows[max(0, min(index, len(self.rows) - 1))].id
        super().move_to(index)

    def item_count(self) -> int:
        return len(self.rows)

    def edge(self) -> str:
        going = sum(row.standing in (Standing.GOES_ON, Standing.UNWATCHED) for row in self.rows)
        if self.is_example:
            return "an example, until you watch a run"
        return f"{going} running, {len(self.rows) - going} past" if self.rows else ""

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the runs out under their heads, in the columns that there is room for."""
        if not self.rows:
            return _dimmed(_NOTHING if self._is_read else ("looking for runs…",)), None
        cells, room = [row.cells for row in self.rows], width - _FRONT
        layout = TableLayout.of(self._columns, cells, room, most=_WIDEST, least=_LEAST_WIDTH)
        lines = [line(" " * _FRONT, Span(layout.heads, "heading"))]
        for index, row in enumerate(self.rows):
            mark = _MARKS[row.standing]
            text = Span(layout.text(row.cells), "label" if row.standing is Standing.PAST else "value")
            lines.append(marked(index == self.cursor, Span(f"{mark.text}  ", mark.role), text))
        if self.is_example:
            lines += _dimmed(_NOTHING)
        return lines, self.around_cursor


def _dimmed(texts: tuple[str, ...]) -> list[Line]:
    return [line(Span(f" {text}", "dim" if number else "label")) for number, text in enumerate(texts)]


_NAME = 6
_BAR = 10
_WIDE = 56  # Cells from which a device has a bar
_LEVELS = {"note": ("·", "label"), "warning": ("!", "warn"), "error": ("✗", "bad")}
_TIME = 9


class Usage(Panel):
    """Devices as they are now, each above those who hold its memory."""

    NUMBER = 3
    TITLE = "Usage"
    devices: Painted[tuple[RunDevice, ...]] = Painted(())

    def summary(self) -> Line:
        return line(Span(" · ".join(f"{device.name} {device.text}" for device in self.devices[:1]), "value"))

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay them out, a line each with those who use it below."""
        if not self.devices:
            return [line(Span(" no telemetry yet", "dim"))], None
        return [size for device in self.devices for size in self._lines_of(device, width)], None

    def _lines_of(self, device: RunDevice, width: int) -> Iterator[Line]:
        role = "warn" if device.warning else "good"
        bar = f"{gauge(device.share, _BAR)} " if device.share is not None and width >= _WIDE else ""
        warning = Span(f"  ! {device.warning}", "warn") if device.warning else Span("")
        yield line(Span(f" {left(device.name, _NAME)}", "label"), Span(bar, role), Span(device.text, "value"), warning)
        for process in device.processes:
            yield line(Span(f"   {process}", "dim"))


class Events(Panel):
    """What was reported of a run, the newest first."""

    NUMBER = 4
    TITLE = "Events"

    def __init__(self) -> None:
        super().__init__()
        self._events: tuple[RunEvent, ...] = ()
        self._remarks: tuple[str, ...] = ()

    def show_events(self, events: tuple[RunEvent, ...], remarks: tuple[str, ...]) -> None:
        """Show what was reported by now, below what there is to know of the run."""
        self._events, self._remarks = events, remarks
        self.repaint()

    def summary(self) -> Line:
        newest = next(iter(self._events), None)
        return line(Span(newest.text if newest else next(iter(self._remarks), "no events yet"), "value"))

    def build(self, width: int) -> tuple[list[Line], range | None]:
        lines = [line(Span(f" {row}", "value")) for text in self._remarks for row in wrap(text, width - 2, "  ")]
        for event in self._events:
            mark, role = _LEVELS.get(event.level, _LEVELS["note"])
            first, *rest = wrap(event.text, width - _TIME - 3) or [""]
            lines.append(line(Span(f" {event.time:<{_TIME - 1}} ", "dim"), Span(f"{mark} {first}", role)))
            lines += [line(Span(" " * (_TIME + 3) + row, role)) for row in rest]
        return lines or [line(Span(" no events yet", "dim"))], None
