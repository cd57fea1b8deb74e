"""The types of every formula: a number or an array of numbers that broadcasts; a word or an array of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.record import dataclass

Number: TypeAlias = float | NDArray[np.floating[Any]]
Flags: TypeAlias = NDArray[np.bool_]
Label = TypeVar("Label", bound=str)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, eq=False)
class Labels(Generic[Label]):
    """One of a few words for each of several plans, as arrays."""

    words: tuple[Label, ...]
    positions: NDArray[np.intp]  # which of them each plan has; of shape () for a single plan

    @property
    def single(self) -> Label:
        """The word of a single plan; raises ValueError if there are several plans."""
        return self.words[int(self.positions.item())]

    def are(self, word: Label) -> Flags:
        """Return which plans have a word."""
        return np.asarray(self.positions == self.words.index(word))


def first_label(choices: Mapping[Label, object], otherwise: Label) -> Labels[Label]:
    """Return the first word whose condition holds, plan by plan.

    Args:
        choices: conditions by word; they broadcast.
        otherwise: the word where none holds.
    """
    words = (*choices, otherwise)
    conditions = np.broadcast_arrays(*(np.asarray(condition, dtype=np.bool_) for condition in choices.values()))
    return Labels(words, np.select(conditions, [*range(len(choices))], len(choices)))


def largest_label(values: Mapping[Label, Number]) -> Labels[Label]:
    """Return the word of the largest number, plan by plan; the first of equals."""
    return Labels(tuple(values), np.asarray(np.argmax(np.stack(np.broadcast_arrays(*values.values())), axis=0)))


def present(size: Number) -> Number:
    """Return 1 where a part has a size, 0 where it is absent."""
    return (size > 0) * 1.0


def any_true(condition: object) -> bool:
    """Return whether a condition holds anywhere; of a single number without the detour over an array."""
    return bool(np.any(condition)) if isinstance(condition, np.ndarray) else bool(condition)


def where(condition: object, yes: Number, no: Number) -> Number:
    """Choose between two numbers, place by place; of a single number without the detour over an array."""
    if isinstance(condition, np.ndarray) and condition.ndim:
        return yes if yes is no else np.where(condition, yes, no)
    return yes if condition else no


def added(numbers: Iterable[Number]) -> Number:
    """Add numbers that broadcast, small arrays first: what an axis does not change is added up once for all of it."""
    total, *further = sorted(numbers, key=_places) or (0.0,)
    new = False
    for number in further:
        if new and isinstance(total, np.ndarray) and isinstance(number, np.ndarray) and total.shape == number.shape:
            np.add(total, number, out=total)
        else:
            total, new = total + number, True
    return total


def _places(number: Number) -> int:
    return number.size if isinstance(number, np.ndarray) else 1


class OnDemand(Mapping[str, Value]):
    """Results by name, each computed on first use: a search over arrays uses few of them."""

    def __init__(self, names: Iterable[str], work_out: Callable[[str], Value]) -> None:
        self._names = tuple(names)
        self._work_out = work_out
        self._known: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        """Return a result; raises KeyError if there is none of this name."""
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._work_out(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names in order."""
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def mean(value: Number) -> float:
    """Return one number for an array; a single number as it is, without the detour over an array."""
    return float(np.mean(value)) if isinstance(value, np.ndarray) else float(value)


def largest(value: Number) -> float:
    """Return the largest of an array; a single number as it is, without the detour over an array."""
    return float(np.max(value)) if isinstance(value, np.ndarray) else float(value)


@dataclass(frozen=True, slots=True)
class Curve:
    """Speed of one kind of kernel at sampled sizes."""

    name: str  # kind of kernel, with the type of compute-bound ones: ``gemm.fp32``, ``optimizer``
    sizes: tuple[float, ...]  # FLOPs of a run, ascending; bytes of memory-bound kernels
    # measured over modelled rate at each size; of memory-bound kernels, over the nominal bandwidth
    ratios: tuple[float, ...]

    def at(self, size: Number) -> Number:
        """Return the ratio at a size, interpolated over its logarithm; 1 outside the sampled range."""
        inside = np.interp(np.log(np.maximum(size, 1.0)), np.log(self.sizes), self.ratios)
        return np.where(self.covers(size), inside, 1.0)

    def covers(self, size: Number) -> Number:
        """Return 1 where a size lies in the sampled range, else 0."""
        inside = (np.asarray(size) >= self.sizes[0]) & (np.asarray(size) <= self.sizes[-1])
        return np.where(inside, 1.0, 0.0)
