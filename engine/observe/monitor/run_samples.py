"""What a run did to its machine, sample by sample, as arrays."""

from __future__ import annotations

import math
import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from capacity_tui.engine.machine.facts import Fact
from capacity_tui.engine.machine.vendors.vendor import GpuSample
from capacity_tui.engine.observe.logs.run_curve import Numbers
from capacity_tui.engine.observe.sampling import Observation

MOST_SAMPLES = 14_400


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Bytes of the disk that a folder is on; NaN where nothing tells."""

    folder: Path
    free: float
    total: float


@dataclass(slots=True)
class RunSamples:
    """The newest samples of a run.

    Attributes:
        observations: what processes and machine did.
        disks: the disks that it may write to, with each observation.
    """

    observations: deque[Observation] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    disks: deque[tuple[DiskSpace, ...]] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))

    def add(self, observation: Observation, folders: Sequence[Path] = ()) -> None:
        """Take a sample."""
        self.observations.append(observation)
        self.disks.append(tuple(map(_space, folders)))

    @property
    def latest(self) -> Observation | None:
        """The newest observation."""
        return self.observations[-1] if self.observations else None

    @property
    def gpus(self) -> tuple[GpuSample, ...]:
        """The GPUs as they were last read."""
        return () if self.latest is None else self.latest.system.gpus.value or ()

    def times(self) -> Numbers:
        """Return when samples were taken, on the monotonic clock."""
        return np.asarray([each.at_seconds for each in self.observations], dtype=np.float64)

    def memory(self) -> Numbers:
        """Return main memory of the run's processes; NaN where it was not known."""
        return np.asarray([_number(each.run.rss_bytes) for each in self.observations], dtype=np.float64)

    def cpu_percent(self) -> Numbers:
        """Return what the run's processes used, of one core; NaN where it was not known."""
        return np.asarray([_number(each.run.cpu_percent) for each in self.observations], dtype=np.float64)

    def main_memory_share(self) -> Numbers:
        """Return the share of main memory that is used, by whomever."""
        systems = [each.system for each in self.observations]
        return np.asarray(
            [_number(each.memory_used_bytes) / (_number(each.memory_total_bytes) or math.nan) for each in systems],
            dtype=np.float64,
        )

    def of_gpus(self, reading: str) -> Numbers:
        """Return a reading of the devices: one row a sample, one column a device; NaN where there was none."""
        count = len(self.gpus)
        rows = [
            [_number(getattr(gpu, reading)) for gpu in found]
            if len(found := each.system.gpus.value or ()) == count
            else [math.nan] * count
            for each in self.observations
        ]
        return np.asarray(rows, dtype=np.float64).reshape(len(rows), count)

    def throttle_reasons(self, device: int) -> list[tuple[str, ...]]:
        """Return what the driver said held a device's clocks down, with each sample in which it could be asked."""
        samples = (each.system.gpus.value or () for each in self.observations)
        said = (gpus[device].throttle.value for gpus in samples if len(gpus) > device)
        return [reasons for reasons in said if reasons is not None]

    def disk(self, place: int) -> Numbers:
        """Return free bytes of a disk."""
        return np.asarray([spaces[place].free for spaces in self.disks], dtype=np.float64)


def _number(fact: Fact[int] | Fact[float]) -> float:
    return math.nan if fact.value is None else float(fact.value)


def _space(folder: Path) -> DiskSpace:
    try:
        found = shutil.disk_usage(folder)
    except OSError:
        return DiskSpace(folder, math.nan, math.nan)
    return DiskSpace(folder, float(found.free), float(found.total))
