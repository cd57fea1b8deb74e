"""Benchmark results: kept in the user's folder by date, read back as measured facts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Literal

from capacity_tui.engine.files import data_folder, make_folder, write_atomically
from capacity_tui.engine.machine.facts import Fact, missing
from capacity_tui.engine.machine.machine import Accelerator, Machine, MeasuredFacts
from capacity_tui.engine.machine.sample import Counters
from capacity_tui.engine.machine.vendors.vendor import GpuSample
from capacity_tui.engine.record import dataclass, record_of_data

Verdict = Literal["adequate", "at its limit", "inadequate", "not known"]
BUSY_PERCENT = 80.0  # a GPU below this is not under load
FEWEST_LOAD_SAMPLES = 10
OFTEN = 0.05  # share of samples under load with heat throttling above which cooling does not carry the load
CLOSE_CELSIUS = 5.0  # to the limit
HELD_WELL, HELD_BADLY = 0.97, 0.9  # of a processor's first rate, under load: noise above, less heat carried off below

# Where the driver's limit is unknown: NVIDIA's and AMD's desktop cards begin to lower the clock at 83-95 °C.
ASSUMED_LIMIT_CELSIUS = 83.0

HEAT = ("thermal (software)", "thermal (hardware)", "hardware slowdown")
POWER = ("power cap", "power brake")


@dataclass(frozen=True, slots=True)
class Cooling:
    """A judgement of one GPU's cooling with the evidence for it."""

    index: int
    verdict: Verdict
    evidence: str


def judge_cooling(machine: Machine, samples: Sequence[Sequence[GpuSample]]) -> tuple[Cooling, ...]:
    """Return a judgement for every GPU from samples over a load, oldest first."""
    return tuple(_judge(gpu, _under_load(gpu.index, samples)) for gpu in machine.accelerators)


def cooling_now(machine: Machine) -> tuple[str, ...]:
    """Return the state of the cooling: thermal throttling and temperatures now, and what was measured under a load."""
    devices = []
    throttles, celsius = machine.power.package_throttles, machine.power.package_celsius
    if throttles.value:
        devices.append(
            f"processor: at its limit, heat held the clock down {throttles.value} times since the system started"
        )
    elif throttles.value == 0:
        devices.append("processor: adequate so far, heat has not held the clock down since the system started")
    elif celsius.value is not None:
        devices.append(f"processor: {celsius.value:.0f} °C now")
    held = None if machine.benchmarked is None else machine.benchmarked.held_share
    if held is not None and held.value is not None:
        weak = "at its limit" if held.value >= HELD_BADLY else "inadequate"
        verdict = "adequate" if held.value >= HELD_WELL else weak
        devices.append(f"processor under load: {verdict}, it kept {held.value:.0%} of its rate ({held.source})")
    for gpu in machine.accelerators:
        warm, limit = gpu.temperature_celsius.value, temperature_limit(gpu)
        reasons = [reason for reason in gpu.throttle.value or () if reason in HEAT]
        if reasons:
            devices.append(f"GPU {gpu.index}: inadequate, {', '.join(reasons)} holds the clock down now")
        elif warm is not None:
            devices.append(f"GPU {gpu.index}: {warm:.0f} of {limit:.0f} °C now")
    return tuple(devices)


def temperature_limit(gpu: Accelerator) -> float:
    """Return the temperature in degrees Celsius above which the clock falls."""
    return gpu.temperature_limit_celsius.value or ASSUMED_LIMIT_CELSIUS


def _under_load(index: int, samples: Sequence[Sequence[GpuSample]]) -> list[GpuSample]:
    readings = (sample for reading in samples for sample in reading if sample.index == index)
    return [sample for sample in readings if (sample.utilization_percent.value or 0.0) >= BUSY_PERCENT]


def _judge(gpu: Accelerator, busy: list[GpuSample]) -> Cooling:
    if len(busy) < FEWEST_LOAD_SAMPLES:
        return Cooling(gpu.index, "not known", f"{len(busy)} samples under load, {FEWEST_LOAD_SAMPLES} wanted")
    hot = _share(busy, HEAT)
    capped = _share(busy, POWER)
    warmest = max((sample.temperature_celsius.value or 0.0) for sample in busy)
    limit = temperature_limit(gpu)
    temperatures = f"up to {warmest:.0f} of {limit:.0f} °C over {len(busy)} samples under load"
    if hot > OFTEN:
        return Cooling(gpu.index, "inadequate", f"heat held the clock down in {hot:.0%} of them; {temperatures}")
    if warmest >= limit - CLOSE_CELSIUS:
        return Cooling(gpu.index, "at its limit", temperatures)
    if warmest == 0.0:
        return Cooling(gpu.index, "not known", "the device does not tell its temperature")
    power = f"; the power limit held the clock down in {capped:.0%}" if capped > OFTEN else ""
    return Cooling(gpu.index, "adequate", temperatures + power)


def _share(samples: list[GpuSample], reasons: tuple[str, ...]) -> float:
    throttled = [sample for sample in samples if set(sample.throttle.value or ()) & set(reasons)]
    return len(throttled) / len(samples)


BUSY_SHARE = 0.1  # from here on figures are not this machine's: less is the system's own work


@dataclass(frozen=True, slots=True)
class Totals:
    """Running totals of the whole machine, and this process's own CPU seconds."""

    at_seconds: float
    counters: Counters
    own_seconds: float


def read_totals(counters: Callable[[], Counters]) -> Totals:
    return Totals(time.monotonic(), counters(), time.process_time())


def busy_share(before: Totals, after: Totals, threads: int) -> float | None:
    """Return the share of the usable CPUs that others took between two readings; None where nothing counts them.

    CPUs that this process may not use count only when there are too few left: share = (others + usable - all) / usable.
    """
    busy, total = _between(before, after, "busy_seconds"), _between(before, after, "total_seconds")
    elapsed = after.at_seconds - before.at_seconds
    if busy is None or total is None or elapsed <= 0 or threads < 1:
        return None
    busy_elsewhere = max(0.0, busy - (after.own_seconds - before.own_seconds)) / elapsed
    return min(1.0, max(0.0, busy_elsewhere + threads - total / elapsed) / threads)


def _between(before: Totals, after: Totals, name: str) -> float | None:
    first, second = getattr(before.counters, name), getattr(after.counters, name)
    return None if first is None or second is None else second - first


Unit = Literal["B/s", "FLOP/s", "s", "1/s", "patterns/s", "share"]
ENOUGH_SECONDS = 1.0  # of one figure: long enough for a dozen samples of most, short enough to wait for
FEWEST_SAMPLES, MOST_SAMPLES = 5, 200


class CancelledError(Exception):
    """The user stopped the benchmarks."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median of several samples with their 10th and 90th percentile."""

    median: float
    p10: float
    p90: float
    samples: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure; ``how`` says what exactly was done."""

    id: str
    name: str
    unit: Unit
    spread: Spread
    how: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A benchmark that was not run, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Conditions:
    """What benchmarks are given."""

    folder: Path
    cache_bytes: int  # the processor's last-level cache, which memory tests must exceed
    memory_bytes: int  # main memory that may be used
    threads: int
    url: str | None = None  # address to measure the network to; None opens no connection but to this machine itself
    cancelled: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise CancelledError if the user stopped the benchmarks."""
        if self.cancelled.is_set():
            raise CancelledError


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of ascending values lies, interpolated between them."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def spread(samples: Sequence[float]) -> Spread:
    """Return median, 10th and 90th percentile, interpolated between the samples."""
    ordered = sorted(samples)
    return Spread(quantile(ordered, 0.5), quantile(ordered, 0.1), quantile(ordered, 0.9), len(ordered))


def rates(call: Callable[[], object], amount: float, conditions: Conditions) -> Spread:
    """Return how much a call does a second, over repeated calls after one to warm up.

    Args:
        amount: what one call does, in the numerator of the unit.
    """
    return spread([amount / seconds for seconds in durations(call, conditions)])


def durations(call: Callable[[], object], conditions: Conditions) -> list[float]:
    """Return the seconds of repeated calls after one to warm up."""
    call()
    seconds_taken: list[float] = []
    end = time.perf_counter() + ENOUGH_SECONDS
    while len(seconds_taken) < FEWEST_SAMPLES or (time.perf_counter() < end and len(seconds_taken) < MOST_SAMPLES):
        conditions.check()
        started = time.perf_counter()
        call()
        seconds_taken.append(max(time.perf_counter() - started, 1e-9))
    return seconds_taken


FOLDER = "benchmarks"
MOST = 1e18  # FLOP/s, B/s: no machine of today has a thousandth of it
MEASURING = "capacity-tui detect --benchmark"
NOT_MEASURED = f"not measured on this machine; {MEASURING} does"

FIGURES = {
    "fp32_flops": "cpu.gemm.fp32",
    "fp64_flops": "cpu.gemm.fp64",
    "memory_bandwidth": "memory.triad",
    "disk_read": "disk.read",
    "disk_write": "disk.write",
    "random_reads": "disk.random_read",
    "loopback_seconds": "network.loopback",
    "download": "network.download",
    "core_speed": "cpu.core",
    "held_share": "cpu.held",
    "stored_patterns": "database.store",
    "found_patterns": "database.find",
}
"""The figure behind each measured fact of a machine."""


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """What was measured, when and on what.

    ``complete`` is False if the user stopped it; ``cooling`` judges the GPUs by their sensors under the load;
    ``busy_share`` is the part of the usable processor that others took meanwhile, None where unknown.
    """

    date: str
    processor: str
    threads: int
    devices: tuple[str, ...]
    complete: bool
    measured: tuple[Measurement, ...]
    skipped: tuple[Skipped, ...]
    cooling: tuple[Cooling, ...] = ()
    busy_share: float | None = None

    @property
    def disturbed(self) -> bool:
        """Whether others took so much of the machine that the figures are not its own."""
        return (self.busy_share or 0.0) > BUSY_SHARE

    def find(self, identifier: str) -> Measurement | None:
        """Return one figure by its id."""
        return next((figure for figure in self.measured if figure.id == identifier), None)


def benchmarks_folder() -> Path:
    return data_folder() / FOLDER


def save_report(report: BenchmarkReport, folder: Path) -> Path:
    """Write a report under its date and return where; raises StorageError."""
    make_folder(folder)
    path = folder / f"{report.date.replace(':', '')}.json"
    write_atomically(path, json.dumps(asdict(report), indent=1) + "\n", overwrite=True)
    return path


def read_reports(folder: Path) -> tuple[BenchmarkReport, ...]:
    """Return the reports of a folder, newest first; files that are none are left out."""
    reports = (_read(path) for path in sorted(folder.glob("*.json"), reverse=True))
    return tuple(report for report in reports if report is not None)


def measured_facts(folder: Path, machine: Machine) -> MeasuredFacts:
    """Return the newest figures that were measured on this processor, undisturbed, with as many threads.

    A home folder may be shared between machines: what another one measured does not count.
    """
    return facts_of(read_reports(folder), machine, str(folder))


def facts_of(reports: Iterable[BenchmarkReport], machine: Machine, where: str) -> MeasuredFacts:
    """Return the figures of reports that count on a machine, of several the first.

    Args:
        where: source of the reports, for facts that are in none.
    """
    matching = [report for report in reports if _same(report, machine)]
    undisturbed = [report for report in matching if not report.disturbed]

    def fact(identifier: str) -> Fact[float]:
        for report in undisturbed:
            figure = report.find(identifier)
            if figure is not None:
                return Fact(figure.spread.median, "measured", f"{figure.name} on {report.date[:10]}, {figure.how}")
        disturbed = next((report for report in matching if report.disturbed and report.find(identifier)), None)
        return missing(where, NOT_MEASURED if disturbed is None else busy_text(disturbed))

    return MeasuredFacts(**{name: fact(identifier) for name, identifier in FIGURES.items()})


def busy_text(report: BenchmarkReport) -> str:
    """Return why the figures of a disturbed report do not count."""
    share = f"{report.busy_share or 0.0:.0%}"
    return f"measured on {report.date[:10]} while others took {share} of the processor; measure again when it is idle"


def _same(report: BenchmarkReport, machine: Machine) -> bool:
    return (report.processor, report.threads) == (machine.cpu.model.value, machine.cpu.usable_threads.value)


def _read(path: Path) -> BenchmarkReport | None:
    try:
        return _report(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _report(data: object) -> BenchmarkReport:
    report = record_of_data(BenchmarkReport, data)
    for figure in report.measured:
        if not 0 < figure.spread.median < MOST:
            raise ValueError(f"{figure.id}: {figure.spread.median!r} is no rate of a machine")
    return report
