"""What a run is like, and how far that is from every run that was published."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.numeric import Number, added

Floats: TypeAlias = NDArray[np.floating[Any]]
# What is told of a run by a word, by the ways its devices share the work, and by a number.
WORDS = ("hardware", "software", "precision", "family", "method", "optimizer")
SPLITS = ("tp", "pp", "cp", "ep", "zero")
NUMBERS = ("length", "devices", "parameters", "batch")
LAYOUT = "layout"
# All differences of several runs together.
DISTANCE = "distance"
DISTANCES = (*WORDS, LAYOUT, *NUMBERS)
# A run that does not say is like any.
UNSAID = ""
FILE = "published.csv"


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a run is like; numbers may be arrays of several runs.

    Attributes:
        words: hardware (row of efficiency.yaml), software (row of frameworks or engines), precision, family of
            models, method, optimizer; what is not said is like any.
        splits: whether the devices share the work in each way, 1 or 0: tp, pp, cp, ep, zero.
        numbers: tokens of a sequence, devices, parameters, sequences or samples at once.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, Number] = field(default_factory=dict)
    numbers: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """Published runs of one publisher that are alike in all words and in layout.

    Attributes:
        publisher: who measured them.
        words: as of a likeness.
        splits: ways in which their devices share the work.
        low, high: smallest and largest of their numbers.
        runs: how many they are.
    """

    publisher: str
    words: Mapping[str, str]
    splits: frozenset[str]
    low: Mapping[str, float]
    high: Mapping[str, float]
    runs: int

    @property
    def text(self) -> str:
        """The cell in a few words."""
        told = [self.words[name] for name in WORDS if self.words.get(name)]
        return ", ".join((*told, "+".join(name for name in SPLITS if name in self.splits) or "one device"))


@dataclass(frozen=True, slots=True)
class Nearest:
    """The published runs that a run is most like.

    Attributes:
        squares: squared differences by name, each times its squared spread; of several runs their sum alone.
        amounts: the differences: 1 for another word, ways of sharing that differ, doublings beyond a number.
        cell: the nearest cell of a single run; None where nothing was published.
    """

    squares: Mapping[str, Number]
    amounts: Mapping[str, Number]
    cell: Cell | None


class Cells:
    """Everything published of one kind of figure, as arrays."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = tuple(cells)
        self._words = {name: np.array([cell.words.get(name, UNSAID) for cell in cells]) for name in WORDS}
        self._splits = {name: np.array([float(name in cell.splits) for cell in cells]) for name in SPLITS}
        self._low = {name: np.log2([cell.low.get(name, 0.0) or 1e-300 for cell in cells]) for name in NUMBERS}
        self._high = {name: np.log2([cell.high.get(name, np.inf) for cell in cells]) for name in NUMBERS}

    def differences(self, likeness: Likeness) -> dict[str, Floats]:
        """Return how a run differs from each cell, by name; the last dimension is that of the cells."""
        found: dict[str, Floats] = {}
        for name, own in likeness.words.items():
            theirs = self._words[name]
            found[name] = np.where((theirs == own) | (theirs == UNSAID) | (own == UNSAID), 0.0, 1.0)
        if likeness.splits:
            apart = (np.abs(_column(own) - self._splits[name]) for name, own in likeness.splits.items())
            found[LAYOUT] = np.asarray(np.sqrt(sum(apart, start=np.zeros(len(self.cells)))))
        for name, number in likeness.numbers.items():
            own_number = np.log2(np.maximum(_column(number), 1.0))
            beyond = np.maximum(own_number - self._high[name], self._low[name] - own_number)
            found[name] = np.maximum(beyond, 0.0)
        return found

    def nearest(self, likeness: Likeness, spreads: Mapping[str, float]) -> Nearest:
        """Return the cell that differs least.

        Args:
            likeness: of a run, or of several as arrays.
            spreads: what one difference of each name adds to the spread.
        """
        if any(np.ndim(own) for own in (*likeness.splits.values(), *likeness.numbers.values())):
            return Nearest({DISTANCE: self._least(likeness, spreads)}, {}, None)
        differences = self.differences(likeness)
        squares = _squared(differences, spreads)
        place = int(np.argmin(sum(squares.values(), start=np.zeros(len(self.cells)))))
        return Nearest(
            {name: float(each[place]) for name, each in squares.items()},
            {name: float(each[place]) for name, each in differences.items()},
            self.cells[place],
        )

    def _least(self, likeness: Likeness, spreads: Mapping[str, float]) -> Number:
        """Return the sum of squared differences to the nearest cell, of several runs.

        Of cells with the same ends of the number that the most runs differ in, the one counts that is nearest in
        all else, which fewer runs differ in.
        """
        name = max(likeness.numbers, key=lambda each: np.size(likeness.numbers[each]))
        fewer = {each: number for each, number in likeness.numbers.items() if each != name}
        others = added(_squared(self.differences(replace(likeness, numbers=fewer)), spreads).values())
        own, spread = np.log2(np.maximum(likeness.numbers[name], 1.0)), spreads.get(name, 0.0)
        ends, groups = np.unique(np.stack([self._low[name], self._high[name]]), axis=1, return_inverse=True)
        least: Number = np.inf
        for group, (low, high) in enumerate(ends.T):
            alike = np.min(np.asarray(others)[..., groups.ravel() == group], axis=-1)
            beyond = spread * np.maximum(np.maximum(own - high, low - own), 0.0)
            least = np.minimum(least, alike + beyond * beyond)
        return least


def _squared(differences: Mapping[str, Floats], spreads: Mapping[str, float]) -> dict[str, Floats]:
    return {name: (spreads.get(name, 0.0) * each) ** 2 for name, each in differences.items()}


def _column(number: Number) -> Floats:
    """Return numbers with one more dimension, for the cells."""
    return np.asarray(number, dtype=np.float64)[..., None]


@cache
def published_cells(figure: str) -> Cells | None:
    """Return what was published of one kind of figure; None where nothing was."""
    cells = [cell for own, cell in _read() if own == figure]
    return Cells(cells) if cells else None


@cache
def _read() -> tuple[tuple[str, Cell], ...]:
    text = resources.files("capacity_tui.profiles").joinpath("fits", FILE).read_text("utf-8")
    return tuple((row["figure"], _cell(row)) for row in csv.DictReader(text.splitlines()))


def _cell(row: Mapping[str, str]) -> Cell:
    def ends(end: str) -> dict[str, float]:
        return {name: float(row[f"{name}_{end}"]) for name in NUMBERS if row[f"{name}_{end}"]}

    words = {name: row[name] for name in WORDS}
    splits = frozenset(filter(None, row[LAYOUT].split("+")))
    return Cell(row["publisher"], words, splits, ends("low"), ends("high"), int(row["runs"]))


def cells_of(runs: Iterable[tuple[str, Likeness]]) -> tuple[Cell, ...]:
    """Return single runs as cells.

    Args:
        runs: publisher and likeness of each.
    """
    groups: dict[tuple[object, ...], list[tuple[str, Likeness]]] = {}
    for publisher, likeness in runs:
        key = (publisher, tuple(likeness.words.items()), _shared(likeness))
        groups.setdefault(key, []).append((publisher, likeness))
    return tuple(_together(group) for group in groups.values())


def _shared(likeness: Likeness) -> frozenset[str]:
    return frozenset(name for name, own in likeness.splits.items() if float(own) > 0)


def _together(group: Sequence[tuple[str, Likeness]]) -> Cell:
    publisher, first = group[0]
    numbers = {name: [float(likeness.numbers[name]) for _, likeness in group] for name in first.numbers}
    low, high = ({name: end(values) for name, values in numbers.items()} for end in (min, max))
    return Cell(publisher, first.words, _shared(first), low, high, len(group))
