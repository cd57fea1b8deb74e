"""Laws by which time, memory and disk grow with the size of a job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.estimate import equation
from capacity_tui.engine.numeric import Number


@equation("shape = size^power · ln(size)^logarithms", unit="", source="orders of growth of common algorithms")
def shape(size: Number, power: Number, logarithms: Number) -> Number:
    """How a law grows, up to a factor.

    Args:
        size: samples of the job, one or more.
        power: exponent of the size.
        logarithms: exponent of its logarithm.
    """
    return np.power(size, power) * np.power(np.log(size), logarithms)


@equation("value = start + rate · shape", unit="", source="what every run takes, and what grows with its size")
def grown(start: Number, rate: Number, shape: Number) -> Number:
    """What a run of some size takes.

    Args:
        start: what it takes however small it is.
        rate: factor of what grows.
        shape: how that grows.
    """
    return start + rate * shape


@dataclass(frozen=True, slots=True)
class Law:
    """A law of growth.

    Attributes:
        name: as it is usually written.
        power: exponent of the size; None where it is fitted.
        logarithms: exponent of the size's logarithm.
        grows: whether there is more than the start.
    """

    name: str
    power: float | None = 0.0
    logarithms: float = 0.0
    grows: bool = True

    @property
    def coefficients(self) -> int:
        """How many numbers are fitted to the measurements."""
        return 1 + self.grows + (self.power is None)


CONSTANT = Law("O(1)", grows=False)
LINEAR = Law("O(n)", 1.0)
POWER = Law("power law", None)
LAWS = (
    CONSTANT,
    Law("O(log n)", 0.0, 1.0),
    LINEAR,
    Law("O(n log n)", 1.0, 1.0),
    Law("O(n^2)", 2.0),
    Law("O(n^3)", 3.0),
    POWER,
)
"""The laws there are, the slowest first; the power law has any exponent."""
