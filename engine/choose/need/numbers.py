"""Numbers: from afar to the two values next to each other of which one keeps the limits and one does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from capacity_tui.engine.choose.candidates.candidate import Candidate
from capacity_tui.engine.choose.need.scales import Scale
from capacity_tui.engine.choose.search.question import Goal

_WORSE = 2
"""Values in a row that miss the limits by more and more, after which no further ones are tried."""
_AROUND = 4
"""Values next to the answer that are tried, and as many further away, to see whether any of them holds too."""
_ROUNDS = 4
"""So often the answer moves on to a value further away that holds too."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Where limits begin or cease to hold: two values next to each other.

    Attributes:
        holds: the last index that keeps the limits.
        fails: the next, which does not; None where the field's range ends.
    """

    holds: int
    fails: int | None


@dataclass(slots=True)
class ValueSearch:
    """The values of a number, and what became of those that were tried.

    Attributes:
        scale: the values.
        evaluate: tries the value at a index.
        evaluated: what was tried, by index.
    """

    scale: Scale
    evaluate: Callable[[int | float], Candidate]
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
        for index in self.scale.few:
            self.at(index)
        if self.scale.few:
            return
        for direction in (1, -1):
            self._walk(start, direction)
        if not self.holding:
            self._between()

    def _walk(self, start: int, direction: int) -> None:
        before, worse = self.at(start), 0
        for index in self.scale.outwards(start, direction):
            candidate = self.at(index)
            # Of what has no number, nobody can say whether it is worse.
            worse = worse + 1 if np.inf > candidate.violation >= before.violation > 0 else 0
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
        """Return where the limits cease to hold, from a value that keeps them on in one direction.

        Args:
            direction: 1 for larger values, -1 for smaller ones.
        """
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

        def score(tried: Candidate) -> float:
            value = tried.number(goal.figure) if tried.holds else None
            return np.inf if value is None else goal.sign * value

        return self._lowest(score)

    def nearest(self) -> int:
        """Return the index that misses the limits by least, of what was tried, and of what lies around that."""
        return self._lowest(lambda tried: tried.violation)

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
