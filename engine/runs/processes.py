"""A process with all that it started, and what a run does to its machine: samples of processes, machine and GPUs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import psutil

from capacity_tui.engine.machine import Fact, Sample, Sampler, detected, missing
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.record import dataclass

HIDDEN = "the system hides it from this user"
GONE = "the process is gone"
NO_COUNTER = "this system gives no such counter"
FIRST = "rates need two samples"
PROCESSES = "process tables"
SHARED_PAGES_SHARE = 0.002
"""Counting shared pages walks through all memory of a process: at most this share of time goes into it."""

LARGEST_WALK_BYTES = 4 << 30  # Memory of a process that is not walked through: it might have to wait meanwhile
COUNTERS = ("cpu_seconds", "read_bytes", "written_bytes", "read_operations", "write_operations")
T = TypeVar("T")
N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """One process now."""

    pid: int
    parent: int  # the number of the process that started it
    name: str
    rss_bytes: Fact[int]  # main memory resident now, shared pages in full
    cpu_seconds: Fact[float]  # CPU time used by it and by those of its children that it has waited for
    threads: Fact[int]
    read_bytes: Fact[int]  # read from disks, by it and by children that it has waited for
    written_bytes: Fact[int]  # written to disks, likewise
    read_operations: Fact[int]
    write_operations: Fact[int]
    ended: bool = False  # whether it only waits to be waited for: it holds nothing any more


@dataclass(frozen=True, slots=True)
class TreeSample:
    """A process and all that it started, now; running totals include what has ended since the first sample."""

    at_seconds: float  # on the monotonic clock
    processes: tuple[ProcessSample, ...]  # those that live, the oldest number first
    rss_bytes: Fact[int]  # main memory resident, pages that several share counted for each
    # the same with shared pages counted once; not read with every sample, because reading it takes long
    pss_bytes: Fact[int]
    cpu_seconds: Fact[float]
    cpu_percent: Fact[float]  # of one core, since the sample before
    threads: Fact[int]
    read_bytes: Fact[int]
    written_bytes: Fact[int]
    read_operations: Fact[int]
    write_operations: Fact[int]


class ProcessTree:
    """Finds and reads a process and its descendants, also those whose parents have ended.

    A process counts for itself and for children it has waited for, as the kernel does; what orphans have used stays
    counted when they end. Processes whose parents ignore their end are lost.
    """

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.pid = pid
        self._clock = clock
        self._members: dict[int, tuple[psutil.Process, int]] = {}
        self._strangers: set[int] = set()
        self._orphans: set[int] = set()
        self._last: dict[int, ProcessSample] = {}
        self._ended = dict.fromkeys(COUNTERS, 0.0)
        self._highest = dict.fromkeys(COUNTERS, 0.0)
        self._before: tuple[float, float] | None = None
        self._shared_due = 0.0

    @property
    def alive(self) -> bool:
        """Whether any process of the tree ran at the last sample."""
        return any(not process.ended for process in self._last.values())

    def sample(self) -> TreeSample:
        """Return what the tree's processes hold and have used; a process that vanishes meanwhile is left out."""
        now = self._clock()
        hidden = self._find()
        members = self._read_members()
        alive = tuple(process for process in members if not process.ended)
        totals = {name: self._total(name, members, hidden) for name in COUNTERS}
        cpu = totals["cpu_seconds"]
        percent, self._before = self._cpu_percent(now, cpu), None if cpu.value is None else (now, cpu.value)
        return TreeSample(
            at_seconds=now,
            processes=alive,
            rss_bytes=_sum(alive, "rss_bytes", hidden).map(int),
            pss_bytes=self._shared_once(alive),
            cpu_seconds=cpu,
            cpu_percent=percent,
            threads=_sum(alive, "threads", hidden).map(int),
            read_bytes=totals["read_bytes"].map(int),
            written_bytes=totals["written_bytes"].map(int),
            read_operations=totals["read_operations"].map(int),
            write_operations=totals["write_operations"].map(int),
        )

    def _find(self) -> str:
        """Take up processes that are new, and return why the tree cannot be seen, nothing if it can."""
        try:
            present = set(psutil.pids())
        except (OSError, psutil.Error) as error:
            return f"processes cannot be listed: {error}"
        for pid in self._members.keys() - present:
            del self._members[pid]
        self._strangers &= present
        # A number that is new may stand before its parent's: numbers start again at the end of their range.
        fresh = {pid: _parent(pid) for pid in present - self._members.keys() - self._strangers}
        while members := [
            pid for pid, parent in fresh.items() if parent in self._members or (pid == self.pid and parent is not None)
        ]:
            for pid in members:
                self._take(pid, fresh.pop(pid))
        self._strangers |= {pid for pid, parent in fresh.items() if parent is not None}
        return HIDDEN if self.pid in fresh else ""

    def _take(self, pid: int, parent: int | None) -> None:
        with suppress(psutil.Error):
            self._members[pid] = (psutil.Process(pid), parent or 0)

    def _read_members(self) -> tuple[ProcessSample, ...]:
        """Return what lives, and keep count of what has ended."""
        samples: dict[int, ProcessSample] = {}
        for pid, (process, parent) in sorted(self._members.items()):
            sample = _read(process, parent, self._last.get(pid))
            if sample is not None:
                samples[pid] = sample
        self._orphans |= {pid for pid, sample in samples.items() if sample.parent not in samples}
        for pid in self._last.keys() - samples.keys():
            self._forget(pid, self._last[pid])
        self._last = samples
        return tuple(samples.values())

    def _forget(self, pid: int, last: ProcessSample) -> None:
        """Take out a process that has ended; what an orphan used is in no parent's count."""
        self._members.pop(pid, None)
        if pid in self._orphans:
            self._orphans.discard(pid)
            for name in COUNTERS:
                self._ended[name] += getattr(last, name).value or 0

    def _total(self, name: str, alive: Iterable[ProcessSample], hidden: str) -> Fact[float]:
        """Return a running total; a child seen as ended before its parent has counted it lets none run back."""
        counted = _sum(alive, name, hidden)
        if counted.value is None and (hidden or counted.reason != GONE):
            return counted
        self._highest[name] = max(self._highest[name], self._ended[name] + (counted.value or 0))
        return detected(self._highest[name], PROCESSES)

    def _cpu_percent(self, now: float, cpu: Fact[float]) -> Fact[float]:
        if cpu.value is None:
            return cpu
        if self._before is None:
            return missing(PROCESSES, FIRST)
        then, before = self._before
        if now <= then:
            return missing(PROCESSES, "no time has passed")
        return detected(100 * (cpu.value - before) / (now - then), PROCESSES)

    def _shared_once(self, alive: Iterable[ProcessSample]) -> Fact[int]:
        """Return memory with shared pages counted once, unless reading it would cost or disturb too much."""
        start = time.perf_counter()
        if start < self._shared_due:
            return missing("smaps", "read now and then only, because reading it takes long")
        if any((process.rss_bytes.value or 0) > LARGEST_WALK_BYTES for process in alive):
            return missing("smaps", "not read of processes this large, which might have to wait meanwhile")
        facts = [self._proportional(process.pid) for process in alive]
        end = time.perf_counter()
        self._shared_due = end + (end - start) / SHARED_PAGES_SHARE
        return _added(facts)

    def _proportional(self, pid: int) -> Fact[int]:
        try:
            return _read_fact(self._members[pid][0], "memory_full_info", lambda memory: int(memory.pss))
        except psutil.NoSuchProcess:
            return missing("smaps", GONE)


def _parent(pid: int) -> int | None:
    """Return the number of a process's parent, None where it vanished or is hidden."""
    try:
        return psutil.Process(pid).ppid()
    except (psutil.Error, OSError):
        return None


def _read(process: psutil.Process, parent: int, last: ProcessSample | None) -> ProcessSample | None:
    """Return one process now, None if it is gone; one that has ended has used what it had when last seen."""
    try:
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return last and replace(last, ended=True)
            return _read_open(process, parent)
    except psutil.NoSuchProcess:
        return None
    except (psutil.Error, OSError) as error:
        closed = missing(PROCESSES, _reason(error))
        return ProcessSample(process.pid, parent, "?", closed, closed, closed, closed, closed, closed, closed)


def _read_open(process: psutil.Process, parent: int) -> ProcessSample:
    io = _read_fact(process, "io_counters", tuple)
    return ProcessSample(
        pid=process.pid,
        parent=parent,
        name=_read_fact(process, "name", str).value or "?",
        rss_bytes=_read_fact(process, "memory_info", lambda memory: int(memory.rss)),
        cpu_seconds=_read_fact(process, "cpu_times", lambda times: float(sum(times[:4]))),
        threads=_read_fact(process, "num_threads", int),
        read_bytes=io.map(lambda counts: int(counts[2])),
        written_bytes=io.map(lambda counts: int(counts[3])),
        read_operations=io.map(lambda counts: int(counts[0])),
        write_operations=io.map(lambda counts: int(counts[1])),
    )


def _read_fact(process: psutil.Process, method: str, read: Callable[[Any], T]) -> Fact[T]:
    """Return a reading of a process, missing with the reason where refused; raises NoSuchProcess if it is gone."""
    source = f"psutil {method}"
    try:
        return detected(read(getattr(process, method)()), source)
    except psutil.NoSuchProcess:
        raise
    except (psutil.Error, OSError) as error:
        return missing(source, _reason(error))
    except (AttributeError, NotImplementedError, ValueError, RuntimeError, IndexError):
        return missing(source, NO_COUNTER)


def _reason(error: Exception) -> str:
    return HIDDEN if isinstance(error, psutil.AccessDenied | PermissionError) else str(error) or type(error).__name__


def _sum(alive: Iterable[ProcessSample], name: str, hidden: str) -> Fact[float]:
    return missing(PROCESSES, hidden) if hidden else _added([getattr(process, name) for process in alive])


def _added(facts: Iterable[Fact[N]]) -> Fact[N]:
    """Return the sum of facts, missing if any of them is: a part would pass for the whole."""
    known = tuple(facts)
    if not known:
        return missing(PROCESSES, GONE)
    refused = [fact for fact in known if fact.value is None]
    if refused:
        share = f" ({len(refused)} of {len(known)} processes)" if len(known) > 1 else ""
        return missing(refused[0].source, refused[0].reason + share)
    return detected(sum(fact.value for fact in known if fact.value is not None), known[0].source)


@dataclass(frozen=True, slots=True)
class Observation:
    """One moment of a run."""

    at_seconds: float  # on the monotonic clock
    run: TreeSample
    system: Sample  # the machine, with all other work on it; ``gpus`` are all that it has
    # memory that the run's processes hold on each GPU, in the order of ``system.gpus``
    gpu_memory_bytes: tuple[Fact[int], ...]


def observe(tree: ProcessTree, sampler: Sampler) -> Observation:
    """Return what a run and its machine do now; rates are those since the call before with the same two.

    Args:
        sampler: reads the machine; made with ``detailed=True`` it reads what each process holds of a GPU.
    """
    system = sampler.sample()
    run = tree.sample()
    pids = frozenset(process.pid for process in run.processes)
    gpu_memory = tuple(_memory_of_run(gpu, pids) for gpu in system.gpus.value or ())
    return Observation(run.at_seconds, run, system, gpu_memory)


def _memory_of_run(gpu: GpuSample, pids: Iterable[int]) -> Fact[int]:
    holders = gpu.holders
    if holders.value is None:
        return missing(holders.source, holders.reason)
    amounts = [amount for pid, amount in holders.value if pid in pids]
    if not holders.value and gpu.memory_used_bytes.value:
        return missing(holders.source, "the driver names no process")
    if not amounts and not all(_exists(pid) for pid, _ in holders.value):
        return missing(holders.source, "the driver numbers processes as another container or the host does")
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts):
        return missing(holders.source, "the driver tells no amounts")
    return detected(sum(known), holders.source)


def _exists(pid: int) -> bool:
    """Whether a process of this number can be seen from here, regardless of owner."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
