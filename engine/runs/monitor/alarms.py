"""What a run does to its machine, sample by sample, and alarms of it, each reported once while it lasts."""

from __future__ import annotations

import math
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from capacity_tui.engine.catalog.rows import LOG_FIGURES, Detector
from capacity_tui.engine.machine import Fact
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.plan import WatchSection
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.logs.run_curve import Numbers, RunCurve
from capacity_tui.engine.runs.monitor.anomalies import (
    LossRise,
    divergence,
    filling,
    full,
    growth,
    held_over,
    not_finite,
    seconds_until_full,
    spike,
    stall,
    stragglers,
    throttling,
)
from capacity_tui.engine.runs.processes import Observation
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_number,
    format_percent,
    format_power,
    format_seconds,
    format_temperature,
)

MOST_SAMPLES = 14_400  # Samples that are kept at least
_NEWEST_REASONS = 600
_GPU_READINGS = (
    "memory_used_bytes",
    "memory_total_bytes",
    "utilization_percent",
    "power_watts",
    "power_limit_watts",
    "temperature_celsius",
)


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Bytes of the disk that a folder is on; NaN where unknown."""

    folder: Path
    free: float
    total: float


class Rows:
    """Numbers that come row by row, as an array at any time; a row of another width starts over."""

    def __init__(self) -> None:
        self._data = np.empty((0, 0))
        self._size = 0

    def append(self, row: Sequence[float]) -> None:
        """Take a row; the oldest half of twice ``MOST_SAMPLES`` is dropped."""
        if self._data.shape[1] != len(row):
            self._data, self._size = np.empty((0, len(row))), 0
        if self._size == 2 * MOST_SAMPLES:
            self._data[:MOST_SAMPLES] = self._data[MOST_SAMPLES:]
            self._size = MOST_SAMPLES
        if self._size == self._data.shape[0]:
            larger = np.empty((min(max(64, 2 * self._size), 2 * MOST_SAMPLES), len(row)))
            larger[: self._size] = self._data
            self._data = larger
        self._data[self._size] = row
        self._size += 1

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return self._data.shape[1]

    @property
    def values(self) -> Numbers:
        """All rows, the oldest first."""
        return self._data[: self._size]

    def column(self, index: int) -> Numbers:
        return self.values[:, index] if self._size else np.empty(0)


@dataclass(slots=True)
class RunSamples:
    """The newest samples of a run."""

    latest: Observation | None = None
    disks: tuple[DiskSpace, ...] = ()  # the disks that the run may write to, as they are now
    _run: Rows = field(default_factory=Rows)
    _free: Rows = field(default_factory=Rows)
    _gpus: dict[str, Rows] = field(default_factory=lambda: {reading: Rows() for reading in _GPU_READINGS})
    _reasons: deque[tuple[tuple[str, ...] | None, ...]] = field(default_factory=lambda: deque(maxlen=_NEWEST_REASONS))

    def add(self, observation: Observation, folders: Sequence[Path] = ()) -> None:
        """Take a sample."""
        system, run = observation.system, observation.run
        share = _number(system.memory_used_bytes) / (_number(system.memory_total_bytes) or math.nan)
        cores = (_number(run.cpu_percent), _number(system.cpu_percent))
        self._run.append((observation.at_seconds, _number(run.rss_bytes), *cores, share))
        gpus = system.gpus.value
        for reading, rows in self._gpus.items():
            # A driver that does not answer for once leaves a gap.
            rows.append([math.nan] * rows.width if gpus is None else [_number(getattr(gpu, reading)) for gpu in gpus])
        self._reasons.append(tuple(gpu.throttle.value for gpu in gpus or ()))
        self.latest, self.disks = observation, tuple(map(_space, folders))
        self._free.append([disk.free for disk in self.disks])

    @property
    def gpus(self) -> tuple[GpuSample, ...]:
        """The GPUs as they were last read."""
        return () if self.latest is None else self.latest.system.gpus.value or ()

    def times(self) -> Numbers:
        """Return when samples were taken, on the monotonic clock."""
        return self._run.column(0)

    def memory(self) -> Numbers:
        """Return main memory of the run's processes; NaN where it was not known."""
        return self._run.column(1)

    def cpu_percent(self) -> Numbers:
        """Return what the run's processes used, of one core; NaN where it was not known."""
        return self._run.column(2)

    def system_cpu_percent(self) -> Numbers:
        """Return what everybody used, of all cores together; NaN where it was not known."""
        return self._run.column(3)

    def main_memory_share(self) -> Numbers:
        """Return the share of main memory that is used, by all processes."""
        return self._run.column(4)

    def of_gpus(self, reading: str) -> Numbers:
        """Return a reading of the devices: one row a sample, one column a device; NaN where there was none."""
        return self._gpus[reading].values

    def throttle_reasons(self, device: int) -> list[tuple[str, ...]]:
        """Return the driver's throttle reasons of a device, with each sample in which it answered."""
        known = (reasons[device] for reasons in self._reasons if len(reasons) > device)
        return [reasons for reasons in known if reasons is not None]

    def disk(self, index: int) -> Numbers:
        """Return free bytes of a disk."""
        return self._free.column(index)


def _number(fact: Fact[int] | Fact[float]) -> float:
    return math.nan if fact.value is None else float(fact.value)


def _space(folder: Path) -> DiskSpace:
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return DiskSpace(folder, math.nan, math.nan)
    return DiskSpace(folder, float(usage.free), float(usage.total))


LOOKS_UNTIL_OVER = 30  # Samples without a sign of an alarm after which it is reported again
LARGEST_SHARE = 0.005  # Share of the time that the detectors may take: after hours there is much to look at
NEWEST_LOSSES = 2000
_READINGS: Mapping[str, Callable[[float], str]] = {
    "power_watts": format_power,
    "utilization_percent": lambda value: f"{value:.0f} % busy",
}


def detectors_of(detectors: Mapping[str, Detector], watch: WatchSection | None) -> dict[str, Detector]:
    """Return the detectors with the thresholds of a plan, where it has some."""
    rows = dict(detectors)
    for kind, (threshold, value) in {} if watch is None else _wanted(watch).items():
        if isinstance(value, float):
            thresholds = {**rows[kind].thresholds, threshold: value}
            rows[kind] = rows[kind].model_copy(update={"thresholds": thresholds})
    return rows


def _wanted(watch: WatchSection) -> dict[str, tuple[str, object]]:
    return {
        "hot": ("celsius", watch.temperature_c),
        "power": ("share", watch.power_share),
        "memory_full": ("share", watch.memory_share),
        "loss_spike": ("widths", watch.loss_spike),
    }


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that goes wrong, or is about to."""

    kind: str
    level: str
    where: str  # what it concerns, such as ``GPU 3``; empty for the run
    title: str
    detail: str
    remedy: str
    figures: Mapping[str, float]
    cause: str = ""  # why, in a word, where the detector distinguishes causes


@dataclass(slots=True)
class Watch:
    """Runs the detectors, and remembers what was reported."""

    detectors: Mapping[str, Detector]  # rows of the catalogue by id
    active: dict[tuple[str, str], Alarm] = field(default_factory=dict)
    _unseen: dict[tuple[str, str], int] = field(default_factory=dict)
    _due: float = -math.inf
    _checked_at: float = -math.inf
    _last_spike: float = -math.inf

    def look(self, curve: RunCurve, samples: RunSamples, now: float, last: bool = False) -> tuple[Alarm, ...]:
        """Return what is new; nothing where looking so often would take more than a share of the time."""
        if now < self._due and not last:
            return ()
        started = time.perf_counter()
        alarms = [*self._log_alarms(curve, now), *self._machine_alarms(samples)]
        new = tuple(alarm for alarm in alarms if (alarm.kind, alarm.where) not in self.active)
        current = {(alarm.kind, alarm.where) for alarm in alarms}
        for key in list(self.active):
            self._unseen[key] = 0 if key in current else self._unseen.get(key, 0) + 1
            if self._unseen[key] > LOOKS_UNTIL_OVER:
                del self.active[key]
        self.active.update({(alarm.kind, alarm.where): alarm for alarm in alarms})
        self._due = now + (time.perf_counter() - started) / LARGEST_SHARE
        return new

    def _log_alarms(self, curve: RunCurve, now: float) -> Iterator[Alarm]:
        for figure in ("loss", "grad_norm"):
            yield from self._not_finite(figure, *curve.column(figure))
        steps, losses = curve.column("loss")
        if steps.size and steps[-1] < self._checked_at:
            self._checked_at = float(steps[-1]) - 1  # a run that was resumed
        yield from self._spikes(steps, losses)
        self._checked_at = float(steps[-1]) if steps.size else self._checked_at
        rise = divergence(losses[-NEWEST_LOSSES:], self._limits("divergence"))
        if rise is not None:
            yield self._alarm("divergence", "", _rise_text(rise), _rise_figures(rise))
        halt = stall(curve.arrivals(), now, self._limits("stall"))
        if halt is not None:
            detail = f"for {format_seconds(halt.waited_seconds)}, usually {format_seconds(halt.usual_seconds)}"
            yield self._alarm("stall", "", detail, {"waited_seconds": halt.waited_seconds})

    def _not_finite(self, figure: str, steps: Numbers, values: Numbers) -> Iterator[Alarm]:
        """Yield where values begin to be no numbers."""
        for end in range(_after(steps, self._checked_at) + 1, steps.size + 1):
            if not_finite(values[:end]) and not not_finite(values[: end - 1]):
                where = f"step {format_number(steps[end - 1])}"
                yield self._alarm("not_finite", where, f"{LOG_FIGURES[figure]}: {values[end - 1]}", {})

    def _spikes(self, steps: Numbers, losses: Numbers) -> Iterator[Alarm]:
        """Yield where losses jump; one that stays up is one jump."""
        limits = self._limits("loss_spike")
        window = round(limits["window"])
        for end in range(_after(steps, self._checked_at) + 1, steps.size + 1):
            rise = spike(losses[max(0, end - window - 2) : end], limits)
            if rise is not None and end > _after(steps, self._last_spike) + window // 2:
                self._last_spike = float(steps[end - 1])
                where = f"step {format_number(steps[end - 1])}"
                yield self._alarm("loss_spike", where, _rise_text(rise), _rise_figures(rise))

    def _machine_alarms(self, samples: RunSamples) -> Iterator[Alarm]:
        if samples.latest is None:
            return
        times = samples.times()
        used, total = samples.of_gpus("memory_used_bytes"), samples.of_gpus("memory_total_bytes")
        memory, shares = samples.memory(), samples.main_memory_share()
        total_bytes = samples.latest.system.memory_total_bytes.value
        # The run has what it holds and what is free.
        reachable = None if total_bytes is None else float(memory[-1] + (1.0 - shares[-1]) * total_bytes)
        yield from self._memory("main memory", times, memory, shares, reachable)
        for device in range(used.shape[1]):
            used_bytes, capacity = used[:, device], float(total[-1, device])
            yield from self._memory(
                f"GPU {device}", times[-used_bytes.size :], used_bytes, used_bytes / capacity, capacity
            )
            yield from self._throttling(samples, device)
            yield from self._beyond_the_plan(samples, device)
        for reading, written in _READINGS.items():
            for outlier in stragglers(samples.of_gpus(reading), self._limits("straggler")):
                detail = f"{written(outlier.value)} where the others have {written(outlier.peers)}"
                figures = {reading: outlier.value, "peers": outlier.peers}
                yield self._alarm("straggler", f"GPU {outlier.device}", detail, figures)
        for index, disk in enumerate(samples.disks):
            free_bytes = samples.disk(index)
            filled = filling(times[-free_bytes.size :], free_bytes, disk.total, self._limits("disk"))
            if filled is not None:
                free = f"{format_bytes(filled.free_bytes)} free"
                until = f", full in {format_seconds(filled.seconds)}" if math.isfinite(filled.seconds) else ""
                once = f", up to {format_bytes(filled.rise_bytes)} at once" if filled.rise_bytes else ""
                figures = {"free_bytes": filled.free_bytes, "seconds": filled.seconds}
                yield self._alarm("disk", str(disk.folder), f"{free}{until}{once}", figures)

    def _memory(
        self, where: str, times: Numbers, used: Numbers, shares: Numbers, capacity: float | None
    ) -> Iterator[Alarm]:
        if full(shares, self._limits("memory_full")):
            yield self._alarm("memory_full", where, f"{format_percent(float(shares[-1]))} used", {"share": shares[-1]})
        leak = growth(times, used, self._limits("leak"))
        if leak is None:
            return
        until = None if capacity is None or not math.isfinite(capacity) else seconds_until_full(leak, capacity)
        figures = {"bytes_per_second": leak.slope.value}
        detail = f"{format_bandwidth(leak.slope.value)} for {format_seconds(leak.since_seconds)}"
        if until is not None:
            figures |= {"full_in_seconds": float(until.value), "low": float(until.low), "high": float(until.high)}
            latest = format_seconds(float(until.high)) if np.isfinite(until.high) else "never"
            detail += f", full in {format_seconds(float(until.value))} ({format_seconds(float(until.low))} - {latest})"
        yield self._alarm("leak", where, detail, figures)

    def _throttling(self, samples: RunSamples, device: int) -> Iterator[Alarm]:
        row = self.detectors["throttling"]
        cause = throttling(samples.throttle_reasons(device), row.thresholds, row.causes)
        if cause is not None:
            detail = f"for {cause.cause} ({', '.join(cause.reasons)}) in {format_percent(cause.share)} of samples"
            yield replace(self._alarm("throttling", f"GPU {device}", detail, {"share": cause.share}), cause=cause.cause)

    def _beyond_the_plan(self, samples: RunSamples, device: int) -> Iterator[Alarm]:
        """Yield heat and power beyond what the plan, or the detector without one, allows."""
        degrees = samples.of_gpus("temperature_celsius")[:, device]
        limits = self._limits("hot")
        if held_over(degrees, limits["celsius"], round(limits["samples"])):
            detail = (
                f"{format_temperature(float(degrees[-1]))}, reported from {format_temperature(limits['celsius'])} on"
            )
            yield self._alarm("hot", f"GPU {device}", detail, {"celsius": degrees[-1]})
        watts, most = (samples.of_gpus(name)[:, device] for name in ("power_watts", "power_limit_watts"))
        shares = np.divide(watts, most, out=np.full(watts.shape, np.nan), where=most > 0)
        limits = self._limits("power")
        if held_over(shares, limits["share"], round(limits["samples"])):
            detail = (
                f"{format_percent(float(shares[-1]))} of its limit, reported from {format_percent(limits['share'])} on"
            )
            yield self._alarm("power", f"GPU {device}", detail, {"share": shares[-1]})

    def _limits(self, kind: str) -> Mapping[str, float]:
        return self.detectors[kind].thresholds

    def _alarm(self, kind: str, where: str, detail: str, figures: Mapping[str, float]) -> Alarm:
        row = self.detectors[kind]
        numbers = {name: float(number) for name, number in figures.items() if math.isfinite(number)}
        return Alarm(kind, row.level, where, row.name, detail, row.remedy, numbers)


def _after(steps: Numbers, step: float) -> int:
    """Return how many steps there were up to one."""
    return int(np.searchsorted(steps, step, side="right"))


def _rise_text(rise: LossRise) -> str:
    return f"{rise.value:.4g}, before {rise.usual:.4g}"


def _rise_figures(rise: LossRise) -> dict[str, float]:
    return {"loss": rise.value, "usual": rise.usual, "widths": rise.widths}
