"""The fewest machines that carry a load inside its limits, each number of them planned as the user would plan it."""

from __future__ import annotations

from collections.abc import Callable

from capacity_tui.engine.fleet.migration.reached import Reached
from capacity_tui.engine.numeric import mean

NEARLY = 1e-9
"""Machines that do the same work as nearly as numbers can tell are enough."""
# Limits that so many times the machines do not keep are kept by no number of them.
_SPARE = 4.0
_MOST = 4096


class Fewest:
    """Finds how many machines a service takes.

    Args:
        on: returns what so many machines reach.
        wanted: work a second that they have to do.
        keeps_limits: whether limits of latency depend on how many there are.
    """

    def __init__(self, on: Callable[[int], Reached], wanted: float, *, keeps_limits: bool) -> None:
        self._on, self._wanted, self._keeps_limits = on, wanted, keeps_limits
        self._known: dict[int, Reached] = {}

    def from_guess(self, guess: int) -> tuple[int, Reached]:
        """Return the fewest machines and what they reach; where none keep the limits, the fewest that do the work.

        Args:
            guess: where to begin.
        """
        low, high = 0, guess
        while not self._is_enough(high):
            if self._is_hopeless(high):
                return self._least(0, high, self._does_work) if self._does_work(high) else (1, self._at(1))
            low, high = high, 2 * high
        if high > 1 and low < high - 1 and not self._is_enough(high - 1):
            return high, self._at(high)
        return self._least(low, high, self._is_enough)

    def _least(self, low: int, high: int, holds: Callable[[int], bool]) -> tuple[int, Reached]:
        """Return the least number that holds, of one that does not and one that does."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high, self._at(high)

    def _is_enough(self, count: int) -> bool:
        return self._does_work(count) and (self._at(count).fits or not self._keeps_limits)

    def _does_work(self, count: int) -> bool:
        return self._work(count) >= self._wanted * (1.0 - NEARLY)

    def _is_hopeless(self, count: int) -> bool:
        return self._work(count) >= _SPARE * self._wanted or 2 * count > _MOST or self._at(count).filled is None

    def _work(self, count: int) -> float:
        work = self._at(count).work
        return 0.0 if work is None else mean(work.value)

    def _at(self, count: int) -> Reached:
        if count not in self._known:
            self._known[count] = self._on(count)
        return self._known[count]
