"""What a run used from its start to its end (peaks, means over time, totals), and an endpoint's latency meanwhile."""

from __future__ import annotations

import http.client
import math
import threading
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from capacity_tui.engine.machine import Counters
from capacity_tui.engine.machine.benchmark import Address, round_trip, web_address
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.command import Ended
from capacity_tui.engine.runs.processes import COUNTERS, GONE, Observation
from capacity_tui.engine.runs.profile.snapshots import GPU_NUMBERS, NUMBERS, GpuSnapshot, ResourceSnapshot, Snapshots

THROTTLED_BY_CHOICE = ("application clocks", "display clocks", "sync boost")
"""A limit that was set, not one that throttles a device."""
_SYSTEM_COUNTS = (
    "disk_read",
    "disk_written",
    "disk_reads",
    "disk_writes",
    "received",
    "sent",
    "packets_received",
    "packets_sent",
)


@dataclass(slots=True)
class Course:
    """One number over time: its peak, its mean weighed by time, its last value; None where it was never known."""

    peak: float | None = None
    last: float | None = None
    _weighed: float = 0.0
    _seconds: float = 0.0

    def add(self, value: float | None, seconds: float) -> None:
        """Add a value that stood for some seconds."""
        if value is None:
            return
        self.last = value
        self.peak = value if self.peak is None else max(self.peak, value)
        self._weighed += value * seconds
        self._seconds += seconds

    @property
    def mean(self) -> float | None:
        """The mean over time."""
        return self._weighed / self._seconds if self._seconds else self.last


@dataclass(frozen=True, slots=True)
class GpuUsage:
    """One GPU over a run."""

    index: int  # in the order of detection
    numbers: Mapping[str, Course]  # mean and peak of each number of a snapshot of it, by name
    throttled: Mapping[str, float]  # share of the time in which each reason throttled its clock


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run and its machine used."""

    seconds: float
    snapshots: int
    numbers: Mapping[str, Course]  # mean and peak of each number of a snapshot, by name
    cores: tuple[float, ...] | None  # mean use of each logical CPU in percent; None where it could not be read
    # CPU seconds, bytes and operations of the run, by name; None where they could not be read
    totals: Mapping[str, float | None]
    system_totals: Mapping[str, float | None]  # bytes, operations and packets of the machine meanwhile, likewise
    first_memory_bytes: float | None  # what the run held at the first sample
    peak_memory_bytes: float | None  # the most it held, at any sample or, of its largest process, at any time
    gpus: tuple[GpuUsage, ...]  # in the order of detection
    reasons: Mapping[str, str]  # why anything could not be read, by name

    def mean(self, name: str) -> float | None:
        """Return the mean of a number of snapshots."""
        return self.numbers[name].mean

    def peak(self, name: str) -> float | None:
        """Return the peak of a number of snapshots."""
        return self.numbers[name].peak


@dataclass(slots=True)
class _GpuCourse:
    numbers: dict[str, Course] = field(default_factory=lambda: {name: Course() for name in GPU_NUMBERS})
    throttled: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, gpu: GpuSnapshot, seconds: float) -> None:
        for name, course in self.numbers.items():
            course.add(getattr(gpu, name), seconds)
        if gpu.throttle is not None:
            self.seconds += seconds
            for reason in set(gpu.throttle) - set(THROTTLED_BY_CHOICE):
                self.throttled[reason] = self.throttled.get(reason, 0.0) + seconds

    def shares(self) -> dict[str, float]:
        """Return the share of the time in which each reason throttled the clock."""
        return {
            why: throttled_seconds / self.seconds for why, throttled_seconds in self.throttled.items() if self.seconds
        }


class Account:
    """Adds up observations as they come; holds no more however long a run takes."""

    def __init__(self) -> None:
        self.snapshots = Snapshots()
        self._count = 0
        self._seconds = 0.0
        self._numbers = {name: Course() for name in NUMBERS}
        self._cores: list[Course] = []
        self._gpus: dict[int, _GpuCourse] = {}
        self._first: Observation | None = None
        self._last: Observation | None = None
        self._system: dict[str, float] = {}

    def add(
        self, observation: Observation, stage: str = "", latency_ms: float | None = None
    ) -> ResourceSnapshot | None:
        """Add an observation and return its snapshot; None where the run is over."""
        if self._last is not None:
            self._count_system(self._last.system.counters, observation.system.counters)
            if observation.run.rss_bytes.reason == GONE:
                self._last = replace(self._last, system=observation.system)
                return None
        snapshot = self.snapshots.take(observation, stage, latency_ms)
        self._count += 1
        self._seconds += snapshot.seconds
        for name, course in self._numbers.items():
            course.add(getattr(snapshot, name), snapshot.seconds)
        cores = snapshot.cpu_per_core_percent or ()
        self._cores += [Course() for _ in range(len(cores) - len(self._cores))]
        for core, percent in zip(self._cores, cores, strict=False):
            core.add(percent, snapshot.seconds)
        for gpu in snapshot.gpus:
            self._gpus.setdefault(gpu.index, _GpuCourse()).add(gpu, snapshot.seconds)
        self._first, self._last = self._first or observation, observation
        return snapshot

    def usage(self, ended: Ended | None = None) -> Usage:
        """Return what was used so far; ``ended`` is what the kernel says of a command that has ended."""
        memory = self._numbers["memory_bytes"]
        largest = [ended.largest_rss_bytes] if ended and ended.largest_rss_bytes is not None else []
        peaks = [value for value in (memory.peak, *largest) if value is not None]
        return Usage(
            seconds=ended.seconds if ended else self._seconds,
            snapshots=self._count,
            numbers=_copied(self._numbers),
            cores=tuple(core.mean for core in self._cores if core.mean is not None) or None,
            totals={name: self._total(name, ended) for name in COUNTERS},
            system_totals={name: self._system.get(name) for name in _SYSTEM_COUNTS},
            first_memory_bytes=self._first.run.rss_bytes.value if self._first else None,
            peak_memory_bytes=max(peaks, default=None),
            gpus=tuple(
                GpuUsage(index, _copied(gpu.numbers), gpu.shares()) for index, gpu in sorted(self._gpus.items())
            ),
            reasons=dict(self.snapshots.reasons),
        )

    def _total(self, name: str, ended: Ended | None) -> float | None:
        """Return what the run has used since the first sample, or in all if this program started it."""
        counted: float | None = getattr(ended, name, None)  # what the kernel counts to the end, past the last sample
        if self._first is None or self._last is None:
            return counted
        start, end = getattr(self._first.run, name), getattr(self._last.run, name)
        if end.value is None:
            self.snapshots.reasons.setdefault(name, end.reason)
            return counted
        # A command that is started here has used nothing before the first sample.
        total = float(end.value if ended else end.value - (start.value or 0))
        return total if counted is None else max(counted, total)

    def _count_system(self, before: Counters, now: Counters) -> None:
        """Add what the machine's counters have moved on; one that restarts continues from there."""
        for name in _SYSTEM_COUNTS:
            then, counted = getattr(before, name), getattr(now, name)
            if then is None or counted is None:
                self.snapshots.reasons[name] = "this system gives no such counter"
            elif counted < then:
                self.snapshots.reasons[name] = "the counter started anew, what it had counted since is not in the total"
                self._system.setdefault(name, 0.0)
            else:
                self._system[name] = self._system.get(name, 0.0) + counted - then


def _copied(courses: Mapping[str, Course]) -> dict[str, Course]:
    return {name: replace(course) for name, course in courses.items()}


_MOST = 100_000  # Most answers kept; beyond that the older half is dropped


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of an endpoint; milliseconds, None where it never answered."""

    url: str
    asked: int
    failed: int  # how often it did not answer
    # median and 95th percentile until it accepted a connection, resolved, with TLS where it is secure
    connect_ms: tuple[float, float] | None
    round_trip_ms: tuple[float, float] | None  # likewise from a request sent to the head of its answer
    mean_ms: float | None  # mean of the round trips
    last_failure: str  # why it did not answer the last time it did not
    status: int | None


class LatencyProbe:
    """Polls an endpoint once an interval; answers are read and dropped."""

    def __init__(self, url: str, interval: float) -> None:
        self._url = url
        self._address = web_address(url)
        self._interval = interval
        self._stopped = threading.Event()
        self._connects, self._trips = array("d"), array("d")
        self._requests = self._failed = 0
        self._failure = ""
        self._status: int | None = None
        self._thread = threading.Thread(target=self._work, name="latency", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop polling; a request under way is abandoned."""
        self._stopped.set()

    @property
    def last_ms(self) -> float | None:
        """The last round trip."""
        return self._trips[-1] if self._trips else None

    def result(self) -> Latency:
        """Return the latency measured so far."""
        trips = self._trips[:]
        return Latency(
            url=self._url,
            asked=self._requests,
            failed=self._failed,
            connect_ms=_quantiles(self._connects[:]),
            round_trip_ms=_quantiles(trips),
            mean_ms=sum(trips) / len(trips) if trips else None,
            last_failure=self._failure,
            status=self._status,
        )

    def _work(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            self._requests += 1
            try:
                self._ask(self._address)
            except (OSError, http.client.HTTPException) as error:
                self._failed += 1
                self._failure = str(error) or type(error).__name__
            self._stopped.wait(max(0.0, began + self._interval - time.monotonic()))

    def _ask(self, address: Address) -> None:
        trip = round_trip(address)
        self._status = trip.status
        self._connects.append(1000 * trip.connect_seconds)
        self._trips.append(1000 * trip.answer_seconds)
        if len(self._trips) > _MOST:
            del self._connects[: _MOST // 2], self._trips[: _MOST // 2]


def _quantiles(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the median and the 95th percentile, each a value that occurred."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[math.ceil(0.5 * len(ordered)) - 1], ordered[math.ceil(0.95 * len(ordered)) - 1]
