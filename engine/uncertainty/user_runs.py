"""What a run is like, and what runs of the user's own say of a further one: as much as they are like it.

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

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import resources
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.machine import MeasuredRun
from capacity_tui.engine.numeric import Number, added
from capacity_tui.engine.record import dataclass

Floats: TypeAlias = NDArray[np.float64]
# What describes a run by a word, by the ways its devices share the work, and by a number.
WORDS = ("hardware", "software", "precision", "family", "method", "optimizer")
SPLITS = ("tp", "pp", "cp", "ep", "zero")
NUMBERS = ("length", "devices", "parameters", "batch")
LAYOUT = "layout"
# All differences of several runs together.
DISTANCE = "distance"
# A run that does not say is like any.
UNKNOWN = ""
FILE = "published.csv"


@dataclass(frozen=True, slots=True)
class RunFeatures:
    """What a run is like; numbers may be arrays of several runs."""

    # hardware (row of efficiency.yaml), software (row of frameworks or engines), precision, family of models, method,
    # optimizer; what is not said is like any
    words: Mapping[str, str] = field(default_factory=dict)
    # whether the devices share the work in each way, 1 or 0: tp, pp, cp, ep, zero
    splits: Mapping[str, Number] = field(default_factory=dict)
    # tokens of a sequence, devices, parameters, sequences or samples at once
    numbers: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bin:
    """Published runs of one publisher that are alike in all words and in layout."""

    publisher: str  # who measured them
    words: Mapping[str, str]  # as in ``RunFeatures``
    splits: frozenset[str]  # ways in which their devices share the work
    # low, high: smallest and largest of their numbers
    low: Mapping[str, float]
    high: Mapping[str, float]
    runs: int  # how many they are

    @property
    def text(self) -> str:
        """The bin in a few words."""
        words = [self.words[name] for name in WORDS if self.words.get(name)]
        return ", ".join((*words, "+".join(name for name in SPLITS if name in self.splits) or "one device"))


@dataclass(frozen=True, slots=True)
class Nearest:
    """The published runs that a run is most like."""

    # squared differences by name, each times its squared spread; of several runs their sum alone
    squares: Mapping[str, Number]
    # the differences: 1 for another word, ways of sharing that differ, doublings beyond a number
    amounts: Mapping[str, Number]
    bin: Bin | None  # the nearest bin of a single run; None where nothing was published


class Bins:
    """Everything published of one kind of figure, as arrays."""

    def __init__(self, bins: Sequence[Bin]) -> None:
        self.bins = tuple(bins)
        self._words = {name: np.array([group.words.get(name, UNKNOWN) for group in bins]) for name in WORDS}
        self._splits = {name: np.array([float(name in group.splits) for group in bins]) for name in SPLITS}
        self._low = {name: np.log2([group.low.get(name, 0.0) or 1e-300 for group in bins]) for name in NUMBERS}
        self._high = {name: np.log2([group.high.get(name, np.inf) for group in bins]) for name in NUMBERS}

    def differences(self, features: RunFeatures) -> dict[str, Floats]:
        """Return how a run differs from each bin, by name; the last dimension is that of the bins."""
        differences: dict[str, Floats] = {}
        for name, word in features.words.items():
            theirs = self._words[name]
            differences[name] = np.where((theirs == word) | (theirs == UNKNOWN) | (word == UNKNOWN), 0.0, 1.0)
        if features.splits:
            apart = (np.abs(_column(word) - self._splits[name]) for name, word in features.splits.items())
            differences[LAYOUT] = np.asarray(np.sqrt(sum(apart, start=np.zeros(len(self.bins)))))
        for name, number in features.numbers.items():
            logarithm = np.log2(np.maximum(_column(number), 1.0))
            beyond = np.maximum(logarithm - self._high[name], self._low[name] - logarithm)
            differences[name] = np.maximum(beyond, 0.0)
        return differences

    def nearest(self, features: RunFeatures, spreads: Mapping[str, float]) -> Nearest:
        """Return the bin that differs least, by what a difference of each name adds to the spread."""
        if any(np.ndim(number) for number in (*features.splits.values(), *features.numbers.values())):
            return Nearest({DISTANCE: self._least(features, spreads)}, {}, None)
        differences = self.differences(features)
        squares = _squared(differences, spreads)
        index = int(np.argmin(sum(squares.values(), start=np.zeros(len(self.bins)))))
        return Nearest(
            {name: float(values[index]) for name, values in squares.items()},
            {name: float(values[index]) for name, values in differences.items()},
            self.bins[index],
        )

    def _least(self, features: RunFeatures, spreads: Mapping[str, float]) -> Number:
        """Return the sum of squared differences to the nearest bin, of several runs.

        Of bins with the same ends of the number that the most runs differ in, the one counts that is nearest in
        all else, which fewer runs differ in.
        """
        name = max(features.numbers, key=lambda key: np.size(features.numbers[key]))
        fewer = {key: number for key, number in features.numbers.items() if key != name}
        others = added(_squared(self.differences(replace(features, numbers=fewer)), spreads).values())
        logarithm, spread = np.log2(np.maximum(features.numbers[name], 1.0)), spreads.get(name, 0.0)
        ends, groups = np.unique(np.stack([self._low[name], self._high[name]]), axis=1, return_inverse=True)
        alike = [np.min(np.asarray(others)[..., groups.ravel() == group], axis=-1) for group in range(ends.shape[1])]
        least: Number = np.inf
        for group, (low, high) in enumerate(ends.T):
            wider = np.flatnonzero((ends[0] <= low) & (ends[1] >= high))
            if any(other != group and np.all(alike[other] <= alike[group]) for other in wider):
                continue  # another reaches as far and is nowhere less alike; no two have the same ends
            beyond = spread * np.maximum(np.maximum(logarithm - high, low - logarithm), 0.0)
            least = np.minimum(least, alike[group] + beyond * beyond)
        return least


def _squared(differences: Mapping[str, Floats], spreads: Mapping[str, float]) -> dict[str, Floats]:
    return {name: (spreads.get(name, 0.0) * difference) ** 2 for name, difference in differences.items()}


def _column(number: Number) -> Floats:
    """Return numbers with one more dimension, for the bins."""
    return np.asarray(number, dtype=np.float64)[..., None]


@cache
def published_bins(figure: str) -> Bins | None:
    """Return what was published of one kind of figure; None where nothing was."""
    head, *lines = resources.files("capacity_tui.profiles").joinpath("fits", FILE).read_text("utf-8").splitlines()
    rows = csv.DictReader([head, *(line for line in lines if line.startswith(f"{figure},"))])
    bins = [_cell(row) for row in rows]
    return Bins(bins) if bins else None


def _cell(row: Mapping[str, str]) -> Bin:
    def ends(end: str) -> dict[str, float]:
        return {name: float(row[f"{name}_{end}"]) for name in NUMBERS if row[f"{name}_{end}"]}

    words = {name: row[name] for name in WORDS}
    splits = frozenset(filter(None, row[LAYOUT].split("+")))
    return Bin(row["publisher"], words, splits, ends("low"), ends("high"), int(row["runs"]))


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
