"""Timing: a kernel is run until its median time is known well enough, or its time is up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

# The median is known well enough when half of its range of uncertainty is below this share of it.
STABLE = 0.01
FEWEST, MOST = 5, 200
WARM_UPS = 2
# A batch of runs lasts this long at the least, so that reading the clock costs nothing.
BATCH_SECONDS = 0.002
# Standard error of a median over (interquartile range / square root of the count), for normal errors.
MEDIAN_ERROR = 0.93


class Clock(Protocol):
    """Times runs on one device, synchronised before and after."""

    def seconds(self, run: Callable[[], object], repeats: int) -> float:
        """Return the seconds of ``repeats`` runs one after the other."""
        ...


class HostClock:
    """For kernels that are done when their call returns.

    Args:
        threads: threads that kernels run on. What a single one spends on them is not disturbed by other work that it
            shares its core with, so the processor's time counts; several wait for each other, and the wall's does.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._now = time.process_time if threads == 1 else time.perf_counter

    def seconds(self, run: Callable[[], object], repeats: int) -> float:
        """Return the seconds of ``repeats`` runs one after the other."""
        start = self._now()
        for _ in range(repeats):
            run()
        return self._now() - start


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one run takes.

    Attributes:
        seconds: median over the batches.
        best: mean over the fastest batch.
        spread: interquartile range over the median.
    """

    seconds: float
    best: float
    spread: float
    runs: int


def summary(batches: Sequence[float], runs: int) -> Timing:
    """Return what the seconds of one run in each batch say, of so many runs in all."""
    low, median, high = np.percentile(batches, (25, 50, 75))
    return Timing(float(median), min(batches), float((high - low) / median), runs)


def time_kernel(
    run: Callable[[], object], clock: Clock, limit_seconds: float, cancelled: threading.Event | None = None
) -> Timing | None:
    """Return how long a kernel takes; None if it was cancelled before enough is known.

    Args:
        clock: waits for it and reads the time.
        limit_seconds: when to be content with what is known.
    """
    started = time.perf_counter()
    once = min(clock.seconds(run, 1) for _ in range(WARM_UPS))
    repeats = max(1, min(MOST, round(BATCH_SECONDS / max(once, 1e-9))))
    batches: list[float] = []
    while not _known(batches):
        if cancelled is not None and cancelled.is_set():
            return None
        batches.append(clock.seconds(run, repeats) / repeats)
        if time.perf_counter() - started > limit_seconds and len(batches) >= FEWEST:
            break
    return summary(batches, repeats * len(batches))


def _known(batches: list[float]) -> bool:
    if len(batches) < FEWEST:
        return False
    low, median, high = np.percentile(batches, (25, 50, 75))
    error = MEDIAN_ERROR * (high - low) / len(batches) ** 0.5
    return len(batches) >= MOST or bool(error <= STABLE * median)
