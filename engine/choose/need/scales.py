"""The values that a number of a plan may take, in order, each by its index."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from capacity_tui.engine.schema import LARGEST_COUNT, Knob

_DIGITS = 3
"""Significant digits to which amounts that are no whole numbers are looked for."""
_FIRST = int("1".ljust(_DIGITS, "0"))
_VALUES_A_DECADE = 9 * _FIRST
_FINER = 10
"""A share between two ends is looked for in so many parts of one step of its field."""
_FEW = 32
"""So many values are all tried."""
_WIDER = 4
"""Ratio of a value to the next, while limits are looked for from afar."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Values in order.

    Attributes:
        low: index of the smallest value.
        high: index of the largest value.
        value: the value at an index.
        nearest: index of the value nearest to a number, as if the scale had no ends.
        stride: from one index to the next, while limits are looked for from afar; 0 for a ratio of their values.
    """

    low: int
    high: int
    value: Callable[[int], int | float]
    nearest: Callable[[float], int]
    stride: int = 0

    def index(self, value: float) -> int:
        """Return the index of the nearest value."""
        return min(max(self.nearest(value), self.low), self.high)

    @property
    def few(self) -> range:
        """Every index of a scale that has few; none of others."""
        return range(self.low, self.high + 1) if self.high - self.low < _FEW else range(0)

    def outwards(self, start: int, direction: int) -> Iterator[int]:
        """Yield indices further and further away in one direction, the end of the scale last.

        Args:
            start: where to begin; not yielded itself.
            direction: 1 for larger values, -1 for smaller ones.
        """
        index, end = start, self.high if direction > 0 else self.low
        while index != end:
            index = self._further(index, direction)
            index = min(index, end) if direction > 0 else max(index, end)
            yield index

    def _further(self, index: int, direction: int) -> int:
        if self.stride:
            return index + direction * self.stride
        value = self.value(index)
        there = self.index(value * _WIDER if direction > 0 else value / _WIDER)
        return there if there != index else index + direction


def whole_numbers(low: int, high: int, grain: int = 1) -> Scale:
    """Return multiples of a whole number."""
    return Scale(low, high, lambda index: index * grain, lambda value: round(value / grain))


def whole_nodes(node: int, grain: int, most: int) -> Scale:
    """Return multiples of a whole number up to the devices of a node, then those that fill whole nodes.

    Args:
        node: devices of a node.
        grain: what every value is a multiple of.
        most: no value is larger.
    """
    inside = node // grain  # values within a node
    apart = math.lcm(node, grain)  # from one value to the next, beyond a node
    filled = node // apart  # values of those that are within a node: one or none

    def value_at(index: int) -> int:
        return index * grain if index <= inside else (index - inside + filled) * apart

    def nearest(value: float) -> int:
        beyond = round(value / apart) - filled
        return inside + beyond if beyond > 0 else min(round(value / grain), inside)

    return Scale(1, inside + max(most // apart - filled, int(inside == 0)), value_at, nearest)


def scale_of(knob: Knob, is_whole: bool, grain: int = 1) -> Scale:
    """Return the values that a number may take, as the metadata of its field say.

    Args:
        knob: range and step of the field.
        grain: what it must be a multiple of.
    """
    low, high = knob.minimum or 0.0, knob.maximum or float(LARGEST_COUNT)
    if is_whole:
        return whole_numbers(math.ceil(low / grain) or int(low > 0), max(int(high) // grain, 1), grain)
    if high <= 100 * knob.step:
        step = knob.step / _FINER
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        stride = max((last - first) // 16, 1)
        return Scale(first, last, lambda index: round(index * step, 12), lambda value: round(value / step), stride)
    return Scale(_digits_index(low or knob.step), _digits_index(high), _of_digits, _digits_index)


def _of_digits(index: int) -> float:
    """Return a positive number of few significant digits."""
    power, rest = divmod(index, _VALUES_A_DECADE)
    return float(f"{rest + _FIRST}e{power - _DIGITS + 1}")


def _digits_index(value: float) -> int:
    """Return the index of a positive number among those of few digits."""
    mantissa, _, power = f"{value:.{_DIGITS - 1}e}".partition("e")
    return int(power) * _VALUES_A_DECADE + round(float(mantissa) * _FIRST) - _FIRST
