"""What runs of the user's own say of a further one: as much as they are like it.

Runs are alike by words (kind of work, precision, family, software, method, optimizer) and by numbers (length,
parameters, batch, devices): ``r`` is 1 for the same plan and falls with each difference. A figure is corrected by
the median of the runs, each weighted by what it knows of the plan; where even the most alike is another precision or
family, only the share ``r`` of that correction is made. With the weights ``w = weight · r²``, ``n`` their sum (of at
least one), ``v`` the mean square of what the correction leaves of the runs and ``e`` that of how far they lie from the
estimate without them, the variance of a further run is

    (1 - r²) · usual + r² · (s² + b · q / (b + q))
    s0² = min(scatter², max(usual, e))                           between runs of one plan, before any was seen
    s²  = (patience · s0² + n · v) / (patience + n - 1)          likewise, after those that were
    b   = max(usual, e) - s0²                                    of the estimate itself
    q   = s² · π / 2n                                            of the correction, which is a median

so that runs that agree with their estimate never widen, few narrow little, unlike ones nothing, and runs that disagree
with each other or with an estimate that was thought sure widen it as far as they show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.machine import MeasuredRun
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass

Floats: TypeAlias = NDArray[np.float64]

KIND = "kind"
"""The word of runs that have nothing to say of each other where it differs: training, serving, fitting."""

ALIKE_WORDS = ("precision", "family", "software", "method", "optimizer")
ALIKE_NUMBERS = ("length", "parameters", "batch", "devices")

# How far tensors usually are from their estimate: what a peak says of memory outside the allocator is as unsure.
TENSOR_ERROR = 0.1

SMALLEST = 1e-12
"""Below any variance, to divide by."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike runs stay: factors for another word and for a doubling, and what is known of spreads before any run."""

    words: Mapping[str, float]
    doubling: float
    scatter: float
    patience: float


@dataclass(frozen=True, slots=True)
class OwnSpread:
    """What runs of the user's own say of how far a further one lies from its estimate.

    Attributes:
        alike: square of how alike the most alike of them is, from 0 to 1.
        runs: how many runs like it there are, each counted as far as it is alike.
        left: mean square of what the correction leaves of them, as logarithms.
        off: likewise of how far they lie from the estimate without them.
        likeness: what is known of spreads before any run.
    """

    alike: Number
    runs: Number
    left: Number
    off: Number
    likeness: Likeness

    def variance(self, usual: Number) -> Number:
        """Return the variance among runs like it.

        Args:
            usual: without runs of the user's own.
        """
        patience, count = self.likeness.patience, np.maximum(self.runs, 1.0)
        shown = np.maximum(usual, self.off)
        scatter = np.minimum(self.likeness.scatter**2, shown)
        estimate = shown - scatter
        # A run that the correction was taken from says nothing of how far others lie, and the correction errs as well.
        scatter = (patience * scatter + self.runs * self.left) / (patience + count - 1.0)
        correction = scatter * math.pi / 2.0 / count
        return scatter + estimate * correction / np.maximum(estimate + correction, SMALLEST)


@dataclass(frozen=True, slots=True)
class OwnRuns:
    """All runs that count for a device."""

    runs: tuple[MeasuredRun, ...]
    likeness: Likeness

    def speed(self, words: Mapping[str, str]) -> float:
        """Return how many times faster a device is for runs of these words than its constants say."""
        return math.exp(self._correction([run for run in self.runs if run.speed], words, _log_speed, _whole_weight))

    def context_bytes(self, words: Mapping[str, str], usual: float) -> float:
        """Return the memory outside the allocator of runs of these words.

        Args:
            words: what a run is like.
            usual: what it is without any run.
        """

        def size(run: MeasuredRun) -> float:
            return math.log(max((run.peak_bytes or 0.0) - run.tensor_bytes, TENSOR_ERROR * usual) / usual)

        def certainty(run: MeasuredRun) -> float:
            return 1.0 / (1.0 + (TENSOR_ERROR * run.tensor_bytes / usual) ** 2)

        return usual * math.exp(self._correction([run for run in self.runs if run.peak_bytes], words, size, certainty))

    def time_spread(self, words: Mapping[str, str], numbers: Mapping[str, Number]) -> OwnSpread | None:
        """Return what the runs say of how sure a time is; None where no run is of the kind."""
        speed, timed = math.log(self.speed(words)), [run for run in self.runs if run.speed]
        return self._spread(timed, words, numbers, lambda run: _log_speed(run) - speed, _log_speed)

    def memory_spread(self, words: Mapping[str, str], numbers: Mapping[str, Number], usual: float) -> OwnSpread | None:
        """Return what the runs say of how sure memory is; None where no run is of the kind.

        Args:
            words, numbers: what a run is like.
            usual: its memory outside the allocator without any run.
        """

        def above(context_bytes: float) -> Callable[[MeasuredRun], float]:
            return lambda run: math.log((run.peak_bytes or 0.0) / (run.tensor_bytes + context_bytes))

        held = [run for run in self.runs if run.peak_bytes]
        return self._spread(held, words, numbers, above(self.context_bytes(words, usual)), above(usual))

    def alike(self, run: MeasuredRun, words: Mapping[str, str]) -> float:
        """Return how alike a run is to one of these words, from 0 to 1."""
        if run.words.get(KIND) != words.get(KIND):
            return 0.0
        apart = [name for name in ALIKE_WORDS if run.words.get(name) != words.get(name)]
        return math.prod(self.likeness.words[name] for name in apart)

    def _correction(
        self,
        runs: Sequence[MeasuredRun],
        words: Mapping[str, str],
        value: Callable[[MeasuredRun], float],
        certainty: Callable[[MeasuredRun], float],
    ) -> float:
        """Return the weighted median of what runs say, as far as the most alike of them is alike."""
        alike = [self.alike(run, words) for run in runs]
        if not any(share * run.weight for run, share in zip(runs, alike, strict=True)):
            return 0.0
        unsure = self.likeness.scatter**2
        weights = [
            run.weight * certainty(run) * share**2 / (1.0 - share**2 + unsure)
            for run, share in zip(runs, alike, strict=True)
        ]
        return max(alike) * _weighted_median([value(run) for run in runs], weights)

    def _spread(
        self,
        runs: Sequence[MeasuredRun],
        words: Mapping[str, str],
        numbers: Mapping[str, Number],
        left: Callable[[MeasuredRun], float],
        off: Callable[[MeasuredRun], float],
    ) -> OwnSpread | None:
        alike = np.array([self.alike(run, words) * run.weight**0.5 for run in runs])
        if not np.any(alike):
            return None
        known = [name for name in ALIKE_NUMBERS if name in numbers]
        doublings = sum((_doublings(runs, name, numbers[name]) for name in known), np.zeros(()))
        squares = (alike * self.likeness.doubling**doublings) ** 2
        count = squares.sum(axis=-1)

        def mean_square(distance: Callable[[MeasuredRun], float]) -> Floats:
            far = np.array([distance(run) ** 2 for run in runs])
            return np.asarray((squares * far).sum(axis=-1) / np.maximum(count, SMALLEST))

        return OwnSpread(squares.max(axis=-1), count, mean_square(left), mean_square(off), self.likeness)


def _log_speed(run: MeasuredRun) -> float:
    return math.log(run.speed or 1.0)


def _whole_weight(_: MeasuredRun) -> float:
    return 1.0


def _doublings(runs: Sequence[MeasuredRun], name: str, number: Number) -> Floats:
    """Return how many doublings of a number lie between a run, or several as arrays, and each of some."""
    theirs = np.log2([max(run.numbers.get(name, 1.0), 1.0) for run in runs])
    return np.asarray(np.abs(np.log2(np.maximum(np.asarray(number, dtype=np.float64), 1.0))[..., None] - theirs))


def _weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the value with half of the weight on either side, between two where it falls between them."""
    order = [place for place in np.argsort(values) if weights[place] > 0]
    ordered, share = np.asarray(values)[order], np.asarray(weights)[order]
    places = (np.cumsum(share) - share / 2.0) / share.sum()
    return float(np.interp(0.5, places, ordered))
