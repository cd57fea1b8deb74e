"""The curve of a log so far: a point for each step, and the newest of every figure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from statistics import median

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.logs.line_reader import LineReader, LogEntry
from capacity_tui.engine.runs.logs.sources import open_log

MOST_POINTS = 5_000  # Steps that are kept at least
MOST_JUMPS = 20  # Times that a clock was set which are kept
_LEAST_TIMED = 4

# Steps over which a time is taken where several come with one look, so that a look more or less matters little.
_STEPS_OF_LOOKS = 10.0

# Seconds by which a log's times may differ from when they came without that a clock was set: they are whole seconds,
# several processes write, and lines wait in buffers.
_CLOCK_SET = 5.0

_PROGRESS = frozenset({"step", "total_steps", "elapsed_seconds", "step_seconds"})
Numbers = NDArray[np.float64]


@dataclass(slots=True)
class Point:
    """Figures of one step; ``logged_at`` and ``arrived_at`` are NaN where unknown."""

    step: float
    figures: dict[str, float]
    logged_at: float = math.nan
    arrived_at: float = math.nan


@dataclass(slots=True)
class LogClock:
    """Keeps the times of a log on one clock where that of its machine was set meanwhile.

    No line comes before it was written, so that none is ahead of the lines that waited least; and none was written
    before the one that came before it. Where one seems so the time in which it came is taken for the time that passed.
    """

    jumps: list[float] = field(default_factory=list)  # seconds by which the clock was set forward
    paused_seconds: float = 0.0  # by which the clock of arrivals stood still so far
    _shift: float = 0.0
    _least_wait: float = -math.inf
    _logged_at: float = math.nan
    _arrived_at: float = math.nan

    def corrected(self, logged_at: float, arrived_at: float) -> float:
        """Return a line's time on the clock that the first lines had; both in seconds, NaN where unknown.

        Args:
            arrived_at: when it came, on a clock that is never set.
        """
        if not math.isfinite(logged_at):
            return logged_at
        at_seconds, arrived_at = logged_at + self._shift, arrived_at + self.paused_seconds
        is_behind = at_seconds < self._logged_at - _CLOCK_SET
        if is_behind or arrived_at - at_seconds < self._least_wait - _CLOCK_SET:
            passed = arrived_at - self._arrived_at
            passed = passed if passed > 0 else 0.0
            jump = at_seconds - self._logged_at - passed
            self.jumps = [*self.jumps[1 - MOST_JUMPS :], jump]
            self._shift -= jump
            at_seconds -= jump
            self._least_wait = -math.inf
        if math.isfinite(arrived_at):
            wait = arrived_at - at_seconds
            self._least_wait = min(self._least_wait, wait) if math.isfinite(self._least_wait) else wait
        self._logged_at, self._arrived_at = at_seconds, arrived_at
        return at_seconds


@dataclass(slots=True)
class RunCurve:
    """Figures of a run by step."""

    points: list[Point] = field(default_factory=list)
    latest: dict[str, float] = field(default_factory=dict)
    # how many figures lines of each program told, beyond how far it is
    programs: Counter[str] = field(default_factory=Counter)
    precision: str = ""  # number format in the log, empty without one
    resumed: list[float] = field(default_factory=list)  # steps from which the run went on after it had been further
    peak_bytes: float | None = None
    first_step: float | None = None
    clock: LogClock = field(default_factory=LogClock)  # that of its times
    _pending: dict[str, float] = field(default_factory=dict)

    def add(self, entries: Iterable[LogEntry], arrived_at: float = math.nan) -> None:
        """Add entries, which came when a clock said so; NaN for what was there before the first sample."""
        for entry in entries:
            self._take(entry, arrived_at)

    @property
    def program(self) -> str:
        """The program that wrote most of the log; empty where nothing was read."""
        return self.programs.most_common(1)[0][0] if self.programs else ""

    @property
    def step(self) -> float | None:
        return self.points[-1].step if self.points else None

    def column(self, figure: str) -> tuple[Numbers, Numbers]:
        """Return steps and values of a figure, where it was logged."""
        pairs = [(point.step, point.figures[figure]) for point in self.points if figure in point.figures]
        steps, values = zip(*pairs, strict=True) if pairs else ((), ())
        return np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)

    def step_seconds(self) -> tuple[Numbers, Numbers]:
        """Return steps and the seconds of each: as logged, else by the log's times, else by arrival."""
        reported = self._reported_seconds()
        return reported if reported[0].size else self._timed_seconds()

    def passed_seconds(self) -> tuple[Numbers, Numbers]:
        """Return steps and the seconds that passed for each, pauses included: by times, else as logged."""
        timed = self._timed_seconds()
        return timed if timed[0].size >= _LEAST_TIMED else self._reported_seconds()

    def arrivals(self) -> Numbers:
        """Return when steps came, on the watcher's clock."""
        times = np.asarray([point.arrived_at for point in self.points], dtype=np.float64)
        return times[np.isfinite(times)]

    def _reported_seconds(self) -> tuple[Numbers, Numbers]:
        steps, seconds = self.column("step_seconds")
        usable = np.isfinite(seconds) & (seconds > 0)
        return steps[usable], seconds[usable]

    def _timed_seconds(self) -> tuple[Numbers, Numbers]:
        """Return what a step took between points that came at different times: several may come at once.

        Where several came at once, a log is looked at more seldom than it grows: a time is that of several looks then.
        """
        logged = any(math.isfinite(point.logged_at) for point in self.points)
        timed = [(point.step, point.logged_at if logged else point.arrived_at) for point in self.points]
        timed = [(step, at_seconds) for step, at_seconds in timed if math.isfinite(at_seconds)]
        first = [
            pair for before, pair in zip([None, *timed], timed, strict=False) if not before or pair[1] != before[1]
        ]
        apart = 0.0 if len(first) == len(timed) else _STEPS_OF_LOOKS
        if apart and len(first) > 1 and first[-1][0] - first[0][0] < apart:
            first, apart = [first[0], first[-1]], 0.0  # all there is so far as one time
        steps, seconds = [], []
        earlier = 0
        for place, (step, at_seconds) in enumerate(first[1:], 1):
            while earlier + 1 < place and step - first[earlier + 1][0] >= apart:
                earlier += 1
            before, then = first[earlier if apart else place - 1]
            if at_seconds > then and step > before and step - before >= apart:
                steps.append(step)
                seconds.append((at_seconds - then) / (step - before))
        return np.asarray(steps, dtype=np.float64), np.asarray(seconds, dtype=np.float64)

    def _take(self, entry: LogEntry, arrived_at: float) -> None:
        figures = dict(entry.figures)
        self.precision = entry.precision or self.precision
        if entry.program and figures:
            # Any program may have a bar that says how far it is.
            self.programs[entry.program] += len(entry.figures.keys() - _PROGRESS)
        if "memory_bytes" in figures:
            self.peak_bytes = max(self.peak_bytes or 0.0, figures["memory_bytes"])
        if "epoch_step" in figures:
            before = figures.get("epoch", 0.0) * figures.get("epoch_steps", 0.0)
            figures.setdefault("step", before + figures["epoch_step"])
        self.latest.update(figures)
        step = figures.pop("step", None)
        logged_at = self.clock.corrected(math.nan if entry.at_seconds is None else entry.at_seconds, arrived_at)
        if step is None or not math.isfinite(step):
            self._without_step(figures, logged_at, arrived_at)
            return
        if self.points and step < self.points[-1].step:
            self._step_back(step, figures)
            return
        if self.first_step is None:
            self.first_step = step
        if not self.points or step > self.points[-1].step:
            self._append(Point(step, {}, logged_at, arrived_at))
        self.points[-1].figures.update({**self._pending, **figures})
        self._pending = {}

    def _append(self, point: Point) -> None:
        self.points.append(point)
        if len(self.points) > 2 * MOST_POINTS:
            del self.points[:-MOST_POINTS]

    def _without_step(self, figures: dict[str, float], logged_at: float, arrived_at: float) -> None:
        """Give figures without a step to the step before them, or count their losses where none is ever logged."""
        newest = self.latest.get("step")
        if newest is not None and self.points:
            self.points[-1].figures.update(figures)
        elif "loss" in figures:
            self._append(Point(self.points[-1].step + 1 if self.points else 1.0, figures, logged_at, arrived_at))
        else:
            self._pending.update(figures)

    def _step_back(self, step: float, figures: dict[str, float]) -> None:
        """Take a step before the newest: logged by another process, rewritten, or repeated by a resumed run."""
        index = bisect_left(self.points, step, key=lambda point: point.step)
        known = self.points[index] if self.points[index].step == step else None
        loss = figures.get("loss")
        again = known is not None and loss is not None and known.figures.get("loss", loss) != loss
        if loss is not None and self.points[-1].step - step > 1 and (known is None or again):
            self.resumed = [*self.resumed[1 - MOST_POINTS :], step]
            self.points[index:] = [Point(step, figures)]
        elif known is not None:
            known.figures.update(figures)


_WARM_UP_SHARE = 0.1  # The first steps compile, allocate and fill caches


@dataclass(frozen=True, slots=True)
class LogFigures:
    """Figures of a whole log."""

    step_seconds: float | None  # median step time after warm-up, in seconds; None where unknown
    peak_bytes: float | None  # largest memory it names; None where unknown
    steps: int


def read_log(place: str) -> LogFigures:
    """Return step time and peak memory from a log of any program; raises StorageError if a folder holds no log."""
    log = open_log(place, LineReader())
    try:
        return figures_of(log.poll(last=True))
    finally:
        log.close()


def figures_of(entries: Iterable[LogEntry]) -> LogFigures:
    """Return step time and peak memory of the entries of a log."""
    curve, known = RunCurve(), list(entries)
    curve.add(known)
    times = [seconds for entry in known if (seconds := entry.figures.get("step_seconds", 0.0)) > 0]
    times = times or curve.step_seconds()[1].tolist()
    steady = times[max(1, round(_WARM_UP_SHARE * len(times))) :] or times
    return LogFigures(median(steady) if steady else None, curve.peak_bytes, len(times))
