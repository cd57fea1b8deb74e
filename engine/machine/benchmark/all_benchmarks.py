"""All benchmarks one after the other, with progress and a way to stop."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import cast

from capacity_tui.engine.machine.benchmark.benchmark_report import (
    BenchmarkReport,
    CancelledError,
    Conditions,
    Cooling,
    Measurement,
    Skipped,
    busy_share,
    judge_cooling,
    read_totals,
)
from capacity_tui.engine.machine.machine import Machine
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.sample import Counters, GpuSensors, KernelCounters
from capacity_tui.engine.machine.vendors.vendor import GpuSample
from capacity_tui.engine.record import dataclass

Benchmark = Callable[[Conditions], Iterator[Measurement | Skipped]]

MODULES = {
    "memory": ("device_speed", "measure_memory"),
    "cpu": ("device_speed", "measure_processor"),
    "gpu": ("device_speed", "measure_accelerators"),
    "disk": ("io_speed", "measure_disk"),
    "network": ("io_speed", "measure_network"),
}

GROUPS = tuple(MODULES)
LEAST_CACHE_BYTES = 32 << 20  # where the caches are unknown


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the benchmarks are; ``latest`` is the figure that just came in."""

    group: str
    done: int
    total: int
    latest: Measurement | Skipped | None = None


def run_benchmarks(
    machine: Machine,
    groups: Iterable[str] = GROUPS,
    folder: Path | None = None,
    url: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: threading.Event | None = None,
    counters: Callable[[], Counters] | None = None,
    more: Mapping[str, Benchmark] | None = None,
) -> BenchmarkReport:
    """Measure this machine and return what was found; stopping keeps what is complete.

    Args:
        machine: what was detected; sizes are chosen by it.
        groups: which of GROUPS to run, in that order, before ``more``.
        folder: where the disk is measured; the temporary folder by default.
        url: web address to measure the network to; none opens no connection beyond this machine.
        progress: called before each group and after each figure, in the caller's thread.
        counters: reads the machine's running totals, for the work of others meanwhile; the kernel's by default.
        more: further groups by name, measured after these.
    """
    counted = counters or KernelCounters(Host()).read
    before = read_totals(counted)
    conditions = _conditions(machine, folder, url, cancelled or threading.Event())
    benchmarks = {group: partial(_group_benchmark, group) for group in GROUPS if group in set(groups)}
    chosen: dict[str, Benchmark] = {**benchmarks, **(more or {})}
    figures: list[Measurement | Skipped] = []
    cooling: tuple[Cooling, ...] = ()
    complete = True
    for done, (group, benchmark) in enumerate(chosen.items()):
        progress(Progress(group, done, len(chosen)))
        try:
            watching = watched(GpuSensors(Host(), detailed=True).read) if group == "gpu" else nullcontext(GpuReadings())
            with watching as readings:
                for figure in benchmark(conditions):
                    figures.append(figure)
                    progress(Progress(group, done, len(chosen), figure))
                    conditions.check()
        except CancelledError:
            figures.append(Skipped(group, "stopped"))
            complete = False
            break
        if readings:
            cooling = judge_cooling(machine, readings)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    cpu = machine.cpu
    return BenchmarkReport(
        date=date,
        processor=cpu.model.value or "unknown",
        threads=cpu.usable_threads.value or 0,
        devices=tuple(gpu.name.value or gpu.vendor for gpu in machine.accelerators),
        complete=complete,
        measured=tuple(figure for figure in figures if isinstance(figure, Measurement)),
        skipped=tuple(figure for figure in figures if isinstance(figure, Skipped)),
        cooling=cooling,
        busy_share=busy_share(before, read_totals(counted), conditions.threads),
    )


def _conditions(machine: Machine, folder: Path | None, url: str | None, cancelled: threading.Event) -> Conditions:
    caches = machine.cpu.caches.value or ()
    return Conditions(
        folder=folder or Path(tempfile.gettempdir()),
        cache_bytes=max([LEAST_CACHE_BYTES, *(cache.size_bytes * cache.count for cache in caches if cache.level >= 3)]),
        memory_bytes=machine.memory.available_bytes.value or machine.memory.total_bytes.value or 0,
        threads=machine.cpu.usable_threads.value or 1,
        url=url,
        cancelled=cancelled,
    )


def _group_benchmark(group: str, conditions: Conditions) -> Iterator[Measurement | Skipped]:
    """Run one group's benchmark, loading NumPy and the like only now."""
    module, function = MODULES[group]
    return cast("Benchmark", getattr(import_module(f"{__package__}.{module}"), function))(conditions)


INTERVAL_SECONDS = 0.5  # reading the driver more often slows the work it watches
LAST_WAIT_SECONDS = 1.0
GpuReadings = list[tuple[GpuSample, ...]]


@contextmanager
def watched(read: Callable[[], tuple[GpuSample, ...]]) -> Iterator[GpuReadings]:
    """Yield a list that fills with readings until the block ends; it stays empty where no GPU can be read."""
    readings: GpuReadings = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(INTERVAL_SECONDS):
            try:
                readings.append(read())
            except NotPresentError:
                return

    watcher = threading.Thread(target=watch, name="watching", daemon=True)
    watcher.start()
    try:
        yield readings
    finally:
        ended.set()
        watcher.join(LAST_WAIT_SECONDS)
