"""A disk that fills up, all at once with checkpoints or little by little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.observe.foresight.trends import Numbers


@dataclass(frozen=True, slots=True)
class DiskFilling:
    """When a disk is full.

    Attributes:
        free_bytes: free now.
        rise_bytes: the largest that it took at once; 0 where it takes little by little.
        seconds: until it is full at this rate; infinite where it never is.
    """

    free_bytes: float
    rise_bytes: float
    seconds: float


def filling(times: Numbers, free: Numbers, total: float, limits: Mapping[str, float]) -> DiskFilling | None:
    """Return that a disk will be full soon; None where it will not.

    Args:
        times: seconds, ascending.
        free: free bytes at those times.
        total: bytes of the disk.
        limits: thresholds of the detector ``disk``.
    """
    kept = np.isfinite(free)
    times, free = times[kept], free[kept]
    if free.size < 2 or total <= 0:
        return None
    now = float(free[-1])
    rises = _rises(-free, limits["rise_share"] * total)
    largest = max(rises, default=0.0)
    middle = int(np.searchsorted(times, (times[0] + times[-1]) / 2))
    # What is deleted again makes the newer half slower.
    rate = min(_rate(times, free, 0), _rate(times, free, middle))
    seconds = now / rate if rate > 0 else np.inf
    soon = len(rises) >= limits["rises"] and seconds <= limits["soon"]
    little = rate > 0 and len(rises) > 1 and now < limits["fits"] * largest
    if soon or little or now < limits["least_free_share"] * total:
        return DiskFilling(now, largest, seconds)
    return None


def _rate(times: Numbers, free: Numbers, start: int) -> float:
    """Return bytes taken a second since a sample."""
    passed = float(times[-1] - times[start])
    return float(free[start] - free[-1]) / passed if passed > 0 else 0.0


def _rises(used: Numbers, least: float) -> list[float]:
    """Return how much each stretch of growth added, where that is worth telling."""
    changes = np.diff(used)
    starts = np.flatnonzero(np.diff(np.concatenate(([False], changes > 0, [False]))))
    rises = [float(used[end] - used[start]) for start, end in zip(starts[::2], starts[1::2], strict=True)]
    return [rise for rise in rises if rise >= least]
