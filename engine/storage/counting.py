"""Counts how often each of many things comes, in bounded memory: exactly while they have room, then on a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.storage.pieces import Hashes

_BUFFERED = 1 << 18
_HEAD = 4096
_ALL = 1 << 64

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each kind came, the most frequent first.

    Attributes:
        occurrences: in all.
        counts: of the kinds that were kept.
        stands_for: for how many kinds each of them stands: 1 where all are kept.
        rate: share of the rarer kinds that were kept.
    """

    occurrences: int
    counts: Counts
    stands_for: NDArray[np.float64]
    rate: float

    @property
    def distinct(self) -> float:
        """Different kinds; estimated where they were sampled."""
        return float(np.sum(self.stands_for))

    @property
    def relative_error(self) -> float:
        """Standard deviation of that number over itself: 0 where all were kept.

        Each of the rarer kinds is kept or not by its own hash, so that their number is binomial.
        """
        sampled = np.count_nonzero(self.stands_for > 1.0)
        return float(np.sqrt(sampled * (1.0 - self.rate)) / self.rate / self.distinct) if sampled else 0.0


class Counter:
    """Counts hashes. Kinds are kept whole or not at all, so that every count that is kept is exact.

    When there are too many kinds, those of the lower half of all hashes are kept, and the most frequent ones, then
    those of the lower quarter, and so on (Gibbons 2001, distinct sampling).

    Args:
        most: kinds that have room.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: Hashes = np.empty(0, dtype=np.uint64)
        self._counts: Counts = np.empty(0, dtype=np.int64)
        self._buffer: list[Hashes] = []
        self._buffered = 0
        self._below = _ALL
        self._occurrences = 0

    def add(self, hashes: Hashes) -> None:
        """Count some more."""
        self._occurrences += len(hashes)
        self._buffered += len(hashes)
        self._buffer.append(hashes)
        if self._buffered >= _BUFFERED:
            self._merge()

    def tally(self) -> Tally:
        """Return the counts by now."""
        self._merge()
        order = np.argsort(-self._counts, kind="stable")
        rate = self._below / _ALL
        stands_for = np.ones(len(order))
        if rate < 1.0:
            stands_for[(self._sampled(self._keys) & ~self._in_head())[order]] = 1.0 / rate
        return Tally(self._occurrences, self._counts[order], stands_for, rate)

    def _merge(self) -> None:
        if not self._buffer:
            return
        found, times = np.unique(np.concatenate(self._buffer), return_counts=True)
        self._buffer, self._buffered = [], 0
        places = np.searchsorted(self._keys, found)
        known = np.zeros(len(found), dtype=np.bool_)
        inside = places < len(self._keys)
        known[inside] = self._keys[places[inside]] == found[inside]
        self._counts[places[known]] += times[known]
        new = ~known & self._sampled(found)
        self._keys = np.insert(self._keys, places[new], found[new])
        self._counts = np.insert(self._counts, places[new], times[new])
        while len(self._keys) > self._most:
            self._below >>= 1
            stay = self._sampled(self._keys) | self._in_head()
            self._keys, self._counts = self._keys[stay], self._counts[stay]

    def _sampled(self, keys: Hashes) -> NDArray[np.bool_]:
        return keys <= np.uint64(self._below - 1)

    def _in_head(self) -> NDArray[np.bool_]:
        """Return which kinds are among the most frequent."""
        head = np.zeros(len(self._counts), dtype=np.bool_)
        size = min(_HEAD, self._most // 4, len(head))
        if size:
            head[np.argpartition(-self._counts, size - 1)[:size]] = True
        return head
