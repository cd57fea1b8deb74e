"""What a run did to its machine, sample by sample, as arrays."""

from __future__ import annotations

import math
import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from capacity_tui.engine.machine import Fact
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.logs.run_curve import Numbers
from capacity_tui.engine.runs.processes import Observation

MOST_SAMPLES = 14_400
"""Samples that are kept at least."""
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
        """Return one column."""
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
