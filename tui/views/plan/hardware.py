"""The hardware panel, and the sensors of this machine as graphs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.dom import DOMNode

from capacity_tui.tui.actions import Commands
from capacity_tui.tui.requests import Fault, Request, reported
from capacity_tui.tui.session import Session
from capacity_tui.tui.settings import FASTEST_SECONDS, SLOWEST_SECONDS
from capacity_tui.tui.text import Glyphs, Line, Span, clip, left, line, wrap
from capacity_tui.tui.widgets.lines import Painted
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.plots import plot

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import HardwareRow
    from capacity_tui.tui.view import Reading

_LABELS = ("GPU", "CPU", "RAM", "Disk")  # What stands here while the machine is looked at
_UNSURE = {"assumed", "simulated"}


class Hardware(Panel):
    """Facts with their origin at the right."""

    NUMBER = 1
    TITLE = "Hardware"
    KEYS = "{hardware.enter} simulate · {hardware.back} back"
    # what is known about the machine; None while it is looked at
    rows: Painted[tuple[HardwareRow, ...] | None] = Painted(None)

    def build(self, width: int) -> tuple[list[Line], range | None]:
        labels = _LABELS if self.rows is None else [row.label for row in self.rows]
        label_width = min(max(map(cell_len, labels), default=0), width // 3)
        if self.rows is None:
            detecting = clip("detecting…", width - label_width - 1)
            return [
                line(Span(left(label, label_width), "label"), " ", Span(detecting, "dim")) for label in labels
            ], None
        return [text for row in self.rows for text in self._lines_of(row, label_width, width)], None

    def summary(self) -> Line:
        if self.rows is None:
            return line(Span(f"{_LABELS[0]} ", "label"), Span("detecting…", "value"))
        label, text = next(((row.label, row.text) for row in self.rows), ("", ""))
        return line(Span(f"{label} ", "label"), Span(text, "value"))

    def _lines_of(self, row: HardwareRow, label_width: int, width: int) -> list[Line]:
        """Return a fact in as many lines as it takes, its origin at the right of the last."""
        room = width - label_width - 1
        role, known = ("value", row.text) if row.text else ("dim", f"n/a ({row.reason})" if row.reason else "n/a")
        texts = [clip(text, room) for text in wrap(known, room)]
        origin = row.origin if cell_len(row.origin) < room - cell_len(texts[-1]) else ""
        gap = " " * max(room - cell_len(texts[-1]) - cell_len(origin), 0)
        labels = (row.label, *[""] * (len(texts) - 1))
        lines = [
            line(Span(left(label, label_width), "label"), " ", Span(text, role))
            for label, text in zip(labels, texts, strict=True)
        ]
        end = (Span(gap), Span(origin, "warn" if row.origin in _UNSURE else "dim"))
        return [*lines[:-1], Line((*lines[-1].spans, *end))]


_HIGHEST_GRAPH = 6
_STRIP = 2  # Lines up to which the panel is a strip without a frame
_NARROWEST_CELL = 19  # Cells of a reading in a strip: its name, its value and a graph of a few
HISTORY = 512  # Samples kept of each reading: more than two to a cell of the widest graph
_LABEL = 10
_AROUND = 3  # Blanks in a cell of a strip: before and behind the value, and behind the graph
_HEADING = 12  # Cells of the heading of a folded panel
_WAITING = "reading the sensors…"
_GRAPH_ROLES = ("graph-1", "graph-2", "graph-3", "graph-4")


class Live(Panel):
    """Graphs of the sensors, oldest at the left: one below the other, or side by side in a strip of a line or two."""

    NUMBER = 5
    TITLE = "Live"
    KEYS = "{live.pause} pause · {live.slower} {live.faster} rate"
    state = Painted("")  # the interval, or that sampling is paused

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._readings: tuple[Reading, ...] = ()
        self._history: dict[str, deque[float | None]] = {}
        self._widest = 0

    def take(self, readings: tuple[Reading, ...]) -> None:
        self._readings = readings
        for reading in readings:
            self._history.setdefault(reading.name, deque(maxlen=HISTORY)).append(reading.value)
        self.repaint()

    def build(self, width: int) -> tuple[list[Line], range | None]:
        if self.outer_size.height <= _STRIP:
            heading = f" {self.NUMBER} {self.TITLE} "
            strip = self._strip(width - cell_len(heading), max(self.outer_size.height, 1))
            heads = (heading, *[" " * cell_len(heading)] * (len(strip) - 1))
            return [Line((Span(head, "heading"), *row)) for head, row in zip(heads, strip, strict=True)], None
        if not self._readings:
            return [line(Span(_WAITING, "dim"))], None
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
        return Line(tuple(self._strip(self.size.width - _HEADING, 1)[0]))

    def edge(self) -> str:
        return " · ".join(part for part in (self.state, super().edge()) if part)

    def _strip(self, width: int, height: int) -> list[list[Span]]:
        """Return lines of readings side by side, each with its name, its value and its graph."""
        shown = [reading for reading in self._readings if reading.value is not None]
        if not shown:
            return [[Span(_WAITING if not self._readings else "no sensors", "dim")]]
        columns = min(ceil(len(shown) / height), max(width // _NARROWEST_CELL, 1))
        shown = shown[: columns * height]
        names = max(cell_len(reading.name) for reading in shown)
        # Values only get wider, so that graphs stand still.
        self._widest = max(self._widest, *(cell_len(reading.text) for reading in shown))
        room = max(width // columns - names - self._widest - _AROUND, 1)
        lines: list[list[Span]] = []
        for start in range(0, len(shown), columns):
            spans: list[Span] = []
            for index, reading in enumerate(shown[start : start + columns], start):
                history = self._history[reading.name]
                seen = max((value for value in history if value is not None), default=0.0)
                (graph,) = plot(history, room, 1, reading.maximum or seen, self._glyphs)
                spans += [
                    Span(left(reading.name, names), "label"),
                    Span(f" {reading.text:>{self._widest}} ", "value"),
                    Span(f"{graph} ", _GRAPH_ROLES[index % len(_GRAPH_ROLES)]),
                ]
            lines.append(spans)
        return lines

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


RETRY_SECONDS = 5.0  # How long sensors that failed are left alone
_UNFOCUSED_SLOWDOWN = 5.0  # How much less often the sensors are read while nobody looks


class Sensors:
    """Has the sensors read again and again."""

    def __init__(self, session: Session, screen: DOMNode, panel: Live) -> None:
        self._session = session
        self._screen = screen
        self._panel = panel
        self._is_paused = False
        self.seconds = session.settings.live_seconds  # time between two samples while somebody looks
        self.commands: Commands = {
            "live.pause": self.pause,
            "live.slower": partial(self.change_rate, 2.0),
            "live.faster": partial(self.change_rate, 0.5),
        }

    def pause(self) -> None:
        self._is_paused = not self._is_paused
        self.restart()

    def change_rate(self, factor: float) -> None:
        """Sample more or less often, within what is sensible."""
        self.seconds = min(max(self.seconds * factor, FASTEST_SECONDS), SLOWEST_SECONDS)
        self.restart()

    def restart(self) -> None:
        """Read the sensors as often as it is wanted now; a reading that fails is reported once."""
        if self._is_paused:
            self._session.cancel(self._screen, "live")
            self._panel.state = "paused"
            return
        self._panel.state = f"every {self.seconds:g} s"
        seconds = self.seconds * (1.0 if self._session.app.app_focus else _UNFOCUSED_SLOWDOWN)

        def work(request: Request[tuple[Reading, ...]]) -> None:
            failed: Callable[[Fault], object] = request.fail
            while not request.cancelled.is_set():
                with reported(failed):
                    sampler = self._session.engine.sampler()
                    while not request.cancelled.is_set():
                        request.answer(sampler.sample())
                        request.cancelled.wait(seconds)
                failed = _keep_quiet
                request.cancelled.wait(max(seconds, RETRY_SECONDS))

        self._session.ask(self._screen, "live", work, self._panel.take)


def _keep_quiet(_: Fault) -> None:
    """Say nothing of what was reported already."""
