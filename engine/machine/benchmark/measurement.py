"""What a benchmark gives: figures with their spread, and a clock that stops on request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
