"""What a run is like, and how far that is from every run that was published."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import resources
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.numeric import Number, added
from capacity_tui.engine.record import dataclass

Floats: TypeAlias = NDArray[np.floating[Any]]
# What describes a run by a word, by the ways its devices share the work, and by a number.
WORDS = ("hardware", "software", "precision", "family", "method", "optimizer")
SPLITS = ("tp", "pp", "cp", "ep", "zero")
NUMBERS = ("length", "devices", "parameters", "batch")
LAYOUT = "layout"
# All differences of several runs together.
DISTANCE = "distance"
DISTANCES = (*WORDS, LAYOUT, *NUMBERS)
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


def binned(runs: Iterable[tuple[str, RunFeatures]]) -> tuple[Bin, ...]:
    """Return single runs, of which publisher and features are known, as bins."""
    groups: dict[tuple[object, ...], list[tuple[str, RunFeatures]]] = {}
    for publisher, features in runs:
        key = (publisher, tuple(features.words.items()), _shared(features))
        groups.setdefault(key, []).append((publisher, features))
    return tuple(_together(group) for group in groups.values())


def _shared(features: RunFeatures) -> frozenset[str]:
    return frozenset(name for name, is_used in features.splits.items() if float(is_used) > 0)


def _together(group: Sequence[tuple[str, RunFeatures]]) -> Bin:
    publisher, first = group[0]
    numbers = {name: [float(features.numbers[name]) for _, features in group] for name in first.numbers}
    low, high = ({name: end(values) for name, values in numbers.items()} for end in (min, max))
    return Bin(publisher, first.words, _shared(first), low, high, len(group))
