"""One run that is watched: its log and its machine, its figures and its troubles."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.machine import Sampler
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history.records import RunRecord, history_entry, now, this_host
from capacity_tui.engine.runs.logs.line_reader import LogEntry
from capacity_tui.engine.runs.logs.run_curve import Numbers, RunCurve
from capacity_tui.engine.runs.logs.sources import LogSource
from capacity_tui.engine.runs.metrics_export import Gauge
from capacity_tui.engine.runs.monitor.alarms import Alarm, RunSamples, Watch, detectors_of
from capacity_tui.engine.runs.monitor.comparison import Compared, Reason, compare, measured, others_share, reasons
from capacity_tui.engine.runs.processes import Observation, ProcessTree, observe
from capacity_tui.engine.runs.profile.snapshots import Snapshots, gauges_of
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_seconds

_LEAST_TIMES = 2  # Step times from which a curve of them begins: the first may be that of a few steps and one look
_TOTALS = {"tokens": "tokens_per_second", "prompt_tokens": "prompt_tokens_per_second", "samples": "samples_per_second"}
"""Rates of running totals that come without a step."""


@dataclass(frozen=True, slots=True)
class RunState:
    """A run at one moment."""

    seconds: float
    program: str  # the program that writes its log; empty where nothing was read
    figures: dict[str, float]
    left: Interval | None  # time it still takes, None where its end or its pace is not known
    actual: dict[str, float]  # its recent figures, by result key
    step_times: tuple[tuple[float, float], ...]  # new steps with the seconds of each
    compared: tuple[Compared, ...]
    reasons: tuple[Reason, ...]
    alarms: tuple[Alarm, ...]  # what is new and goes wrong
    active: tuple[Alarm, ...]
    notices: tuple[str, ...]  # what is new about the log itself
    observation: Observation | None  # what processes and machine do; None where there is no process


class RunMonitor:
    """Watches a run.

    Args:
        log: where it writes; None where only its processes are watched, or its output is handed over.
        pid: its first process; None where only its log is watched.
        answer: its plan, estimated; None without one.
        folders: on whose disks it may write.
        clock: monotonic clock in seconds.
    """

    def __init__(
        self,
        log: LogSource | None = None,
        pid: int | None = None,
        answer: Answer | None = None,
        folders: Sequence[Path] = (),
        catalog: Catalog | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._tree = None if pid is None else ProcessTree(pid)
        self._sampler = None if pid is None else Sampler(detailed=True)
        self._answer = answer
        self._folders = tuple(folders)
        self._clock = clock
        self._began, self._started = clock(), now()
        watch = None if answer is None else answer.plan.watch
        self._detectors = detectors_of((catalog or load_catalog()).detectors, watch)
        self._watch = Watch(self._detectors)
        self._totals: dict[str, tuple[float, float]] = {}
        self._reported: set[str] = set()
        self._polled = False
        self._timed_to = -math.inf
        self.curve = RunCurve()
        self.samples = RunSamples()

    @property
    def alive(self) -> bool:
        """Whether the processes that are watched still live, or without any whether the log may still grow."""
        return (self._log is None or not self._log.ended) if self._tree is None else self._tree.alive

    def take(self, entries: Iterable[LogEntry], seconds: float) -> None:
        """Take entries of the run's output at a time on the monotonic clock."""
        self.curve.add((self._with_rates(entry, seconds) for entry in entries), seconds)

    def look(self, last: bool = False) -> RunState:
        """Read what is new of log and machine, and return its state; at last an incomplete line of the log too."""
        seconds = self._clock()
        if self._log is not None:
            # What stood there before says nothing of when it came.
            entries = [self._with_rates(entry, seconds) for entry in self._log.poll(last)]
            self.curve.add(entries, seconds if self._polled else math.nan)
            self._polled = True
        observation = None
        if self._tree is not None and self._sampler is not None:
            observation = observe(self._tree, self._sampler)
            self.samples.add(observation, self._folders)
        new = self._watch.look(self.curve, self.samples, seconds, last)
        active = tuple(self._watch.active.values())
        limits = self._detectors["difference"].thresholds
        actual = measured(self.curve, self.samples, self._answer, round(limits["steps"]))
        compared: tuple[Compared, ...] = ()
        why: tuple[Reason, ...] = ()
        if self._answer is not None:
            compared = compare(actual, self._answer)
            why = reasons(compared, self.curve, self.samples, self._answer, active, limits)
        return RunState(
            seconds=seconds - self._began,
            program=self.curve.program,
            figures=dict(self.curve.latest),
            left=self._left(),
            actual=actual,
            step_times=self._new_step_times(),
            compared=compared,
            reasons=why,
            alarms=new,
            active=active,
            notices=self._notices(),
            observation=observation,
        )

    def entry(self, state: RunState, command: Sequence[str] = (), exit_code: int | None = None) -> RunRecord | None:
        """Return what the history keeps of the run; None where nothing was measured."""
        if not state.actual:
            return None
        details = {
            "seconds": state.seconds,
            "program": state.program,
            "steps": self.curve.step,
            **self._disturbances(state),
            **({"command": list(command), "exit_code": exit_code} if command else {}),
        }
        return self._record(state.actual, details)

    def _new_step_times(self) -> tuple[tuple[float, float], ...]:
        steps, seconds = self.curve.step_seconds()
        if steps.size < _LEAST_TIMES:
            return ()
        new = steps > self._timed_to
        self._timed_to = float(steps[-1]) if steps.size else self._timed_to
        return tuple(zip(steps[new].tolist(), seconds[new].tolist(), strict=True))

    def _disturbances(self, state: RunState) -> dict[str, object]:
        """Return why figures may say nothing of the device: codes, and the share of cores that others used."""
        why: dict[str, object] = {"why": [reason.code for reason in state.reasons]} if state.reasons else {}
        if self._answer is None or not self._answer.resolved.cluster.device.is_processor:
            return why
        others = others_share(self.samples)
        return why | ({"others": round(min(others, 1.0), 3)} if math.isfinite(others) else {})

    def beginning(self, command: Sequence[str] = ()) -> RunRecord:
        """Return what is known of the run before anything was measured."""
        return self._record({}, {"command": list(command)} if command else {})

    def close(self) -> None:
        """Close files and drivers."""
        if self._log is not None:
            self._log.close()
        if self._sampler is not None:
            self._sampler.close()

    def _record(self, actual: Mapping[str, float], details: Mapping[str, object]) -> RunRecord:
        if self._answer is None:
            return RunRecord("run", machine=this_host(), actual=actual, details=details, started=self._started)
        return history_entry(self._answer, "run", actual, details, self._started)

    def _with_rates(self, entry: LogEntry, seconds: float) -> LogEntry:
        """Return an entry with what its running totals grew by a second, where it belongs to no step."""
        if "step" in entry.figures or "loss" in entry.figures:
            return entry
        rates: dict[str, float] = {}
        for total, rate in _TOTALS.items():
            if total not in entry.figures:
                continue
            before, value = self._totals.get(total), entry.figures[total]
            if before is not None and seconds > before[0] and value >= before[1]:
                rates[rate] = (value - before[1]) / (seconds - before[0])
            self._totals[total] = (seconds, value)
        return replace(entry, figures={**rates, **entry.figures})

    def _left(self) -> Interval | None:
        total, step = self.curve.latest.get("total_steps"), self.curve.step
        if total is None and self._answer is not None:
            steps = self._answer.estimate.computation.steps
            total = None if steps is None else float(steps)
        if total is None or step is None:
            return None
        return seconds_left(max(0.0, total - step), self.curve.passed_seconds()[1])

    def _notices(self) -> tuple[str, ...]:
        """Return what is new about the log: its file, and steps that were done again."""
        notices = list(self._log.notices) if self._log is not None else []
        notices += [f"the run went on again from step {step:.0f}" for step in self.curve.resumed]
        notices += [
            f"the clock of the log was set {'forward' if jump > 0 else 'back'} by {format_seconds(abs(jump))}; "
            "steps are timed by when they came there"
            for jump in self.curve.clock.jumps
        ]
        new = tuple(notice for notice in notices if notice not in self._reported)
        self._reported.update(notices)
        return new


NEWEST = 200
BLOCKS = 10
LEAST = 3
LOWEST, HIGHEST = 0.1, 0.9
LONGEST_TIMES_USUAL = 3.0  # One long halt among the newest steps says little of those to come


def seconds_left(steps_left: float, seconds: Numbers) -> Interval | None:
    """Return the time that steps still take; None where too few were seen.

    The newest steps are averaged in blocks, so that evaluations and checkpoints count as often as they come; the range
    is that of eight of ten blocks.
    """
    # The first compiles, allocates and fills caches.
    newest = seconds[1:][-NEWEST:]
    if newest.size < LEAST or steps_left < 0:
        return None
    means = np.asarray([block.mean() for block in np.array_split(newest, min(BLOCKS, newest.size))])
    means = np.minimum(means, LONGEST_TIMES_USUAL * np.median(means))
    low, high = np.quantile(means, (LOWEST, HIGHEST))
    value = float(means.mean())
    return Interval(value, min(float(low), value), max(float(high), value)).scaled(steps_left)


class RunGauges:
    """Makes gauges of the states of one run, one after the other."""

    def __init__(self) -> None:
        self._snapshots = Snapshots()

    def of(self, state: RunState) -> Iterator[Gauge]:
        """Yield every number of a state that could be had.

        Figures of the log and of the run begin with ``run_``, what was predicted of it with ``predicted_`` and has
        the end of its range as a label; what processes and machine do has the names that it has of a profile.
        """
        figures = {**state.figures, **{_short(key): value for key, value in state.actual.items()}}
        for name, value in figures.items():
            if math.isfinite(value):
                yield Gauge(f"run_{name}", float(value))
        ends = {f"predicted_{_short(figure.key)}": figure.predicted for figure in state.compared}
        if state.left is not None:
            ends["run_seconds_left"] = state.left
        for name, interval in ends.items():
            for end in ("value", "low", "high"):
                value = float(getattr(interval, end))
                if math.isfinite(value):
                    yield Gauge(name, value, {"end": end})
        for alarm in state.active:
            yield Gauge("alarm", 1.0, {"kind": alarm.kind, "level": alarm.level, "where": alarm.where})
        if state.observation is not None:
            yield from gauges_of(self._snapshots.take(state.observation))


def _short(key: str) -> str:
    return key.rpartition(".")[2]
