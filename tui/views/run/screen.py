"""The view of runs: those that go on and those that are past, beside what was predicted of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.dom import DOMNode

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.requests import Fault, Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import PINS_KEY, TableColumn
from capacity_tui.tui.store import TAKEN
from capacity_tui.tui.text import Span, plain_text
from capacity_tui.tui.view import Document, RunRow, RunsReader, WatchedRun
from capacity_tui.tui.views.run.panels import Curves, Events, RunHead, RunsTable, Usage
from capacity_tui.tui.views.view_screen import PanelScreen, size_classes
from capacity_tui.tui.widgets.panel import Panel

_FRONT, _ZOOM, _TABLE = "-front", "-zoom", "-table"


class RunScreen(PanelScreen):
    """Follows runs through what others write of them; leaving it, or ending the program, touches no run."""

    VIEW = "run"
    FOCUSES_LATER = True
    AUTO_FOCUS: ClassVar[str] = "#runs"
    HORIZONTAL_BREAKPOINTS = size_classes(slender=0, broad=116)
    VERTICAL_BREAKPOINTS = size_classes(low=0, short=16, middle=22, tall=32)

    def __init__(self, session: Session) -> None:
        self._table, self._head = RunsTable(), RunHead()
        self._curves, self._usage, self._events = Curves(session.glyphs), Usage(), Events()
        super().__init__(session, (self._table, self._curves, self._usage, self._events))
        self._aside = Vertical(id="run-aside")
        self._watching = Watching(session, self, self._curves, self._show_runs, self._show_failure)
        self.commands = {
            **self.commands,
            **self._watching.commands,
            **self.panel_commands,
            "run.next": partial(self.go_around, 1),
            "run.previous": partial(self.go_around, -1),
            "run.zoom": self._zoom,
            "run.take": partial(self._read_plan, is_pinned=False),
            "run.pin": partial(self._read_plan, is_pinned=True),
            "run.calibrate": partial(self._calibrate, False),
            "run.restore": partial(self._calibrate, True),
            "run.copy": self._copy,
        }

    def body(self) -> ComposeResult:
        """Put the runs above what there is to show of the one under the cursor."""
        yield self._table
        yield self._head
        with Horizontal(id="run-parts"):
            yield self._curves
            with self._aside:
                yield self._usage
                yield self._events

    def on_mount(self) -> None:
        self._curves.add_class(_FRONT)
        self.mark_current(self._table)

    def on_screen_resume(self) -> None:
        self._watching.restart()

    def on_screen_suspend(self) -> None:
        """Look at nothing that nobody sees."""
        self._watching.stop()

    # What the threads report

    def _show_runs(self, runs: RunsNow) -> None:
        self._table.show_rows(runs.columns, runs.rows)
        run, row = runs.run, self._table.row
        if row is None or run is None:
            self._watching.follow(row.id if row else "")
            self._show_nothing()
            return
        if run.id != row.id:
            self._watching.follow(row.id)
            return
        self._head.status = Span(run.head, "value")
        self._curves.show_graphs(run.graphs, "no figures known")
        self._usage.devices = run.devices
        self._events.show_events(run.events, run.remarks)

    def _take_plan(self, other: Document, *, is_pinned: bool) -> None:
        """Take the plan of a run over, or put it beside the plan; either is one edit."""
        document = self.session.store.document
        if document is None:
            self.session.say("there is no plan to change yet", "warn")
            return
        try:
            after = document.pinned_with_plan(other) if is_pinned else document.replaced_by(other)
        except CapacityError as error:
            self.session.say(error.one_line(), "bad")
            return
        if after == document:
            self.session.say("that is the plan already")
            return
        self.session.change_to(after, PINS_KEY if is_pinned else TAKEN)
        where = "pinned beside the plan" if is_pinned else "the plan now"
        self.session.say(f"the plan of the run is {where}; {{edit.undo}} undoes that", "good")

    def _take_calibration(self, learnt: str) -> None:
        """Say what was learnt, and have the plan estimated with it."""
        self.session.say(learnt, "good")
        self.session.renew_plan()

    def _show_failure(self, fault: Fault) -> None:
        self.session.last_failure = fault
        self._head.status = Span(fault.in_short, "bad")

    @on(Panel.CursorMoved)
    def follow_row(self, event: Panel.CursorMoved) -> None:
        if event.panel is self._table and self._table.row is not None:
            self._watching.follow(self._table.row.id)

    # Commands

    def about(self) -> tuple[str, str]:
        row = self._table.row
        if row is None:
            return "", ""
        return (
            f"{row.cells[1]}: {row.standing}",
            "Curves over steps or time, with the prediction behind them: the line is the estimate, the band its "
            "range. The view only reads what monitor, profile and guard write, so it may be left at any time.",
        )

    def back(self) -> None:
        """Show all panels again; else go back to the plan."""
        if self.has_class(_ZOOM):
            self._zoom()
        else:
            super().back()

    def _zoom(self) -> None:
        self.toggle_class(_ZOOM)
        self.call_after_refresh(self.current.focus)

    def drawings(self) -> Iterator[tuple[str, str]]:
        yield from self._curves.drawings()

    def mark_current(self, panel: Panel) -> None:
        """Mark a panel, and show it where there is not room for all."""
        self.set_class(panel is self._table, _TABLE)
        if panel is not self._table:
            self._aside.set_class(panel is not self._curves, _FRONT)
            for other in self.panels:
                other.set_class(other is panel, _FRONT)
        super().mark_current(panel)
        self.topic = self.VIEW

    def _show_nothing(self) -> None:
        self._head.status = Span("")
        self._curves.show_graphs((), "")
        self._usage.devices = ()
        self._events.show_events((), ())

    def _read_plan(self, *, is_pinned: bool) -> None:
        row = self._table.row
        if row is None:
            return
        if not row.has_plan:
            self.session.say("this run has no plan: monitor --plan PLAN watches one beside its plan", "warn")
            return
        reader = self._watching.reader

        take = partial(self._take_plan, is_pinned=is_pinned)
        self.session.ask(self, "run-plan", lambda _: reader().document(row.id), take)

    def _calibrate(self, is_back: bool) -> None:
        row = self._table.row
        if row is None:
            return
        reader = self._watching.reader

        def work(_: object) -> str:
            learnt = reader().restore(row.id) if is_back else reader().calibrate(row.id)
            self.session.engine.detect()
            return learnt

        if not is_back:
            self.session.say("fitting this machine's constants to the run…")
        self.session.ask(self, "calibrate", work, self._take_calibration)

    def _copy(self) -> None:
        self.session.copy(plain_text(self._table.lines))


LOOK_SECONDS = 2.0
_UNFOCUSED_SLOWDOWN = 5.0
_WINDOWS = (1.0, 0.5, 0.2, 0.1, 0.05)  # Shares of a run that curves may show, the newest


class RunsNow(NamedTuple):
    """Runs as they are by now."""

    columns: tuple[TableColumn, ...]  # of their table
    rows: tuple[RunRow, ...]  # all of them
    run: WatchedRun | None  # the one under the cursor; None where there is none


class Watching:
    """Has runs looked at, and the one under the cursor followed."""

    SUBJECT = "live"

    def __init__(
        self,
        session: Session,
        screen: DOMNode,
        curves: Curves,
        show: Callable[[RunsNow], object],
        failed: Callable[[Fault], object],
    ) -> None:
        self._session = session
        self._show, self._failed = show, failed
        self._screen = screen
        self._curves = curves
        self._reader: RunsReader | None = None
        self._reading = threading.Lock()
        self._followed = ""
        self._window = 0
        self._is_paused = False
        self.commands: Commands = {
            "run.pause": self.pause,
            "run.newer": lambda: self._change_window(1),
            "run.older": lambda: self._change_window(-1),
        }

    def follow(self, name: str) -> None:
        if name != self._followed:
            self._followed = name
            self._look_now()

    def pause(self) -> None:
        self._is_paused = not self._is_paused
        self.restart()

    def restart(self) -> None:
        self._show_state()
        if self._is_paused:
            self.stop()
            return
        seconds = LOOK_SECONDS * (1.0 if self._session.app.app_focus else _UNFOCUSED_SLOWDOWN)

        def work(request: Request[RunsNow]) -> None:
            while not request.cancelled.is_set():
                request.answer(self._look())
                request.cancelled.wait(seconds)

        self._session.ask(self._screen, self.SUBJECT, work, self._show, failed=self._failed)

    def stop(self) -> None:
        self._session.cancel(self._screen, self.SUBJECT)

    def reader(self) -> RunsReader:
        if self._reader is None:
            self._reader = self._session.engine.runs(self._session.settings.history)
        return self._reader

    def _look(self) -> RunsNow:
        with self._reading:
            reader = self.reader()
            rows = reader.rows()
            name = self._followed if any(row.id == self._followed for row in rows) else ""
            name = name or (rows[0].id if rows else "")
            run = None
            with suppress(KeyError):  # it was swept since
                run = reader.run(name, _WINDOWS[self._window]) if name else None
            return RunsNow(reader.columns(), rows, run)

    def _look_now(self) -> None:
        """Look before the time is up; while paused once."""
        if self._is_paused:
            self._session.ask(self._screen, self.SUBJECT, lambda _: self._look(), self._show, failed=self._failed)
        else:
            self.restart()

    def _change_window(self, offset: int) -> None:
        self._window = max(0, min(self._window + offset, len(_WINDOWS) - 1))
        self._show_state()
        self._look_now()

    def _show_state(self) -> None:
        part = _WINDOWS[self._window]
        shown = "all of it" if part >= 1 else f"the newest {part:.0%}".replace("%", " %")
        self._curves.state = f"{shown}, paused" if self._is_paused else shown
