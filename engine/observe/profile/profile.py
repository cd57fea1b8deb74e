"""A profile: what a run came to, and its course."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.observe.command import Ended
from capacity_tui.engine.observe.profile.bottleneck import Bottleneck
from capacity_tui.engine.observe.profile.latency import Latency
from capacity_tui.engine.observe.profile.snapshots import ResourceSnapshot
from capacity_tui.engine.observe.profile.stages import Stage
from capacity_tui.engine.observe.profile.usage import Usage

MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class ProfilingSummary:
    """What a run came to; numbers that could not be had are None, and ``usage.reasons`` says why.

    Attributes:
        interval: seconds between looks.
        usage: what the run and its machine used.
        samples: work that it got done, in samples; None where nobody counted.
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
        """By how much memory grew from the first look to its peak, over samples."""
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
        """The most of it between two looks."""
        return self.usage.peak("cpu_percent")

    @property
    def cpu_per_core_percent(self) -> tuple[float, ...] | None:
        """Mean use of each logical CPU of the machine, by anybody."""
        return self.usage.cores

    @property
    def network_latency_ms(self) -> float | None:
        """Mean round trip to the endpoint."""
        return self.latency.mean_ms if self.latency else None

    @property
    def primary_bottleneck(self) -> str:
        """What held it up; empty where unknown."""
        return self.bottleneck.kind

    @property
    def bottleneck_confidence(self) -> float:
        """How sure that is, from 0 to 1."""
        return self.bottleneck.confidence


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile with its course.

    Attributes:
        command: what ran; empty for this program's own work.
        ended: how a command ended; None for this program's own work.
        timeline: snapshots from its start to its end; of long runs each stands for several looks.
        problems: what went wrong with profiling itself.
    """

    command: tuple[str, ...]
    ended: Ended | None
    summary: ProfilingSummary
    timeline: tuple[ResourceSnapshot, ...]
    problems: tuple[str, ...]


def _over(value: float | None, count: float | None) -> float | None:
    return value / count if value is not None and count else None


def _in_megabytes(value: float | None) -> float | None:
    return None if value is None else value / MEGABYTE
