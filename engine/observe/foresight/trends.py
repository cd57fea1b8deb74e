"""Order and slope of noisy numbers, from medians and ranks alone: single outliers do not move them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
_LOW, _HIGH = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class Slope:
    """Change a second: the median over all pairs of points, and what eight of ten pairs far apart keep to."""

    value: float
    low: float
    high: float


def lower_envelope(times: Numbers, values: Numbers, blocks: int) -> tuple[Numbers, Numbers]:
    """Return the least value of each of some equal parts, with the time of the middle of the part."""
    parts = [part for part in np.array_split(np.arange(values.size), blocks) if part.size]
    return (
        np.asarray([times[part].mean() for part in parts]),
        np.asarray([values[part].min() for part in parts]),
    )


def order(values: Numbers) -> float:
    """Return by how many standard deviations values rise more often than they would by chance (Mann and Kendall)."""
    n = values.size
    if n < 3:
        return 0.0
    signs = np.sign(values[None, :] - values[:, None])
    score = float(np.sum(np.triu(signs, 1)))
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    return 0.0 if variance <= 0 or score == 0 else (score - math.copysign(1, score)) / math.sqrt(variance)


def slope(times: Numbers, values: Numbers) -> Slope:
    """Return the slope through points in order of time (Theil and Sen)."""
    first, second = np.triu_indices(values.size, 1)
    apart = times[second] - times[first]
    usable = apart > 0
    if not np.any(usable):
        return Slope(0.0, 0.0, 0.0)
    slopes = (values[second] - values[first])[usable] / apart[usable]
    far = slopes[apart[usable] >= apart[usable].max() / 3]
    low, high = np.quantile(far, (_LOW, _HIGH))
    return Slope(float(np.median(slopes)), float(low), float(high))


def scatter(times: Numbers, values: Numbers, line: Slope) -> float:
    """Return the standard deviation around a line, from the median of what is off it."""
    off = values - line.value * times
    return float(1.4826 * np.median(np.abs(off - np.median(off))))


def width(values: Numbers) -> float:
    """Return the distance from the median that nine of ten values keep to."""
    return float(np.quantile(np.abs(values - np.median(values)), _HIGH))
