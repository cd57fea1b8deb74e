"""One cheap live sample of the machine's activity, for graphs; counters are kept between samples."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import psutil

from capacity_tui.engine.machine.disk import probe_swap
from capacity_tui.engine.machine.facts import Fact, detected, difference, missing
from capacity_tui.engine.machine.main_memory import probe_memory
from capacity_tui.engine.machine.probing import Host, NotPresentError, Running
from capacity_tui.engine.machine.system import probe_networks
from capacity_tui.engine.machine.vendors.registry import VENDORS
from capacity_tui.engine.machine.vendors.vendor import GpuSample, Sensors, Vendor
from capacity_tui.engine.record import dataclass

ANSWER_SECONDS = 0.08  # a live screen must be able to quit within 0.1 s, whatever a driver does
STALE_SECONDS = 5.0  # how long the last GPU reading stands in for one that is late
WHOLE_DISK = re.compile(r"(nvme\d+n\d+|(sd|hd|vd|xvd)[a-z]+|mmcblk\d+|disk\d+)")
FIRST = "rates need two samples"
NO_COUNTER = "this system gives no such counter"
N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Counters:
    """The machine's running totals since it started; None where there is no counter."""

    busy_seconds: float | None  # CPU time spent on anything, over all logical CPUs
    total_seconds: float | None  # CPU time there was
    disk_read: int | None  # bytes, over whole disks
    disk_written: int | None  # bytes
    received: int | None  # bytes, over physical network interfaces
    sent: int | None  # bytes
    disk_reads: int | None = None
    disk_writes: int | None = None
    packets_received: int | None = None
    packets_sent: int | None = None
    cores: tuple[tuple[float, float], ...] | None = None  # seconds busy and seconds there were of each logical CPU


@dataclass(frozen=True, slots=True)
class Sample:
    """What the machine did since the sample before; ``at_seconds`` is on the monotonic clock, ``counters`` run on."""

    at_seconds: float
    cpu_percent: Fact[float]
    memory_used_bytes: Fact[int]
    memory_total_bytes: Fact[int]
    swap_used_bytes: Fact[int]
    disk_read_bytes_per_second: Fact[float]
    disk_write_bytes_per_second: Fact[float]
    network_receive_bytes_per_second: Fact[float]
    network_send_bytes_per_second: Fact[float]
    gpus: Fact[tuple[GpuSample, ...]]
    cpu_per_core_percent: Fact[tuple[float, ...]]
    counters: Counters


class Sampler:
    """Takes samples; never blocks longer than a moment, even on a driver that hangs.

    Args:
        host: the machine to sample; this one by default.
        counters: reads the running totals; the kernel's by default.
        clock: monotonic clock in seconds.
        detailed: read of GPUs what graphs do without too: what throttles clocks, limits, processes.
    """

    def __init__(
        self,
        host: Host | None = None,
        counters: Callable[[], Counters] | None = None,
        clock: Callable[[], float] = time.monotonic,
        detailed: bool = False,
    ) -> None:
        self._host = host or Host()
        self._read = counters or KernelCounters(self._host).read
        self._clock = clock
        self._before: tuple[float, Counters] | None = None
        self._sensors = GpuSensors(self._host, detailed)
        self._gpu_reading: Running[tuple[GpuSample, ...]] | None = None
        self._gpu_reading_began = 0.0
        self._gpus: Fact[tuple[GpuSample, ...]] = missing("GPU drivers", "not answered yet")

    def sample(self) -> Sample:
        """Return what is used now, and the rates since the last call."""
        now, counters = self._clock(), self._read()
        cpu, cores, rates = self._cpu_percent(counters), self._core_percents(counters), self._rates(now, counters)
        self._before = (now, counters)
        memory, swap = probe_memory(self._host), probe_swap(self._host)
        return Sample(
            at_seconds=now,
            cpu_percent=cpu,
            memory_used_bytes=difference(memory.total_bytes, memory.available_bytes),
            memory_total_bytes=memory.total_bytes,
            swap_used_bytes=swap.total_bytes.map(lambda total: total - (swap.free_bytes.value or 0)),
            disk_read_bytes_per_second=rates[0],
            disk_write_bytes_per_second=rates[1],
            network_receive_bytes_per_second=rates[2],
            network_send_bytes_per_second=rates[3],
            gpus=self._gpu_samples(now),
            cpu_per_core_percent=cores,
            counters=counters,
        )

    def close(self) -> None:
        """Give back the drivers' handles, unless a call still hangs in one."""
        if self._gpu_reading is None or self._gpu_reading.done:
            self._sensors.close()

    def _cpu_percent(self, counters: Counters) -> Fact[float]:
        if self._before is None:
            return missing("CPU times", FIRST)
        before = self._before[1]
        busy = _change(before.busy_seconds, counters.busy_seconds)
        total = _change(before.total_seconds, counters.total_seconds)
        if busy is None or total is None:
            return missing("CPU times", NO_COUNTER)
        if total <= 0:
            return missing("CPU times", "no time has passed")
        return detected(_percent(busy, total), "CPU times")

    def _core_percents(self, counters: Counters) -> Fact[tuple[float, ...]]:
        """Return how busy each logical CPU was; one that was put offline or came back makes them all unknown."""
        if self._before is None:
            return missing("CPU times", FIRST)
        before, now = self._before[1].cores, counters.cores
        if before is None or now is None:
            return missing("CPU times", NO_COUNTER)
        if len(before) != len(now):
            return missing("CPU times", "the number of CPUs has changed")
        changes = [(after[0] - then[0], after[1] - then[1]) for then, after in zip(before, now, strict=True)]
        if not all(total > 0 for _, total in changes):
            return missing("CPU times", "no time has passed")
        return detected(tuple(_percent(busy, total) for busy, total in changes), "CPU times")

    def _rates(self, now: float, counters: Counters) -> tuple[Fact[float], ...]:
        """Return bytes a second read, written, received and sent."""
        names = ("disk_read", "disk_written", "received", "sent")
        if self._before is None:
            return tuple(missing(name, FIRST) for name in names)
        then, before = self._before
        if now <= then:
            return tuple(missing(name, "no time has passed") for name in names)
        moved = (_change(getattr(before, name), getattr(counters, name)) for name in names)
        return tuple(_rate(name, change, now - then) for name, change in zip(names, moved, strict=True))

    def _gpu_samples(self, now: float) -> Fact[tuple[GpuSample, ...]]:
        """Return the GPUs' reading; the last one while a new one is late, n/a once that is too old."""
        if self._gpu_reading is None or self._gpu_reading.done:
            self._gpu_reading, self._gpu_reading_began = Running("gpus", self._sensors.read, STALE_SECONDS), now
        samples, probe = self._gpu_reading.wait_at_most(ANSWER_SECONDS)
        if samples is not None:
            self._gpus = detected(samples, "GPU drivers")
        elif probe.outcome != "timed out":
            self._gpus = missing("GPU drivers", probe.detail)
        elif now - self._gpu_reading_began >= STALE_SECONDS:
            self._gpus = missing("GPU drivers", f"no answer within {STALE_SECONDS:g} s")
        return self._gpus


class KernelCounters:
    """Reads running totals through psutil, over whole disks and physical network interfaces."""

    def __init__(self, host: Host) -> None:
        interfaces = probe_networks(host)
        self._interfaces = {card.name for card in interfaces if card.kind != "virtual"}

    def read(self) -> Counters:
        """Return the totals now."""
        busy, total = _given(lambda: _busy_and_total(psutil.cpu_times()), 2)
        disk_read, disk_written, disk_reads, disk_writes = _given(_disk_counts, 4)
        received, sent, packets_received, packets_sent = _given(self._network_counts, 4)
        return Counters(
            busy,
            total,
            disk_read,
            disk_written,
            received,
            sent,
            disk_reads,
            disk_writes,
            packets_received,
            packets_sent,
            cores=_core_seconds(),
        )

    def _network_counts(self) -> tuple[int, ...]:
        cards = psutil.net_io_counters(pernic=True, nowrap=False)
        physical = [card for name, card in cards.items() if name in self._interfaces]
        names = ("bytes_recv", "bytes_sent", "packets_recv", "packets_sent")
        return tuple(sum(getattr(card, name) for card in physical) for name in names)


def _given(read: Callable[[], tuple[N, ...]], count: int) -> tuple[N | None, ...]:
    """Return some counters, None for each where a hardened container or an odd kernel does not give them."""
    try:
        return read()
    except Exception:  # psutil fails in as many ways as there are kernels; the other counters still count
        return (None,) * count


def _core_seconds() -> tuple[tuple[float, float], ...] | None:
    try:
        return tuple(map(_busy_and_total, psutil.cpu_times(percpu=True)))
    except Exception:  # as above
        return None


def _busy_and_total(times: tuple[float, ...]) -> tuple[float, float]:
    idle = sum(getattr(times, name, 0.0) for name in ("idle", "iowait"))
    guest = sum(getattr(times, name, 0.0) for name in ("guest", "guest_nice"))  # counted in user too
    total = sum(times) - guest
    return total - idle, total


def _disk_counts() -> tuple[int, ...]:
    disks = psutil.disk_io_counters(perdisk=True, nowrap=False)
    whole_disks = [disk for name, disk in disks.items() if WHOLE_DISK.fullmatch(name)]
    names = ("read_bytes", "write_bytes", "read_count", "write_count")
    return tuple(sum(getattr(disk, name) for disk in whole_disks) for name in names)


def _change(before: N | None, after: N | None) -> N | None:
    """Return how far a counter has come, None where there is none."""
    return None if before is None or after is None else after - before


def _percent(busy: float, total: float) -> float:
    return min(100.0, max(0.0, 100 * busy / total))


def _rate(name: str, change: int | None, seconds: float) -> Fact[float]:
    if change is None:
        return missing(name, NO_COUNTER)
    if change < 0:
        return missing(name, "the counter started anew")
    return detected(change / seconds, name)


class GpuSensors:
    """The devices whose sensors can be read, in order; ``detailed``: power limits and processes too, for no graph."""

    def __init__(self, host: Host, detailed: bool = False, vendors: Sequence[Vendor] = VENDORS) -> None:
        self._host = host
        self._detailed = detailed
        self._vendors = vendors
        self._opened: list[Sensors] | None = None
        self._reason = ""

    def read(self) -> tuple[GpuSample, ...]:
        """Return one reading of every device; raises NotPresentError if there is no device with a working driver."""
        opened = self._open() if self._opened is None else self._opened
        if not opened:
            raise NotPresentError(self._reason)
        readings: list[GpuSample] = []
        for sensors in opened:
            readings += sensors.read(len(readings))
        return tuple(readings)

    def close(self) -> None:
        """Release the drivers' handles; the next reading opens them again."""
        for sensors in self._opened or ():
            sensors.close()
        self._opened = None

    def _open(self) -> list[Sensors]:
        self._opened, self._reason = [], ""
        for vendor in self._vendors:
            if vendor.sensors is None:
                continue
            try:
                self._opened.append(vendor.sensors(self._host, self._detailed))
            except NotPresentError as absent:
                self._reason = self._reason or str(absent)
        return self._opened
