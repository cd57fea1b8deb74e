"""One moment of a profiled run, as plain numbers; what could not be read is None, and why is kept once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

from capacity_tui.engine.machine import Fact
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.metrics_export import Gauge
from capacity_tui.engine.runs.processes import Observation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GpuSnapshot:
    """One GPU at one moment; ``run_memory_bytes`` is what the run's processes hold of it."""

    index: int
    utilization_percent: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None
    run_memory_bytes: float | None
    power_watts: float | None
    power_limit_watts: float | None
    temperature_celsius: float | None
    memory_activity_percent: float | None
    throttle: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ResourceSnapshot:
    """One moment of a run; immutable. Rates are those since the snapshot before.

    Attributes:
        at_seconds: since the profile began.
        seconds: since the snapshot before.
        stage: what was worked on, as the run named it.
        memory_bytes: resident memory of the run, pages that its processes share counted for each.
        shared_once_bytes: the same with shared pages counted once; not read with every snapshot.
        cpu_percent: of one core, used by the run.
        busiest_process_percent: of one core, used by the busiest process of the run.
        write_bytes_per_second: to disks, by the run.
        system_cpu_percent: of the whole machine, all processes.
        cpu_per_core_percent: of each logical CPU, all processes.
        system_memory_used_bytes: by all processes.
        system_memory_total_bytes: what the machine, or this container, has.
        disk_read_bytes_per_second: from the machine's disks, by all processes.
        disk_write_bytes_per_second: to the machine's disks, by all processes.
        network_receive_bytes_per_second: by all processes.
        network_send_bytes_per_second: by all processes.
        latency_ms: of the last answer of the endpoint.
    """

    at_seconds: float
    seconds: float
    stage: str
    processes: float
    threads: float | None
    memory_bytes: float | None
    shared_once_bytes: float | None
    cpu_percent: float | None
    busiest_process_percent: float | None
    read_bytes_per_second: float | None
    write_bytes_per_second: float | None
    system_cpu_percent: float | None
    cpu_per_core_percent: tuple[float, ...] | None
    system_memory_used_bytes: float | None
    system_memory_total_bytes: float | None
    disk_read_bytes_per_second: float | None
    disk_write_bytes_per_second: float | None
    network_receive_bytes_per_second: float | None
    network_send_bytes_per_second: float | None
    latency_ms: float | None
    gpus: tuple[GpuSnapshot, ...]


NUMBERS = tuple(
    field.name for field in fields(ResourceSnapshot) if field.name not in ("stage", "cpu_per_core_percent", "gpus")
)

GPU_NUMBERS = tuple(field.name for field in fields(GpuSnapshot) if field.name not in ("index", "throttle"))
PEAKS = ("memory_bytes", "shared_once_bytes", "system_memory_used_bytes", "processes", "threads")
"""Of these a merged snapshot has the largest, of all other numbers the mean."""


class Snapshots:
    """Makes snapshots of observations, one after the other, and keeps why anything was missing."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self._first: Observation | None = None
        self._before: Observation | None = None

    def take(self, observation: Observation, stage: str = "", latency_ms: float | None = None) -> ResourceSnapshot:
        before, self._before = self._before, observation
        first = self._first = self._first or observation
        seconds = observation.at_seconds - before.at_seconds if before else 0.0
        run, system = observation.run, observation.system
        # What needs two samples is missing from the first without being worth a word.
        value = self._known if before else _value
        return ResourceSnapshot(
            at_seconds=observation.at_seconds - first.at_seconds,
            seconds=seconds,
            stage=stage,
            processes=len(run.processes),
            threads=value("threads", run.threads),
            memory_bytes=value("memory_bytes", run.rss_bytes),
            shared_once_bytes=run.pss_bytes.value,
            cpu_percent=value("cpu_percent", run.cpu_percent),
            busiest_process_percent=_busiest(before, observation),
            read_bytes_per_second=self._run_rate("read_bytes", before, observation),
            write_bytes_per_second=self._run_rate("written_bytes", before, observation),
            system_cpu_percent=value("system_cpu_percent", system.cpu_percent),
            cpu_per_core_percent=value("cpu_per_core_percent", system.cpu_per_core_percent),
            system_memory_used_bytes=value("system_memory_used_bytes", system.memory_used_bytes),
            system_memory_total_bytes=value("system_memory_total_bytes", system.memory_total_bytes),
            disk_read_bytes_per_second=value("disk_read", system.disk_read_bytes_per_second),
            disk_write_bytes_per_second=value("disk_write", system.disk_write_bytes_per_second),
            network_receive_bytes_per_second=value("network_receive", system.network_receive_bytes_per_second),
            network_send_bytes_per_second=value("network_send", system.network_send_bytes_per_second),
            latency_ms=latency_ms,
            gpus=self._gpus(observation),
        )

    def _known(self, name: str, fact: Fact[T]) -> T | None:
        if fact.value is None:
            self.reasons[name] = fact.reason
        return fact.value

    def _run_rate(self, name: str, before: Observation | None, observation: Observation) -> float | None:
        if before is None:
            return None
        now, then = self._known(name, getattr(observation.run, name)), getattr(before.run, name).value
        seconds = observation.at_seconds - before.at_seconds
        return None if now is None or then is None or seconds <= 0 else (now - then) / seconds

    def _gpus(self, observation: Observation) -> tuple[GpuSnapshot, ...]:
        gpus = self._known("gpus", observation.system.gpus) or ()
        return tuple(self._gpu(gpu, memory) for gpu, memory in zip(gpus, observation.gpu_memory_bytes, strict=True))

    def _gpu(self, gpu: GpuSample, memory: Fact[int]) -> GpuSnapshot:
        names = (field.name for field in fields(GpuSnapshot) if field.name != "index")
        facts: dict[str, Fact[Any]] = {name: getattr(gpu, name, memory) for name in names}  # no sensor knows the run
        readings = {name: self._known(f"gpus.{gpu.index}.{name}", fact) for name, fact in facts.items()}
        return GpuSnapshot(gpu.index, **readings)


class Timeline:
    """The snapshots of a run of any length: the longer it takes, the more time each of them stands for."""

    def __init__(self, most: int = 3600) -> None:
        self._most = most
        self._kept: list[ResourceSnapshot] = []
        self._open: list[ResourceSnapshot] = []
        self._merged = 1

    def add(self, snapshot: ResourceSnapshot) -> None:
        """Add the newest."""
        self._open.append(snapshot)
        if len(self._open) < self._merged:
            return
        self._kept.append(merged(self._open))
        self._open = []
        if len(self._kept) >= self._most:
            self._merged *= 2
            pairs = zip(self._kept[::2], self._kept[1::2], strict=False)
            odd = self._kept[-1:] if len(self._kept) % 2 else []
            self._kept = [*(merged(pair) for pair in pairs), *odd]

    @property
    def snapshots(self) -> tuple[ResourceSnapshot, ...]:
        """What is kept, the oldest first."""
        return (*self._kept, *([merged(self._open)] if self._open else []))


def merged(snapshots: Iterable[ResourceSnapshot]) -> ResourceSnapshot:
    """Return several snapshots as one: levels at their peak, rates as their mean over time."""
    several = tuple(snapshots)
    if len(several) == 1:
        return several[0]
    numbers: dict[str, Any] = {name: _merged_number(name, several) for name in NUMBERS}
    last = several[-1]
    seconds = sum(snapshot.seconds for snapshot in several)
    return replace(last, **{**numbers, "at_seconds": last.at_seconds, "seconds": seconds})


def _merged_number(name: str, several: tuple[ResourceSnapshot, ...]) -> float | None:
    weighted: list[tuple[float | None, float]] = [(getattr(snapshot, name), snapshot.seconds) for snapshot in several]
    known = [(value, seconds) for value, seconds in weighted if value is not None]
    if not known:
        return None
    if name in PEAKS:
        return max(value for value, _ in known)
    weight = sum(seconds for _, seconds in known)
    return sum(value * seconds for value, seconds in known) / weight if weight else known[-1][0]


def _value(_: str, fact: Fact[T]) -> T | None:
    return fact.value


def _busiest(before: Observation | None, observation: Observation) -> float | None:
    """Return what the busiest process used of a core; what it took over from its children at once is no more."""
    if before is None or observation.at_seconds <= before.at_seconds:
        return None
    then = {process.pid: process.cpu_seconds.value for process in before.run.processes}
    seconds = observation.at_seconds - before.at_seconds
    used = [
        process.cpu_seconds.value - earlier
        for process in observation.run.processes
        if process.cpu_seconds.value is not None and (earlier := then.get(process.pid, 0.0)) is not None
    ]
    return min(100.0, 100 * max(used) / seconds) if used else None


def gauges_of(snapshot: ResourceSnapshot) -> Iterator[Gauge]:
    """Yield every number of a snapshot that could be had."""
    for name in NUMBERS:
        value = getattr(snapshot, name)
        if value is not None:
            yield Gauge(name, float(value))
    for number, percent in enumerate(snapshot.cpu_per_core_percent or ()):
        yield Gauge("core_percent", percent, {"core": str(number)})
    for gpu in snapshot.gpus:
        for name in GPU_NUMBERS:
            value = getattr(gpu, name)
            if value is not None:
                yield Gauge(f"gpu_{name}", float(value), {"gpu": str(gpu.index)})
        for reason in gpu.throttle or ():
            yield Gauge("gpu_throttled", 1.0, {"gpu": str(gpu.index), "reason": reason})
