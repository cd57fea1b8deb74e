"""What runs of the user's own say of a further one: as much as they are like it.

The error of an estimate, ``y = ln(measured / estimated)``, is taken to be a sum of effects: one of each part that makes
it unsure (kernels, communication, ...), which runs share as far as they are alike, and one of each plan. With ``u²``
the variance of a run of which nothing is known, two runs have the covariance

    v · v' · shared · r      v² = u² - scatter², r = words · doubling ^ doublings · cosine of what makes both unsure
    v · v'                   of one plan

and the error of a further run is normal, given those that were seen (Rasmussen and Williams, Gaussian Processes for
Machine Learning, 2006, equations 2.25 and 2.26). A run beside others of the machine's users has a variance of its own
besides. Where runs lie further apart than that lets expect, ``u²`` of all that is like them was too small; with ``z²``
the square of the distance of a run from what the others let expect, over its variance, it is (as in Student's
distribution, whose degrees of freedom are the runs that count)

    u² · max(1, (patience + Σ r² · z²) / (patience + Σ r²))

so that runs as they were estimated never widen, unlike ones change next to nothing, and those that disagree widen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.machine import MeasuredRun
from capacity_tui.engine.numeric import Number, added
from capacity_tui.engine.record import dataclass

Floats: TypeAlias = NDArray[np.float64]
Words: TypeAlias = Mapping[str, str]
Numbers: TypeAlias = Mapping[str, Number]
Unsure: TypeAlias = Mapping[str, Number]
"""Standard deviations of the logarithm of measured over estimated, by the part that they come from."""

KIND = "kind"  # The word of runs that have nothing to say of each other where it differs: training, serving, fitting
ALIKE_WORDS = ("precision", "family", "software", "method", "optimizer", "attention", "layout")
ALIKE_NUMBERS = ("length", "parameters", "batch", "devices")
SAME = 1.0 - 1e-9  # Similarity of runs of one plan
SMALLEST = 1e-9  # Below any variance: what keeps runs of one plan from being one run, and to divide by
LEAST_CONTEXT = 0.1  # Share of the usual memory outside the allocator that there is at least, whatever peaks say


@dataclass(frozen=True, slots=True)
class Similarity:
    """How alike runs are, and what is known of them before any was seen."""

    words: Mapping[str, float]  # how alike runs stay where a word differs, by name
    doubling: float  # likewise for a doubling of a number
    shared: float  # share of the variance of what estimates miss that alike runs have in common
    # standard deviation between runs of one plan; of one beside others, for whom half of the machine is left, as much
    # again
    scatter: float
    patience: float  # runs that count as much as what is known of spreads before
    context: float  # standard deviation of the memory outside the allocator, over what is known of it


@dataclass(frozen=True, slots=True)
class UserSpread:
    """What runs of the user's own say of how far a further one lies from its estimate."""

    errors: _Errors  # theirs
    alike: Floats  # likeness of the further run, or of several, to each by words and numbers

    def variance(self, unsure: Unsure) -> Number:
        """Return the variance of the logarithm of measured over estimated, ``unsure`` without the user's runs."""
        return self.errors.variance(self.alike, unsure)


class UserRuns:
    """All runs that count for a device."""

    def __init__(self, runs: Sequence[MeasuredRun], likeness: Similarity) -> None:
        self.runs, self.likeness = tuple(runs), likeness
        self._timed = tuple(run for run in runs if run.speed)
        self._held = tuple(run for run in runs if run.peak_bytes)

    def speed(self, words: Words, numbers: Numbers) -> float:
        """Return how many times faster a device is for such a run than its constants say."""
        alike = self._similarities(self._timed, words, numbers)
        return math.exp(-self._times().mean(alike)) if np.any(alike) else 1.0

    def context_bytes(self, words: Words, numbers: Numbers, usual: float) -> float:
        """Return the memory outside the allocator of such a run; without any run it is the ``usual``."""
        alike = self._similarities(self._held, words, numbers)
        if not np.any(alike):
            return usual
        seen = [
            (run.peak_bytes or 0.0) - run.tensor_bytes
            for run, likeness in zip(self._held, alike, strict=True)
            if likeness >= SAME
        ]
        if seen:  # of this very plan
            return max(fmean(seen), LEAST_CONTEXT * usual)
        context = self.likeness.context
        shares = usual / np.array([run.tensor_bytes + usual for run in self._held])
        return usual * max(1.0 + context * self._peaks(usual).of_part(alike, context * shares), LEAST_CONTEXT)

    def time_spread(self, words: Words, numbers: Numbers) -> UserSpread | None:
        """Return what the runs say of how sure a time is; None where no run is of the kind."""
        alike = self._similarities(self._timed, words, numbers)
        return UserSpread(self._times(), alike) if np.any(alike) else None

    def memory_spread(self, words: Words, numbers: Numbers, usual: float) -> UserSpread | None:
        """Return what the runs say of how sure memory is; None where no run is of the kind."""
        alike = self._similarities(self._held, words, numbers)
        return UserSpread(self._peaks(usual), alike) if np.any(alike) else None

    def _times(self) -> _Errors:
        errors = [-math.log(run.speed or 1.0) for run in self._timed]
        return _Errors(errors, self._timed, "step", self._between(self._timed), self.likeness)

    def _peaks(self, usual: float) -> _Errors:
        errors = [math.log((run.peak_bytes or 0.0) / (run.tensor_bytes + usual)) for run in self._held]
        return _Errors(errors, self._held, "memory", self._between(self._held), self.likeness)

    def _between(self, runs: Sequence[MeasuredRun]) -> Floats:
        return np.stack([self._similarities(runs, run.words, run.numbers) for run in runs])

    def _similarities(self, runs: Sequence[MeasuredRun], words: Words, numbers: Numbers) -> Floats:
        """Return how alike each run is to one, or to several whose numbers are arrays, from 0 to 1."""
        by_words = [
            math.prod(self.likeness.words[name] for name in ALIKE_WORDS if run.words.get(name) != words.get(name))
            if run.words.get(KIND) == words.get(KIND)
            else 0.0
            for run in runs
        ]
        known = [name for name in ALIKE_NUMBERS if name in numbers]
        doublings = added(_doublings(runs, name, numbers[name]) for name in known)
        return np.asarray(np.array(by_words) * self.likeness.doubling**doublings)


class _Errors:
    """Errors of runs, with what they have in common.

    Args:
        errors: logarithms of measured over estimated.
        figure: ``step`` or ``memory``.
        between: how alike each run is to each by words and numbers.
        likeness: what is known before any run was seen.
    """

    def __init__(
        self, errors: Sequence[float], runs: Sequence[MeasuredRun], figure: str, between: Floats, likeness: Similarity
    ) -> None:
        self._errors, self._between, self._likeness = np.array(errors), between, likeness
        unsure = [run.unsure.get(figure) or {"": likeness.scatter} for run in runs]
        self._parts = sorted({part for parts in unsure for part in parts})
        self._unsure = np.array([[parts.get(part, 0.0) for part in self._parts] for parts in unsure])
        self._usual = np.linalg.norm(self._unsure, axis=1)
        weights = np.maximum([run.weight for run in runs], SMALLEST)
        self._disturbed = np.diag(likeness.scatter**2 * (1.0 / weights - 1.0) + SMALLEST)

    def mean(self, alike: Floats) -> float:
        """Return the error that a further run is expected to have: of a plan that was seen, what was seen."""
        factors, further = self._widened(self._between, alike)
        wide, usual = self._usual * factors, float(alike @ self._usual / alike.sum() * further)
        covariance = np.outer(wide, wide) * self._correlation(self._between) + self._disturbed
        return float(usual * wide * self._correlation(alike) @ np.linalg.solve(covariance, self._errors))

    def of_part(self, alike: Floats, spreads: Floats) -> float:
        """Return by what share a part of the figure is expected to be larger than estimated, over its spread.

        Args:
            alike: how alike a further run is to each by words and numbers.
            spreads: standard deviation that the part brings into the figure of each run, beside what is usual.
        """
        covariance = self._covariance(self._between, np.ones(1)) + np.outer(spreads, spreads) * self._between
        return float(spreads * alike @ np.linalg.solve(covariance, np.expm1(self._errors)))

    def variance(self, alike: Floats, unsure: Unsure) -> Number:
        """Return the variance of a further run, or of several, by how alike it is to each run."""
        usual = np.sqrt(np.maximum(added(np.square(deviation) for deviation in unsure.values()), SMALLEST))
        common = added(
            np.asarray(unsure.get(part, 0.0))[..., None] * self._unsure[:, at] for at, part in enumerate(self._parts)
        )
        between = self._between * (self._unsure @ self._unsure.T) / np.outer(self._usual, self._usual)
        alike = alike * common / (usual[..., None] * self._usual)
        factors, further = self._widened(between, alike)
        lasting = self._lasting(usual) * further
        common = lasting[..., None] * self._lasting(self._usual) * factors * self._correlation(alike)
        known = (common @ np.linalg.inv(self._covariance(between, factors)) * common).sum(axis=-1)
        return np.asarray((usual * further) ** 2 - known)

    def _widened(self, between: Floats, alike: Floats) -> tuple[Floats, Floats]:
        """Return by what factor standard deviations of the runs, and of further ones, are wider than they were."""
        patience = self._likeness.patience
        precision = np.linalg.inv(self._covariance(between, np.ones(1)))
        squares = (precision @ self._errors) ** 2 / np.diag(precision)

        def factor(likeness: Floats) -> Floats:
            counts = likeness**2
            wider = np.maximum((patience + counts @ squares) / (patience + counts.sum(axis=-1)), 1.0)
            return np.asarray(np.sqrt(wider))

        return factor(between), factor(alike)

    def _lasting(self, usual: Floats) -> Floats:
        """Return the standard deviation of what is missed in all runs of a plan: half of the variance at least."""
        return np.asarray(np.sqrt(np.maximum(usual**2 - self._likeness.scatter**2, usual**2 / 2.0)))

    def _correlation(self, alike: Floats) -> Floats:
        return np.asarray(np.where(alike >= SAME, 1.0, self._likeness.shared * alike))

    def _covariance(self, between: Floats, factors: Floats) -> Floats:
        lasting = self._lasting(self._usual)
        repeated = np.diag(self._usual**2 - lasting**2)
        covariance = np.outer(lasting, lasting) * self._correlation(between) + repeated
        return np.asarray(covariance * factors[:, None] * factors + self._disturbed)


def _doublings(runs: Sequence[MeasuredRun], name: str, number: Number) -> Floats:
    """Return how many doublings of a number lie between a run, or several as arrays, and each of some."""
    theirs = np.log2([max(run.numbers.get(name, 1.0), 1.0) for run in runs])
    return np.asarray(np.abs(np.log2(np.maximum(np.asarray(number, dtype=np.float64), 1.0))[..., None] - theirs))
