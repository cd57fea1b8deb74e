"""A profile: the result of a run, and its course."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TypeAlias

from capacity_tui.engine.keys import Figure
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.command import Ended
from capacity_tui.engine.runs.history.records import RunRecord, this_host
from capacity_tui.engine.runs.profile.bottleneck import Bottleneck
from capacity_tui.engine.runs.profile.snapshots import GPU_NUMBERS, ResourceSnapshot
from capacity_tui.engine.runs.profile.usage import GpuUsage, Latency, Usage


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a run: seconds in it, and samples done in it, None where none were counted."""

    name: str
    seconds: float
    samples: float | None

    @property
    def samples_per_second(self) -> float | None:
        """The rate at which the stage works; None without samples."""
        return self.samples / self.seconds if self.samples is not None and self.seconds > 0 else None


class OpenStage:
    """An open stage, which counts finished samples."""

    def __init__(self) -> None:
        self.samples: float | None = None

    def done(self, samples: float = 1) -> None:
        """Count samples that are done."""
        self.samples = (self.samples or 0) + samples


Entry: TypeAlias = tuple[str, float, OpenStage]  # A stage that was entered: its name, when, and what is counted in it


class Stages:
    """The stages of a run, entered by any of its threads, by a monotonic clock in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._closed: dict[str, tuple[float, float | None]] = {}
        self._open: list[Entry] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[OpenStage]:
        """Work on a stage."""
        entry = self.enter(name)
        try:
            yield entry[2]
        finally:
            self.leave(entry)

    def enter(self, name: str, at: float | None = None) -> Entry:
        """Begin a stage, now or at a moment of the clock, and return what ``leave`` ends it by."""
        entry = (name, self._clock() if at is None else at, OpenStage())
        with self._lock:
            self._open.append(entry)
            self._closed.setdefault(name, (0.0, None))
        return entry

    def leave(self, entry: Entry, at: float | None = None) -> None:
        """End a stage, now or at a moment of the clock."""
        with self._lock:
            if entry in self._open:
                self._open.remove(entry)
                self._closed[entry[0]] = self._with(entry, self._closed, self._clock() if at is None else at)

    @property
    def current(self) -> str:
        """The stage entered last of those that are open; nothing between stages."""
        with self._lock:
            return self._open[-1][0] if self._open else ""

    def totals(self) -> tuple[Stage, ...]:
        """Return all stages in the order in which they began; those open count until now."""
        with self._lock:
            totals = dict(self._closed)
            for entry in self._open:
                totals[entry[0]] = self._with(entry, totals, self._clock())
        return tuple(Stage(name, seconds, samples) for name, (seconds, samples) in totals.items())

    @staticmethod
    def _with(entry: Entry, totals: Mapping[str, tuple[float, float | None]], at: float) -> tuple[float, float | None]:
        """Return a stage with one more entry."""
        name, began, opened = entry
        seconds, samples = totals[name]
        if opened.samples is not None:
            samples = (samples or 0) + opened.samples
        return seconds + at - began, samples


MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class ProfilingSummary:
    """The result of a run; numbers that could not be read are None, and ``usage.reasons`` says why.

    Attributes:
        usage: what the run and its machine used.
        samples: work that it got done, in samples; None where unknown.
        latency: of the endpoint; None where none was named.
    """

    interval: float
    usage: Usage
    stages: tuple[Stage, ...]
    samples: float | None
    latency: Latency | None
    bottleneck: Bottleneck

    @property
    def duration_seconds(self) -> float:
        """How long it ran."""
        return self.usage.seconds

    @property
    def peak_memory_mb(self) -> float | None:
        """The most memory that it held at once, in millions of bytes."""
        return _in_megabytes(self.usage.peak_memory_bytes)

    @property
    def avg_memory_mb(self) -> float | None:
        """The mean memory that it held, in millions of bytes."""
        return _in_megabytes(self.usage.mean("memory_bytes"))

    @property
    def memory_per_sample_mb(self) -> float | None:
        """Peak memory over samples, in millions of bytes."""
        return _in_megabytes(self.memory_bytes_per_sample)

    @property
    def memory_bytes_per_sample(self) -> float | None:
        """Peak memory over samples."""
        return _over(self.usage.peak_memory_bytes, self.samples)

    @property
    def memory_growth_bytes_per_sample(self) -> float | None:
        """By how much memory grew from the first sample to its peak, over samples."""
        peak, first = self.usage.peak_memory_bytes, self.usage.first_memory_bytes
        return None if peak is None or first is None else _over(max(0.0, peak - first), self.samples)

    @property
    def samples_per_second(self) -> float | None:
        """The rate at which it worked."""
        return _over(self.samples, self.usage.seconds)

    @property
    def cpu_avg_percent(self) -> float | None:
        """CPU time over time, in percent of one core: all of two cores are 200."""
        share = _over(self.usage.totals.get("cpu_seconds"), self.usage.seconds)
        return None if share is None else 100 * share

    @property
    def cpu_peak_percent(self) -> float | None:
        """The most of it between two samples, at least the mean: short looks miss some ticks of the clock."""
        peak, mean = self.usage.peak("cpu_percent"), self.cpu_avg_percent
        return peak if peak is None or mean is None else max(peak, mean)

    @property
    def cpu_per_core_percent(self) -> tuple[float, ...] | None:
        """Mean use of each logical CPU of the machine, by all processes."""
        return self.usage.cores

    @property
    def network_latency_ms(self) -> float | None:
        """Mean round trip to the endpoint."""
        return self.latency.mean_ms if self.latency else None

    @property
    def primary_bottleneck(self) -> str:
        """Its bottleneck; empty where unknown."""
        return self.bottleneck.kind

    @property
    def bottleneck_confidence(self) -> float:
        """How sure that is, from 0 to 1."""
        return self.bottleneck.confidence


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile with its course."""

    command: tuple[str, ...]  # what ran; empty for this program's own work
    ended: Ended | None  # how a command ended; None for this program's own work
    summary: ProfilingSummary
    # snapshots from its start to its end; of long runs each stands for several samples
    timeline: tuple[ResourceSnapshot, ...]
    problems: tuple[str, ...]  # what went wrong with profiling itself


def _over(value: float | None, count: float | None) -> float | None:
    return value / count if value is not None and count else None


def _in_megabytes(value: float | None) -> float | None:
    return None if value is None else value / MEGABYTE


NOT_COUNTED = "nobody said how many samples were done: --samples, or done() in Python"
NOT_ASKED = "no endpoint was named: --url"


def profile_as_json(profile: Profile) -> str:
    return json.dumps(profile_as_dict(profile), indent=2, allow_nan=False) + "\n"


def profile_as_dict(profile: Profile) -> dict[str, object]:
    """Return a profile as plain data; a number that could not be read is None, and ``missing`` says why."""
    summary, ended = profile.summary, profile.ended
    return {
        "command": list(profile.command),
        "exit_code": ended.exit_code if ended else None,
        "signal": ended.signal if ended else None,
        "seconds": summary.duration_seconds,
        "interval": summary.interval,
        "samples": summary.usage.snapshots,
        "summary": summary_as_dict(summary),
        "stages": [{**asdict(stage), "samples_per_second": stage.samples_per_second} for stage in summary.stages],
        "bottleneck": asdict(summary.bottleneck),
        "missing": missing_of(summary),
        "problems": list(profile.problems),
        "timeline": [snapshot_as_dict(snapshot) for snapshot in profile.timeline],
    }


def summary_as_dict(summary: ProfilingSummary) -> dict[str, object]:
    """Return the result of a run as plain data."""
    usage = summary.usage
    return {
        "peak_memory_bytes": _whole(usage.peak_memory_bytes),
        "average_memory_bytes": _whole(usage.mean("memory_bytes")),
        "memory_bytes_per_sample": summary.memory_bytes_per_sample,
        "memory_growth_bytes_per_sample": summary.memory_growth_bytes_per_sample,
        "work_samples": summary.samples,
        "work_samples_per_second": summary.samples_per_second,
        "processes_peak": _whole(usage.peak("processes")),
        "threads_peak": _whole(usage.peak("threads")),
        "cpu_seconds": usage.totals["cpu_seconds"],
        "cpu_average_percent": summary.cpu_avg_percent,
        "cpu_peak_percent": summary.cpu_peak_percent,
        "cpu_per_core": list(usage.cores or ()),
        "disk": {
            "read_bytes": _whole(usage.totals["read_bytes"]),
            "written_bytes": _whole(usage.totals["written_bytes"]),
            "read_operations": _whole(usage.totals["read_operations"]),
            "write_operations": _whole(usage.totals["write_operations"]),
            "read_bytes_per_second": usage.mean("read_bytes_per_second"),
            "write_bytes_per_second": usage.mean("write_bytes_per_second"),
            "peak_read_bytes_per_second": usage.peak("read_bytes_per_second"),
            "peak_write_bytes_per_second": usage.peak("write_bytes_per_second"),
            "system": {
                "read_bytes": _whole(usage.system_totals["disk_read"]),
                "written_bytes": _whole(usage.system_totals["disk_written"]),
                "read_operations": _whole(usage.system_totals["disk_reads"]),
                "write_operations": _whole(usage.system_totals["disk_writes"]),
                "read_bytes_per_second": usage.mean("disk_read_bytes_per_second"),
                "write_bytes_per_second": usage.mean("disk_write_bytes_per_second"),
            },
        },
        "network": {
            "received_bytes": _whole(usage.system_totals["received"]),
            "sent_bytes": _whole(usage.system_totals["sent"]),
            "packets_received": _whole(usage.system_totals["packets_received"]),
            "packets_sent": _whole(usage.system_totals["packets_sent"]),
            "receive_bytes_per_second": usage.mean("network_receive_bytes_per_second"),
            "send_bytes_per_second": usage.mean("network_send_bytes_per_second"),
            "peak_receive_bytes_per_second": usage.peak("network_receive_bytes_per_second"),
            "peak_send_bytes_per_second": usage.peak("network_send_bytes_per_second"),
        },
        "system": {
            "cpu_average_percent": usage.mean("system_cpu_percent"),
            "cpu_peak_percent": usage.peak("system_cpu_percent"),
            "memory_total_bytes": _whole(usage.mean("system_memory_total_bytes")),
            "memory_used_peak_bytes": _whole(usage.peak("system_memory_used_bytes")),
        },
        "latency_ms": summary.network_latency_ms,
        "latency": _latency(summary.latency) if summary.latency else None,
        "gpus": [_gpu(gpu) for gpu in usage.gpus],
    }


def snapshot_as_dict(snapshot: ResourceSnapshot) -> dict[str, object]:
    """Return one moment of a run as plain data."""
    return {name: _finite(value) for name, value in asdict(snapshot).items()}


def missing_of(summary: ProfilingSummary) -> dict[str, str]:
    """Return why anything of a profile could not be read, by name."""
    missing = dict(summary.usage.reasons)
    if summary.samples is None:
        missing["memory_bytes_per_sample"] = NOT_COUNTED
    if summary.latency is None:
        missing["latency_ms"] = NOT_ASKED
    elif summary.latency.mean_ms is None:
        missing["latency_ms"] = summary.latency.last_failure or "not answered yet"
    return missing


def _latency(latency: Latency) -> dict[str, object]:
    connect, trip = latency.connect_ms, latency.round_trip_ms
    return {
        "url": latency.url,
        "asked": latency.asked,
        "failed": latency.failed,
        "status": latency.status,
        "connect_ms": {"p50": connect[0], "p95": connect[1]} if connect else None,
        "round_trip_ms": {"p50": trip[0], "p95": trip[1]} if trip else None,
        "last_failure": latency.last_failure,
    }


def _gpu(gpu: GpuUsage) -> dict[str, object]:
    numbers: Mapping[str, object] = {
        name: {"average": gpu.numbers[name].mean, "peak": gpu.numbers[name].peak} for name in GPU_NUMBERS
    }
    return {"index": gpu.index, **numbers, "throttled": dict(gpu.throttled)}


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def begun_profile(command: Sequence[str]) -> RunRecord:
    """Return the entry of a profile that begins, for the folder of its run."""
    return RunRecord(kind="profile", machine=this_host(), details={"command": list(command)})


def profile_entry(profile: Profile) -> RunRecord:
    """Return the entry of a profile: what was measured, by the keys of results where there are such."""
    summary, ended = profile.summary, profile.ended
    measured = {
        Figure.MEMORY_HOST_BYTES: summary.usage.peak_memory_bytes,
        Figure.SAMPLES_PER_SECOND: summary.samples_per_second,
    }
    return RunRecord(
        kind="profile",
        machine=this_host(),
        actual={key: float(value) for key, value in measured.items() if value is not None},
        details={
            "command": list(profile.command),
            "exit_code": ended.exit_code if ended else None,
            "seconds": summary.duration_seconds,
            "cpu_average_percent": summary.cpu_avg_percent,
            "bottleneck": summary.primary_bottleneck,
            "bottleneck_confidence": summary.bottleneck_confidence,
        },
    )
