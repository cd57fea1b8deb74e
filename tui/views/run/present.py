"""Runs that go on, by their folders, and runs that are past, by the history, in the words of the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError, PlanError, StorageError
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.runs import figure_rows as run_figure_rows
from capacity_tui.engine.present.runs import hardware_of as run_hardware
from capacity_tui.engine.present.runs import learnt_text, what_ran
from capacity_tui.engine.runs import LiveRun, RunCourse, RunFollower, example_run, list_runs, newest_look, number
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns, history_place
from capacity_tui.engine.runs.sampling import learnt_from, restore_constants, write_measured
from capacity_tui.engine.units import format_number, format_quantity, format_seconds
from capacity_tui.tui.shown.results import TableColumn
from capacity_tui.tui.view import Document, RunRow, Standing, WatchedRun
from capacity_tui.tui.views.run.telemetry import FIGURES, devices_of, events_of, graphs_of, left_text

_STEP, _MEMORY, _ALLOCATED = Figure.STEP_SECONDS, Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_PER_DEVICE_BYTES
_NONE = "–"
_MADE_UP = "EXAMPLE, made up: what a run of yours will look like"
_MOST_PAST = 200
_TO_THE_MINUTE = 16
_COLUMNS = (
    TableColumn("started (UTC)", rank=2, is_number=False),
    TableColumn("run", is_number=False),
    TableColumn("how", rank=6, is_number=False),
    TableColumn("step", rank=3),
    TableColumn("loss", rank=7),
    TableColumn("step time"),
    TableColumn("of plan", rank=4),
    TableColumn("left", rank=1),
    TableColumn("memory", rank=5),
    TableColumn("hardware", rank=8, is_number=False),
    TableColumn("id", rank=9, is_number=False),
)


class WatchedRuns:
    """Reads runs; follows the one that was asked for last."""

    def __init__(
        self, catalog: Catalog, machine: Callable[[], Machine], document: Callable[[Plan], Document], history: str = ""
    ) -> None:
        self._catalog = catalog
        self._machine = machine
        self._document = document
        self._history = History(history_place(setting=history))
        self._past: dict[str, RunRecord] = {}
        self._live: dict[str, LiveRun] = {}
        self._going: frozenset[str] | None = None
        self._follower: RunFollower | None = None
        self._followed = ""
        self._course = RunCourse()
        self._example = ""

    def columns(self) -> tuple[TableColumn, ...]:
        return _COLUMNS

    def rows(self) -> tuple[RunRow, ...]:
        self._live = {run.id: run for run in list_runs()}
        self._example = ""
        going = frozenset(run.id for run in self._live.values() if run.goes_on)
        if going != self._going:
            self._going = going
            self._past = {record.id: record for record in self._find()}
        known = {run.record.id for run in self._live.values()}
        past = [record for record in self._past.values() if record.id not in known]
        if not self._live and not past:
            return tuple(self._example_rows())
        shown = [(run.id in going, run.record.started, self._row_of(run)) for run in self._live.values()]
        shown += [(False, record.started, self._row_of_past(record)) for record in past]
        return tuple(row for *_, row in sorted(shown, key=lambda entry: entry[:2], reverse=True))

    def _example_rows(self) -> Iterator[RunRow]:
        """Yield the run that stands here until there is one of the user's own."""
        with suppress(StorageError):
            run = example_run()
            self._live, self._example = {run.id: run}, run.id
            row = self._row_of(run)
            yield replace(row, standing=Standing.EXAMPLE, cells=("example", *row.cells[1:]))

    def _find(self) -> tuple[RunRecord, ...]:
        """Return the newest runs of the history; none where that is turned off."""
        wanted = WantedRuns(kinds=("run", "profile"), most=_MOST_PAST)
        return self._history.find(wanted) if self._history.place.is_on else ()

    def run(self, name: str, window: float) -> WatchedRun:
        live = self._live.get(name)
        if live is None:
            return self._past_run(self._past[name])
        self._follow(live)
        course = self._course
        marks = (_MADE_UP,) if name == self._example else ()
        return WatchedRun(
            name,
            " · ".join(filter(None, (*marks, *_head(live, course.look)))),
            tuple(graphs_of(course, live.record.predicted, window)),
            tuple(devices_of(course.look)),
            tuple(reversed(tuple(events_of(course.events)))),
            tuple(_remarks(live, course.look)),
        )

    def document(self, name: str) -> Document:
        return self._document(self._plan(name))

    def calibrate(self, name: str) -> str:
        if name == self._example:
            raise CapacityError("this run is an example", "nothing of it was measured", "calibrate on a run of yours")
        learnt = learnt_from(self._record(name), self._machine(), self._catalog, self._history)
        write_measured(learnt.measured)
        return f"{learnt_text(learnt)}; {{run.restore}} undoes it"

    def restore(self, name: str) -> str:
        constants = restore_constants(self._record(name).device)
        runs = "as shipped" if constants is None else f"of {constants.date}, with {len(constants.runs)} runs"
        return f"estimates for {self._record(name).device} use constants {runs} again; {{run.restore}} swaps back"

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
        self._follower, self._followed = None, ""

    def _follow(self, run: LiveRun) -> None:
        """Take what came of a run since it was last asked for."""
        if self._follower is None or self._followed != run.id:
            self.close()
            self._follower, self._followed = RunFollower(run.folder), run.id
        events, from_start = self._follower.poll()
        if from_start:
            self._course = RunCourse()
        self._course.take(events)

    def _record(self, name: str) -> RunRecord:
        """Return the entry of a run; of one that goes on, with what it came to so far."""
        live = self._live.get(name)
        if live is None:
            return self._past[name]
        return replace(live.record, actual={**live.record.actual, **_measured(newest_look(live.folder))})

    def _plan(self, name: str) -> Plan:
        plan = self._record(name).plan
        if plan is None:
            raise PlanError("this run has no plan", hint="monitor --plan PLAN watches a run beside its plan")
        return plan_from_data(plan)

    def _row_of(self, run: LiveRun) -> RunRow:
        record, look = run.record, newest_look(run.folder)
        actual = {**_measured(look), **record.actual}
        step, total = number(look.get("step")), number(look.get("total_steps"))
        loss = number(look.get("loss"))
        text = _NONE if step is None else format_number(step) + (f"/{format_number(total)}" if total else "")
        left = left_text(look) if run.goes_on else ""
        return RunRow(
            run.id,
            _standing(run),
            _cells(record, run.by, actual, text, _NONE if loss is None else f"{loss:.4g}", left),
            record.plan is not None,
        )

    def _row_of_past(self, record: RunRecord) -> RunRow:
        steps = number(record.details.get("steps"))
        failed = bool(number(record.details.get("exit_code")))
        cells = _cells(record, record.kind, record.actual, _NONE if steps is None else format_number(steps), _NONE, "")
        return RunRow(record.id, Standing.FAILED if failed else Standing.PAST, cells, record.plan is not None)

    def _past_run(self, record: RunRecord) -> WatchedRun:
        text = (
            f"{name}: {actual}, predicted {predicted} ({ratio})"
            for name, predicted, _, actual, ratio in run_figure_rows(record)
        )
        head = " on ".join(filter(None, (what_ran(record), run_hardware(record))))
        return WatchedRun(record.id, head, remarks=(*text, "older runs keep only these figures, no curves"))


def _standing(run: LiveRun) -> Standing:
    if run.goes_on:
        return Standing.GOES_ON if run.is_watched else Standing.UNWATCHED
    return Standing.FAILED if run.exit_code else Standing.ENDED


def _cells(
    record: RunRecord, how: str, actual: Mapping[str, float], step: str, loss: str, left: str
) -> tuple[str, ...]:
    seconds, memory = actual.get(_STEP), actual.get(_MEMORY)
    ratio = replace(record, actual=actual).ratio.get(_STEP)
    return (
        record.started[:_TO_THE_MINUTE].replace("T", " "),
        what_ran(record) or _NONE,
        how,
        step,
        loss,
        _NONE if seconds is None else format_seconds(seconds),
        _NONE if ratio is None else f"{ratio:.2f} ×",
        left or _NONE,
        _NONE if memory is None else format_quantity(memory, "B"),
        run_hardware(record) or str(record.machine.get("name", "")) or _NONE,
        record.id,
    )


def _measured(look: Mapping[str, object]) -> dict[str, float]:
    """Return what a look measured, by result key: those it names short, and those beside a prediction."""
    short = {key.rpartition(".")[2]: key for key in (*(key for *_, key in FIGURES if key), _ALLOCATED)}
    measured = {key: value for name, key in short.items() if (value := number(look.get(name))) is not None}
    rows = look.get("compared")
    for row in rows if isinstance(rows, list) else ():
        value = number(row.get("actual"))
        if value is not None:
            measured[str(row.get("figure"))] = value
    return measured


def _head(run: LiveRun, look: Mapping[str, object]) -> Iterator[str]:
    if run.process is not None:
        yield f"pid {run.process.pid}"
    yield " ".join(run.command) or run.log or what_ran(run.record)
    step, total = number(look.get("step")), number(look.get("total_steps"))
    if step is not None:
        yield f"step {format_number(step)}" + (f"/{format_number(total)}" if total else "")
    left = left_text(look)
    if left and run.goes_on:
        planned = run.record.predicted.get(Figure.ESTIMATED_TRAIN_TIME_SECONDS, {}).get("value")
        yield f"{left} left" + ("" if planned is None else f" (plan {format_seconds(planned)} in all)")
    if not run.goes_on:
        yield "ended" if run.exit_code is None else f"ended with {run.exit_code}"


def _remarks(run: LiveRun, look: Mapping[str, object]) -> Iterator[str]:
    if run.goes_on and not run.is_watched:
        words = f"--pid {run.process.pid}" if run.process is not None else f"--log {run.log}"
        yield f"not watched any more: capacity-tui monitor {words} resumes"
    if not look:
        yield "no data yet"
    why = look.get("why")
    for reason in why if isinstance(why, list) else ():
        yield f"why: {reason.get('text')}"
