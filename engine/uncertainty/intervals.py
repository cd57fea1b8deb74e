"""A value with its range, and the ratios of measured to estimated that make it one."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its range.

    Attributes:
        value: the estimate.
        low: lower end: of ten runs like it, one was measured below.
        high: upper end: one was measured above.
    """

    value: Number
    low: Number
    high: Number

    @classmethod
    def exactly(cls, value: Number) -> Interval:
        """Return a value that is known, or whose range nobody knows: both ends are the value itself."""
        return cls(value, value, value)

    @property
    def ends(self) -> tuple[Number, Number, Number]:
        """The value, and both ends of its range."""
        return self.value, self.low, self.high

    def scaled(self, factor: Number) -> Interval:
        """Return the value and its range times a factor."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    def at_least(self, certain: Number) -> Interval:
        """Return the value with a range that does not go below what is certain."""
        return Interval(self.value, np.minimum(np.maximum(self.low, certain), self.value), self.high)

    def at_most(self, certain: Number) -> Interval:
        """Return the value with a range that does not go above what is certain."""
        return Interval(self.value, self.low, np.maximum(np.minimum(self.high, certain), self.value))


@dataclass(frozen=True, slots=True)
class Range:
    """Ratios of measured to estimated, and where they come from.

    Attributes:
        low, high: the ratios at both ends.
        basis: which runs they come from, and what widens them, in words.
        beyond: what of the run nobody measured, in words.
    """

    low: Number
    high: Number
    basis: str = ""
    beyond: tuple[str, ...] = ()

    def around(self, value: Number) -> Interval:
        """Return a value with this range."""
        return Interval(value, value * self.low, value * self.high)

    @property
    def inverse(self) -> Range:
        """The range of a rate, where this is that of its time."""
        return Range(1.0 / self.high, 1.0 / self.low, self.basis, self.beyond)


def existing(value: Number | Interval | None) -> Number | Interval | None:
    """Return a value, or None where a single one is infinite: there is no such figure. Arrays stay as they are."""
    number = value.value if isinstance(value, Interval) else value
    return None if number is None or (np.ndim(number) == 0 and np.isinf(number)) else value
