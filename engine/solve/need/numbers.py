"""The values of a number in order, and two neighbours of which one keeps the limits and one does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import pairwise

import numpy as np

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import LARGEST_COUNT, Knob
from capacity_tui.engine.solve.candidate import Candidate
from capacity_tui.engine.solve.search.question import Goal

_DIGITS = 3  # Significant digits to which amounts that are no whole numbers are looked for
_FIRST = int("1".ljust(_DIGITS, "0"))
_VALUES_A_DECADE = 9 * _FIRST
_FINER = 10  # A share between two ends is looked for in so many parts of one step of its field
_FEW = 32  # So many values are all tried
_WIDER = 4  # Ratio of a value to the next, while limits are looked for from afar


@dataclass(frozen=True, slots=True)
class Scale:
    """Values in order."""

    low: int
    high: int
    value: Callable[[int], int | float]
    nearest: Callable[[float], int]  # index of the value nearest to a number, as if the scale had no ends
    stride: int = 0  # from one index to the next, while limits are looked for from afar; 0 for a ratio of their values

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


_WORSE = 2  # Values in a row that miss the limits by more and more, after which no further ones are tried
_AROUND = 4  # Values next to the answer that are tried, and as many further away, to see whether any of them holds too
_ROUNDS = 4  # So often the answer moves on to a value further away that holds too


def _closing(gap: int) -> int:
    """Return how many values close a gap by halves and see whether any beyond it holds."""
    return gap.bit_length() + 2 * _AROUND


@dataclass(frozen=True, slots=True)
class Edge:
    """Where limits begin or cease to hold: two values next to each other."""

    holds: int  # the last index that keeps the limits
    fails: int | None  # the next, which does not; None where the field's range ends


@dataclass(slots=True)
class ValueSearch:
    """The values of a number, and what became of those that were tried."""

    scale: Scale
    evaluate: Callable[[int | float], Candidate]  # tries the value at a index
    # told how many more values are tried at the most, as far as that is known
    expect: Callable[[int], None] = lambda _: None
    evaluated: dict[int, Candidate] = field(default_factory=dict)

    def at(self, index: int) -> Candidate:
        """Return what becomes of the value at a index."""
        if index not in self.evaluated:
            self.evaluated[index] = self.evaluate(self.scale.value(index))
        return self.evaluated[index]

    def holds(self, index: int) -> bool:
        """Whether the value at a index keeps the limits."""
        return self.at(index).holds

    @property
    def holding(self) -> list[int]:
        """The indices tried that keep the limits, in order."""
        return [index for index in sorted(self.evaluated) if self.evaluated[index].holds]

    def spread(self, start: int) -> None:
        """Try values from a start outwards, until they miss the limits by more and more; all where there are few."""
        self.expect(len(self.scale.few))
        for index in self.scale.few:
            self.at(index)
        if self.scale.few:
            return
        afar = 1 + sum(1 for direction in (1, -1) for _ in self.scale.outwards(start, direction))
        self.expect(afar + 2 * _closing(self.scale.high - self.scale.low))
        for direction in (1, -1):
            self._walk(start, direction)
        if not self.holding:
            self._between()

    def _walk(self, start: int, direction: int) -> None:
        before, worse = self.at(start), 0
        for index in self.scale.outwards(start, direction):
            candidate = self.at(index)
            # Of what has no number, nobody can say whether it is worse.
            worse = worse + 1 if np.inf > candidate.violation > before.violation > 0 else 0
            if worse > _WORSE:
                return
            before = candidate

    def _between(self) -> None:
        """Look for values that hold between two that break different limits."""
        indices = sorted(self.evaluated)
        for low, high in pairwise(indices):
            if self._breaks(low) != self._breaks(high) and self._crossed(low, high):
                return

    def _crossed(self, low: int, high: int) -> bool:
        below = self._breaks(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.holds(middle):
                return True
            if self._breaks(middle) & below:
                low = middle
            else:
                high = middle
        return False

    def _breaks(self, index: int) -> frozenset[str]:
        candidate = self.at(index)
        return frozenset(constraint.key for constraint in candidate.violations) or frozenset(
            [candidate.fault] if candidate.fault else []
        )

    def edge(self, start: int, direction: int) -> Edge:
        """Return where the limits cease to hold, from a value that keeps them on in one direction."""
        edge = self._nearest_edge(start, direction)
        for _ in range(_ROUNDS):
            further = next((index for index in self._beyond(edge, direction) if self.holds(index)), None)
            if further is None:
                break
            edge = self._nearest_edge(further, direction)
        return edge

    def _nearest_edge(self, start: int, direction: int) -> Edge:
        """Return the edge between the last known index that holds and the first beyond it that does not."""
        ahead = sorted((index for index in self.evaluated if (index - start) * direction > 0), reverse=direction < 0)
        last_held = max((index for index in (start, *ahead) if self.holds(index)), key=lambda index: index * direction)
        fails = next((index for index in ahead if (index - last_held) * direction > 0), None)
        if fails is None:
            return Edge(last_held, None)
        held = last_held
        self.expect(2 * _closing(abs(fails - held)))
        while abs(fails - held) > 1:
            middle = (held + fails) // 2
            if self.holds(middle):
                held = middle
            else:
                fails = middle
        return Edge(held, fails)

    def _beyond(self, edge: Edge, direction: int) -> Iterator[int]:
        """Yield indices beyond an edge: the next ones, and some between them and the next that is known to fail."""
        if edge.fails is None:
            return
        end = self.scale.high if direction > 0 else self.scale.low
        near = [edge.fails + direction * step for step in range(1, _AROUND + 1)]
        yield from (index for index in near if (end - index) * direction >= 0)
        ahead = sorted((index for index in self.evaluated if (index - near[-1]) * direction > 0), reverse=direction < 0)
        if ahead:
            gap = abs(ahead[0] - near[-1])
            yield from (near[-1] + direction * gap * part // _AROUND for part in range(1, _AROUND) if gap >= _AROUND)

    @property
    def is_monotonic(self) -> bool:
        """Whether no value that was tried fails between two that hold."""
        holding = self.holding
        return not any(
            not self.evaluated[index].holds for index in self.evaluated if holding and holding[0] < index < holding[-1]
        )

    def best(self, goal: Goal) -> int:
        """Return the index that holds and reaches a goal best: of what was tried, and of what lies around that."""

        def score(candidate: Candidate) -> float:
            value = candidate.number(goal.figure) if candidate.holds else None
            return np.inf if value is None else goal.sign * value

        return self._lowest(score)

    def nearest(self) -> int:
        """Return the index that misses the limits by least, of what was tried, and of what lies around that."""
        return self._lowest(lambda candidate: candidate.violation)

    def _lowest(self, score: Callable[[Candidate], float]) -> int:
        while True:
            indices = sorted(self.evaluated)
            best = min(indices, key=lambda index: score(self.evaluated[index]))
            at = indices.index(best)
            around = {indices[max(at - 1, 0)], indices[min(at + 1, len(indices) - 1)]}
            untried = {(best + other) // 2 for other in around} - set(indices)
            if not untried:
                return best
            for index in untried:
                self.at(index)
