"""What a machine reached of the modelled rate, by the size of the work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.numeric import Number


@dataclass(frozen=True, slots=True)
class Curve:
    """Speed of one kind of kernel at sampled sizes.

    Attributes:
        name: kind of kernel, with the type of compute-bound ones: ``gemm.fp32``, ``optimizer``.
        sizes: FLOPs of a run, ascending; bytes of memory-bound kernels.
        ratios: measured over modelled rate at each size; of memory-bound kernels, over the nominal bandwidth.
    """

    name: str
    sizes: tuple[float, ...]
    ratios: tuple[float, ...]

    def at(self, size: Number) -> Number:
        """Return the ratio at a size, interpolated over its logarithm; 1 outside the sampled range."""
        inside = np.interp(np.log(np.maximum(size, 1.0)), np.log(self.sizes), self.ratios)
        return np.where(self.covers(size), inside, 1.0)

    def covers(self, size: Number) -> Number:
        """Return 1 where a size lies in the sampled range, else 0."""
        inside = (np.asarray(size) >= self.sizes[0]) & (np.asarray(size) <= self.sizes[-1])
        return np.where(inside, 1.0, 0.0)
