"""All benchmarks one after the other, with a way to stop; the speed of processors, main memory and accelerators."""

from __future__ import annotations

import importlib.util
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.machine.benchmark.benchmark_report import (
    FEWEST_SAMPLES,
    BenchmarkReport,
    CancelledError,
    Conditions,
    Cooling,
    Measurement,
    Skipped,
    Spread,
    busy_share,
    judge_cooling,
    quantile,
    rates,
    read_totals,
    spread,
)
from capacity_tui.engine.machine.benchmark.io_speed import measure_disk, measure_network
from capacity_tui.engine.machine.machine import Machine
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.sample import Counters, GpuSensors, KernelCounters
from capacity_tui.engine.machine.vendors.registry import VENDORS
from capacity_tui.engine.machine.vendors.vendor import GpuSample
from capacity_tui.engine.record import dataclass

Benchmark = Callable[[Conditions], Iterator[Measurement | Skipped]]

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
    groups: Iterable[str] | None = None,
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
        groups: which of GROUPS to run, before ``more``; all by default.
        folder: where the disk is measured; the temporary folder by default.
        url: web address to measure the network to; none opens no connection beyond this machine.
        progress: called before each group and after each figure, in the caller's thread.
        counters: reads the machine's running totals, for the work of others meanwhile; the kernel's by default.
        more: further groups by name, measured after these.
    """
    counted = counters or KernelCounters(Host()).read
    before = read_totals(counted)
    conditions = _conditions(machine, folder, url, cancelled or threading.Event())
    wanted = GROUPS.keys() if groups is None else set(groups)
    chosen = {name: benchmark for name, benchmark in GROUPS.items() if name in wanted} | dict(more or {})
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


SIZE = 2048  # beyond this the rate of common libraries grows by a few per cent at most
SMALLER = 1024  # for machines where one product of the size above takes long
SLOW_CORES = 4
SCHEDULE = 1.0 / counted("server-core-schedules")
LOAD_SECONDS = 8.0  # heat of a laptop's processor shows within seconds; a tower's takes minutes, which nobody waits for


def measure_processor(conditions: Conditions) -> Iterator[Measurement]:
    """Yield the rate of square products in FLOP/s: 2n³ operations over their time."""
    size = SIZE if conditions.threads > SLOW_CORES else SMALLER
    for name, kind in (("fp32", np.float32), ("fp64", np.float64)):
        conditions.check()
        numbers = np.random.default_rng(0)
        left, right = (numbers.random((size, size)).astype(kind) for _ in range(2))
        target = np.empty_like(left)
        flop_rates = rates(lambda a=left, b=right, c=target: np.matmul(a, b, out=c), 2.0 * size**3, conditions)  # type: ignore[misc]
        how = f"{size}×{size}, NumPy's BLAS"
        yield Measurement(f"cpu.gemm.{name}", f"CPU matrix product, {name}", "FLOP/s", flop_rates, how)
    how = "schedules of requests made, written as JSON and read, over what a core of a server of 2024 does"
    yield Measurement("cpu.core", "CPU core at a server's work", "share", rates(_schedule, SCHEDULE, conditions), how)
    yield _sustained_rate(size, conditions)


def _schedule() -> object:
    """Do what the process of an inference server does between passes: lists of requests, and their texts."""
    queue = [{"id": number, "tokens": list(range(16)), "left": number % 7} for number in range(64)]
    for _ in range(4):
        for request in queue:
            request["tokens"] = [*cast("list[int]", request["tokens"]), request["id"]]
    return json.loads(json.dumps(queue))


def _sustained_rate(size: int, conditions: Conditions) -> Measurement:
    """Return what is left of the rate at the end of a load on all threads: heat and power limits lower the clock."""
    left = np.ones((size, size), np.float32)
    target = np.empty_like(left)
    seconds: list[float] = []
    end = time.perf_counter() + LOAD_SECONDS
    while time.perf_counter() < end or len(seconds) < FEWEST_SAMPLES:
        conditions.check()
        started = time.perf_counter()
        np.matmul(left, left, out=target)
        seconds.append(time.perf_counter() - started)
    quarter = max(1, len(seconds) // 4)
    first = quantile(sorted(seconds[:quarter]), 0.5)
    shares = spread([first / taken for taken in seconds[-quarter:]])
    how = f"last quarter of {LOAD_SECONDS:g} s on all threads against the first, {size}×{size}, NumPy's BLAS"
    return Measurement("cpu.held", "CPU rate held under load", "share", shares, how)


CACHES_DEEP = 4  # STREAM's rule: arrays at least four times the last-level cache
LEAST_BYTES, MOST_BYTES = 64 << 20, 1 << 30
SHARE_OF_MEMORY = 0.1  # of what is free, for all arrays


def measure_memory(conditions: Conditions) -> Iterator[Measurement]:
    """Yield bandwidths in bytes a second, reads and writes counted as STREAM counts them (McCalpin 1995)."""
    wanted_bytes = max(LEAST_BYTES, CACHES_DEEP * conditions.cache_bytes)
    size = int(min(wanted_bytes, MOST_BYTES, conditions.memory_bytes * SHARE_OF_MEMORY / 3)) // 8
    threads = max(1, conditions.threads)
    first, second, target = (np.ones(size) for _ in range(3))
    parts = [slice(start, start + -(-size // threads)) for start in range(0, size, -(-size // threads))]
    how = f"{threads} threads over arrays of {size * 8 >> 20} MiB, NumPy"
    with ThreadPoolExecutor(threads) as pool:

        def together(work: Callable[[slice], None]) -> Callable[[], object]:
            return lambda: list(pool.map(work, parts))

        def copy(part: slice) -> None:
            np.copyto(target[part], first[part])

        def triad(part: slice) -> None:
            np.multiply(second[part], 3.0, out=target[part])
            np.add(target[part], first[part], out=target[part])

        bandwidths = rates(together(copy), 2 * 8 * size, conditions)
        yield Measurement("memory.copy", "memory copy", "B/s", bandwidths, how)
        conditions.check()
        bandwidths = rates(together(triad), 5 * 8 * size, conditions)
        yield Measurement("memory.triad", "memory triad", "B/s", bandwidths, f"{how}, in two passes")


BACKENDS = tuple(dict.fromkeys(vendor.torch_backend for vendor in VENDORS if vendor.torch_backend))
TYPES = ("float32", "float16", "bfloat16", "float8_e4m3fn")
ACCELERATOR_SIZE = 8192  # fills today's largest GPUs for milliseconds
ACCELERATOR_SMALLER = 2048  # for GPUs that share main memory
COPY_BYTES = 1 << 30
HOST_BYTES = 256 << 20
SHARE_OF_DEVICE_MEMORY = 0.25


def measure_accelerators(conditions: Conditions) -> Iterator[Measurement | Skipped]:
    """Yield rates in FLOP/s by type and copy rates in bytes a second, for each GPU that PyTorch sees."""
    if importlib.util.find_spec("torch") is None:
        yield Skipped("gpu", "PyTorch is not installed")
        return
    try:
        torch = import_module("torch")
        names = tuple(_devices(torch))
    except Exception as error:
        yield Skipped("gpu", f"PyTorch does not start: {error}")
        return
    if not names:
        yield Skipped("gpu", "PyTorch sees no GPU")
    for name in names:
        try:
            yield from _measure(torch, name, conditions)
        except RuntimeError as error:
            yield Skipped(f"gpu.{name}", str(error).splitlines()[0])


def _devices(torch: ModuleType) -> Iterator[str]:
    for backend in BACKENDS:
        module = getattr(torch, backend, None) or getattr(torch.backends, backend, None)
        if module is not None and module.is_available():
            count = module.device_count() if hasattr(module, "device_count") else 1
            yield from (f"{backend}:{index}" for index in range(count))


def _measure(torch: ModuleType, name: str, conditions: Conditions) -> Iterator[Measurement | Skipped]:
    backend = getattr(torch, name.partition(":")[0])
    is_dedicated = hasattr(backend, "mem_get_info")
    free = backend.mem_get_info(name)[0] if is_dedicated else conditions.memory_bytes

    def timed(work: Callable[[], object], amount: float) -> Spread:
        def finished() -> None:
            work()
            backend.synchronize()

        return rates(finished, amount, conditions)

    size = ACCELERATOR_SIZE if is_dedicated else ACCELERATOR_SMALLER
    for kind in TYPES:
        conditions.check()
        try:
            product = _product(torch, name, kind, size)
            rates_measured = timed(product, 2.0 * size**3)
        except (RuntimeError, TypeError, AttributeError) as error:
            yield Skipped(f"gpu.{name}.gemm.{kind}", str(error).splitlines()[0])
            continue
        yield Measurement(
            f"gpu.{name}.gemm.{kind}",
            f"{name} matrix product, {kind}",
            "FLOP/s",
            rates_measured,
            f"{size}×{size}, PyTorch",
        )
    count = int(min(COPY_BYTES, free * SHARE_OF_DEVICE_MEMORY))
    source = torch.ones(count, dtype=torch.uint8, device=name)
    target = torch.empty_like(source)
    rates_measured = timed(lambda: target.copy_(source), 2.0 * count)
    yield Measurement(
        f"gpu.{name}.copy", f"{name} memory copy", "B/s", rates_measured, f"{count >> 20} MiB, reads and writes"
    )
    yield from _host_copies(torch, name, timed, pinned=is_dedicated)


def _product(torch: ModuleType, name: str, kind: str, size: int) -> Callable[[], object]:
    """Return a square product of one type; eight-bit types need scales and a layout of their own."""
    numbers = torch.randn(size, size, device=name)
    if kind != "float8_e4m3fn":
        left = numbers.to(getattr(torch, kind))
        return lambda: left @ left
    narrow: Any = numbers.to(getattr(torch, kind))
    scale = torch.tensor(1.0, device=name)
    return lambda: torch._scaled_mm(narrow, narrow.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)


def _host_copies(
    torch: ModuleType, name: str, timed: Callable[[Callable[[], object], float], Spread], pinned: bool
) -> Iterator[Measurement]:
    host = torch.empty(HOST_BYTES, dtype=torch.uint8, pin_memory=pinned)
    device = torch.empty(HOST_BYTES, dtype=torch.uint8, device=name)
    how = f"{HOST_BYTES >> 20} MiB, {'pinned' if pinned else 'pageable'} memory"
    rates_measured = timed(lambda: device.copy_(host, non_blocking=True), float(HOST_BYTES))
    yield Measurement(f"gpu.{name}.from_host", f"host to {name}", "B/s", rates_measured, how)
    rates_measured = timed(lambda: host.copy_(device, non_blocking=True), float(HOST_BYTES))
    yield Measurement(f"gpu.{name}.to_host", f"{name} to host", "B/s", rates_measured, how)


GROUPS: Mapping[str, Benchmark] = {
    "memory": measure_memory,
    "cpu": measure_processor,
    "gpu": measure_accelerators,
    "disk": measure_disk,
    "network": measure_network,
}
