"""The values that a number of a plan may take, in order, each by its place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from capacity_tui.engine.schema import LARGEST_COUNT, Knob

_DIGITS = 3
"""Significant digits to which amounts that are no whole numbers are looked for."""
_FIRST = int("1".ljust(_DIGITS, "0"))
_PLACES = 9 * _FIRST
_FINER = 10
"""A share between two ends is looked for in so many parts of one step of its field."""
_FEW = 32
"""So many values are all tried."""
_WIDER = 4
"""Ratio of a value to the next, while limits are looked for from afar."""


class Scale(Protocol):
    """Values in order."""

    @property
    def low(self) -> int:
        """Place of the smallest value."""

    @property
    def high(self) -> int:
        """Place of the largest value."""

    def value(self, place: int) -> int | float:
        """Return the value at a place."""

    def place(self, value: float) -> int:
        """Return the place of the nearest value."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Multiples of a whole number."""

    low: int
    high: int
    grain: int = 1

    def value(self, place: int) -> int:
        """Return the value at a place."""
        return place * self.grain

    def place(self, value: float) -> int:
        """Return the place of the nearest value."""
        return min(max(round(value / self.grain), self.low), self.high)


@dataclass(frozen=True, slots=True)
class WholeNodes:
    """Multiples of a whole number up to the devices of a node, then those that fill whole nodes.

    Attributes:
        node: devices of a node.
        grain: what every value is a multiple of.
        most: no value is larger.
    """

    node: int
    grain: int
    most: int

    @property
    def low(self) -> int:
        """Place of the smallest value."""
        return 1

    @property
    def high(self) -> int:
        """Place of the largest value."""
        return self._inside + max(self.most // self._apart - self._filled, int(self._inside == 0))

    def value(self, place: int) -> int:
        """Return the value at a place."""
        return place * self.grain if place <= self._inside else (place - self._inside + self._filled) * self._apart

    def place(self, value: float) -> int:
        """Return the place of the nearest value."""
        beyond = round(value / self._apart) - self._filled
        place = self._inside + beyond if beyond > 0 else min(round(value / self.grain), self._inside)
        return min(max(place, self.low), self.high)

    @property
    def _inside(self) -> int:
        """How many values are within a node."""
        return self.node // self.grain

    @property
    def _apart(self) -> int:
        """From one value to the next, beyond a node."""
        return math.lcm(self.node, self.grain)

    @property
    def _filled(self) -> int:
        """How many of those are within a node: one or none."""
        return self.node // self._apart


@dataclass(frozen=True, slots=True)
class Even:
    """Numbers at equal distances."""

    low: int
    high: int
    step: float

    def value(self, place: int) -> float:
        """Return the value at a place."""
        return round(place * self.step, 12)

    def place(self, value: float) -> int:
        """Return the place of the nearest value."""
        return min(max(round(value / self.step), self.low), self.high)


@dataclass(frozen=True, slots=True)
class Digits:
    """Positive numbers of a few significant digits."""

    low: int
    high: int

    def value(self, place: int) -> float:
        """Return the value at a place."""
        power, rest = divmod(place, _PLACES)
        return float(f"{rest + _FIRST}e{power - _DIGITS + 1}")

    def place(self, value: float) -> int:
        """Return the place of the nearest value."""
        return min(max(_digits_place(value), self.low), self.high)


def scale_of(knob: Knob, is_whole: bool, grain: int = 1) -> Scale:
    """Return the values that a number may take, as the metadata of its field say.

    Args:
        knob: range and step of the field.
        grain: what it must be a multiple of.
    """
    low, high = knob.minimum or 0.0, knob.maximum or float(LARGEST_COUNT)
    if is_whole:
        return Whole(math.ceil(low / grain) or int(low > 0), max(int(high) // grain, 1), grain)
    if high <= 100 * knob.step:
        step = knob.step / _FINER
        return Even(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9), step)
    return Digits(_digits_place(low or knob.step), _digits_place(high))


def all_places(scale: Scale) -> range | None:
    """Return every place of a scale that has few; None for others."""
    return range(scale.low, scale.high + 1) if scale.high - scale.low < _FEW else None


def outwards(scale: Scale, start: int, direction: int) -> Iterator[int]:
    """Yield places further and further away in one direction, the end of the scale last.

    Args:
        start: where to begin; not yielded itself.
        direction: 1 for larger values, -1 for smaller ones.
    """
    place = start
    end = scale.high if direction > 0 else scale.low
    while place != end:
        place = _further(scale, place, direction)
        place = min(place, end) if direction > 0 else max(place, end)
        yield place


def _further(scale: Scale, place: int, direction: int) -> int:
    """Return a place well beyond another."""
    if isinstance(scale, Even):
        return place + direction * max((scale.high - scale.low) // 16, 1)
    value = scale.value(place)
    there = scale.place(value * _WIDER if direction > 0 else value / _WIDER)
    return there if there != place else place + direction


def _digits_place(value: float) -> int:
    """Return the place of a positive number among those of a few digits."""
    text = f"{value:.{_DIGITS - 1}e}"
    mantissa, _, power = text.partition("e")
    return int(power) * _PLACES + round(float(mantissa) * _FIRST) - _FIRST
