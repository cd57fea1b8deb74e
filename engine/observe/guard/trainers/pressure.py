"""Whether a micro-batch should shrink before memory runs out, and when it may grow again."""

from __future__ import annotations

from dataclasses import dataclass, field

_SOON = 2
"""Steps above the limit after which it shrinks: one may be a spike."""
_CALM = 50
"""Steps of room after which it grows; twice as many each time that growing was too early."""
_MARGIN = 0.02
"""Share that stays free below the limit when it grows."""


@dataclass(slots=True)
class MicroBatchControl:
    """Keeps a micro-batch as large as memory allows, and the samples of a step the same.

    Attributes:
        largest: what the plan says: it never grows beyond that.
        samples: of a replica's step, which micro-batches have to divide.
        limit: share of memory from which on it is too much.
    """

    largest: int
    samples: int
    limit: float
    current: int = 0
    _above: int = 0
    _below: int = 0
    _calm: int = _CALM
    _since_growing: int | None = None
    _before: dict[int, float] = field(default_factory=dict)
    _freed: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.current = self.current or self.largest

    @property
    def accumulation(self) -> int:
        """Micro-batches of a replica's step."""
        return max(1, self.samples // self.current)

    def step(self, share: float | None) -> int:
        """Take the share of memory that was used at most in a step, and return the micro-batch of the next."""
        if share is None:
            return self.current
        self._learn(share)
        if self._since_growing is not None:
            self._since_growing += 1
        self._above = self._above + 1 if share >= self.limit else 0
        self._below = self._below + 1 if self._has_room(share) else 0
        if self._above >= _SOON and self.current > 1:
            self._shrink(share)
        elif self._below >= self._calm:
            self._set(next(size for size in self._sizes() if size > self.current))
            self._since_growing = 0
        return self.current

    def _shrink(self, share: float) -> None:
        if self._since_growing is not None and self._since_growing <= self._calm:
            self._calm *= 2
        self._since_growing = None
        self._before[self.current] = share
        self._set(max(size for size in self._sizes() if size < self.current))
        self._freed.pop(self.current, None)

    def _learn(self, share: float) -> None:
        """Remember what a smaller micro-batch frees, from the first step with it: others come and go."""
        above = min((size for size in self._before if size > self.current), default=None)
        if above is not None:
            self._freed.setdefault(self.current, self._before[above] - share)

    def _has_room(self, share: float) -> bool:
        """Whether what the last shrinking freed would fit in again."""
        if self.current >= self.largest:
            return False
        freed = self._freed.get(self.current)
        return freed is not None and share + max(freed, 0.0) < self.limit - _MARGIN

    def _sizes(self) -> list[int]:
        """Return halves of the largest micro-batch, the smallest first, that divide the samples of a step."""
        sizes, size = [], self.largest
        while size >= 1:
            if self.samples % size == 0:
                sizes.append(size)
            size //= 2
        return sorted({1, *sizes})

    def _set(self, size: int) -> None:
        self.current, self._above, self._below = size, 0, 0
