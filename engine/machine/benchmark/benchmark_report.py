"""Benchmark results: kept in the user's folder by date, read back as measured facts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from capacity_tui.engine.files import data_folder, make_folder, write_atomically
from capacity_tui.engine.machine.benchmark.cooling import BUSY_SHARE, Cooling
from capacity_tui.engine.machine.facts import Fact, missing
from capacity_tui.engine.machine.machine import Machine, MeasuredFacts

Unit = Literal["B/s", "FLOP/s", "s", "1/s", "patterns/s"]

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
    """What benchmarks are given.

    Attributes:
        cache_bytes: the processor's last-level cache, which memory tests must exceed.
        memory_bytes: main memory that may be used.
        url: address to measure the network to; None opens no connection but to this machine itself.
    """

    folder: Path
    cache_bytes: int
    memory_bytes: int
    threads: int
    url: str | None = None
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
    taken: list[float] = []
    end = time.perf_counter() + ENOUGH_SECONDS
    while len(taken) < FEWEST_SAMPLES or (time.perf_counter() < end and len(taken) < MOST_SAMPLES):
        conditions.check()
        started = time.perf_counter()
        call()
        taken.append(max(time.perf_counter() - started, 1e-9))
    return taken


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
    """Return where results are kept."""
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
        reports: reports, the newest first.
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


def _report(data: Mapping[str, Any]) -> BenchmarkReport:
    figures = [Measurement(**{**figure, "spread": Spread(**figure["spread"])}) for figure in data["measured"]]
    for figure in figures:
        if not 0 < figure.spread.median < MOST:
            raise ValueError(f"{figure.id}: {figure.spread.median!r} is no rate of a machine")
    return BenchmarkReport(
        date=str(data["date"]),
        processor=str(data["processor"]),
        threads=int(data["threads"]),
        devices=tuple(str(name) for name in data["devices"]),
        complete=bool(data["complete"]),
        measured=tuple(figures),
        skipped=tuple(Skipped(**entry) for entry in data["skipped"]),
        cooling=tuple(Cooling(**entry) for entry in data.get("cooling", ())),
        busy_share=data.get("busy_share"),
    )
