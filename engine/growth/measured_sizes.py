"""Measurements gathered by size: means of their logarithms, and how much repeats of one size spread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.growth.choices import chosen_number

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSizes:
    """Measurements of one figure at several sizes; one place of each array is one size, the smallest first.

    Attributes:
        sizes: different sizes.
        logs: means of the logarithms of what was measured.
        counts: how often each size was measured.
        variances: of these means.
        freedom: degrees of freedom that the variances rest on; 0 without repeats.
    """

    sizes: Floats
    logs: Floats
    counts: Floats
    variances: Floats
    freedom: float

    @property
    def measurements(self) -> int:
        """How many measurements there are in all."""
        return int(self.counts.sum())

    @property
    def noise(self) -> float:
        """Spread of a single measurement, as a share."""
        return float(np.sqrt(np.mean(self.variances * self.counts)))

    def with_spread(self, factor: float, freedom: float) -> MeasuredSizes:
        """Return the same with variances so many times as large, which rest on so many degrees of freedom."""
        return replace(self, variances=self.variances * factor, freedom=freedom)


def measured_sizes(points: Iterable[tuple[float, float]]) -> MeasuredSizes:
    """Return measurements gathered by size.

    Noise is a share of what is measured: its logarithm spreads alike at all sizes, more or less.

    Args:
        points: size and measured value of each.

    Raises:
        CapacityError: there are none, a size is below one, or a value is not above zero.
    """
    pairs = np.array(sorted(points), dtype=np.float64).reshape(-1, 2)
    if not len(pairs):
        raise CapacityError("nothing was measured", hint="give sizes with what was measured at each")
    if not (np.isfinite(pairs).all() and (pairs[:, 0] >= 1).all()):
        raise CapacityError("a size is below 1", hint="count in smaller units, such as samples")
    if not (pairs[:, 1] > 0).all():
        raise CapacityError("a measured value is not above 0", hint="leave it out: laws of growth are of what is there")
    sizes, place = np.unique(pairs[:, 0], return_inverse=True)
    logs = np.log(pairs[:, 1])
    counts = np.bincount(place).astype(np.float64)
    means = np.bincount(place, logs) / counts
    squares = np.bincount(place, (logs - means[place]) ** 2)
    freedom = float(counts.sum() - len(sizes))
    pooled = float(squares.sum() / freedom) if freedom else 0.0
    many = chosen_number("pooled_repeats")
    own = (many * pooled + squares) / (many + counts - 1)
    return MeasuredSizes(sizes, means, counts, own / counts + chosen_number("least_noise") ** 2, freedom)
