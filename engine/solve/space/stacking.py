"""Runs of several plans as one run of arrays, and fields that change several numbers of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space.axes import Axis, Grid, Values

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Run = TypeVar("Run")


class UnlikeError(Exception):
    """Two runs differ in more than numbers, and so need an estimate each."""


def stacked(runs: Sequence[Run], shape: tuple[int, ...]) -> Run:
    """Return runs as one: a number that is the same in all of them stays one, another becomes an array.

    Args:
        runs: records of numbers, and of records of numbers.
        shape: shape of the arrays; the runs are in its order.

    Raises:
        UnlikeError: the runs differ in words, in kinds of records, or in what they have at all.
    """
    return cast("Run", _stacked(runs, shape))


def can_stack(one: object, other: object) -> bool:
    """Whether two runs differ in numbers alone, so that they can be stacked."""
    if one is other:
        return True
    if _is_number(one) and _is_number(other):
        return True
    if type(one) is not type(other):
        return False
    if names := _names(one):
        return all(can_stack(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(can_stack(one[key], other[key]) for key in one)
    return bool(one == other)


def _stacked(values: Sequence[object], shape: tuple[int, ...]) -> object:
    first = values[0]
    for value in values:
        if value is not first:
            break
    else:
        return first
    is_numeric = all(map(_is_number, values))
    if not is_numeric and len({*map(type, values)}) > 1:
        raise UnlikeError
    if names := _names(first):
        changed = {}
        for name in names:
            before = getattr(first, name)
            together = _stacked([getattr(value, name) for value in values], shape)
            if together is not before:
                changed[name] = together
        return replace(cast("DataclassInstance", first), **changed) if changed else first
    if isinstance(first, Mapping):
        maps = cast("Sequence[Mapping[str, object]]", values)
        if any(mapping.keys() != first.keys() for mapping in maps):
            raise UnlikeError
        return {key: _stacked([mapping[key] for mapping in maps], shape) for key in first}
    if is_numeric:
        numbers = [float(cast("float", value)) for value in values]
        return first if len(set(numbers)) == 1 else np.array(numbers).reshape(shape)
    if any(value != first for value in values):
        raise UnlikeError
    return first


_NAMES: dict[type, tuple[str, ...]] = {}


def _names(value: object) -> tuple[str, ...]:
    """Return the fields of a record, looked up once a kind; of anything else none."""
    kind = type(value)
    if kind not in _NAMES:
        _NAMES[kind] = tuple(entry.name for entry in fields(kind)) if is_dataclass(kind) else ()
    return _NAMES[kind]


def unstacked(record: Run, count: int) -> Sequence[Run]:
    """Return what a record of arrays holds at each of their places.

    Args:
        record: numbers, arrays that broadcast to the places, and records and mappings of them.
        count: how many places they have.
    """
    return cast("Sequence[Run]", _apart(record, count) or [record] * count)


def _apart(value: object, count: int) -> Sequence[object] | None:
    """Return a value at each place; None where it is the same everywhere."""
    if isinstance(value, np.ndarray):
        placed = np.broadcast_to(value, (count,))
        return placed.tolist() if value.dtype.kind == "f" else [np.asarray(entry) for entry in placed]
    if names := _names(value):
        changed = {name: apart for name in names if (apart := _apart(getattr(value, name), count)) is not None}
        single = cast("DataclassInstance", value)
        return _zipped(changed, lambda entries: replace(single, **entries), count) if changed else None
    if isinstance(value, Mapping):
        changed = {key: apart for key, entry in value.items() if (apart := _apart(entry, count)) is not None}
        if not changed and isinstance(value, dict):
            return None
        return _zipped(changed, lambda entries: {**value, **entries}, count)  # also what was worked out on demand
    return None


def _zipped(
    apart: Mapping[str, Sequence[object]], of: Callable[[dict[str, object]], object], count: int
) -> Sequence[object]:
    """Return what is made of the values at each place."""
    return [of({name: values[place] for name, values in apart.items()}) for place in range(count)]


def _is_number(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


MOST_KNOWN = 4096  # Runs that are kept at once: a space of more settings makes some of them anew for each of its blocks
Kinds: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why settings do not go together."""

    title: str
    detail: str
    hint: str


@dataclass(frozen=True, slots=True)
class Settings(Generic[Run]):
    """The runs of settings, each worked out once."""

    numbers: Collection[str]  # paths of axes that are no settings: a run takes their numbers as they are
    run: Callable[[Values], Run]  # returns the run of a plan with such settings; raises where they do not go together
    known: dict[str, Run | Conflict] = field(default_factory=dict, compare=False, repr=False)

    def parts(self, grid: Grid) -> Iterator[Grid]:
        """Yield parts of a grid whose runs are alike; settings that do not go together are left out."""
        return (part for part, run in self._parts(grid) if not isinstance(run, Conflict))

    def refused(self, grid: Grid) -> Iterator[tuple[Grid, Conflict]]:
        """Yield parts of a grid whose settings do not go together, and why."""
        return ((part, run) for part, run in self._parts(grid) if isinstance(run, Conflict))

    def over(self, grid: Grid) -> Run:
        """Return the runs of a part of a grid as one run of arrays.

        Raises:
            UnlikeError: they differ in more than numbers.
            PlanError: some do not go together.
        """
        runs = []
        for run in self._runs(grid):
            if isinstance(run, Conflict):
                raise PlanError(run.title, run.detail, run.hint)
            runs.append(run)
        return stacked(runs, self._settings(grid).shape)

    def _parts(self, grid: Grid) -> Iterator[tuple[Grid, Run | Conflict]]:
        first: list[Run | Conflict] = []
        kinds = np.array([_kind(run, first) for run in self._runs(grid)], dtype=np.intp)
        kinds = kinds.reshape(self._settings(grid).shape)
        return ((part, first[kind]) for part, kind in _stackable_grids(grid, kinds))

    def _settings(self, grid: Grid) -> Grid:
        return grid.over(axis.path for axis in grid.axes if axis.path not in self.numbers)

    def _runs(self, grid: Grid) -> Iterator[Run | Conflict]:
        for values in self._settings(grid).combinations():
            yield self._run({path: value for path, value in values.items() if path not in self.numbers})

    def _run(self, values: Values) -> Run | Conflict:
        key = repr(values)
        if key not in self.known:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            try:
                self.known[key] = self.run(values)
            except CapacityError as error:
                self.known[key] = Conflict(error.title, error.detail, error.hint)
        return self.known[key]


def _kind(run: Run | Conflict, first: list[Run | Conflict]) -> int:
    """Return which of the first runs of each kind a run is like; one that is like none is the first of its own."""
    for index, other in enumerate(first):
        if can_stack(run, other):
            return index
    first.append(run)
    return len(first) - 1


def _stackable_grids(grid: Grid, kinds: Kinds) -> Iterator[tuple[Grid, int]]:
    """Yield parts of a grid of one kind each, cut along as few axes as that takes."""
    if not kinds.size:
        return
    if (kinds == kinds.flat[0]).all():
        yield grid, int(kinds.flat[0])
        return
    for index, axis in enumerate(grid.axes):
        rows = np.moveaxis(kinds, index, 0).reshape(kinds.shape[index], -1)
        _, groups = np.unique(rows, axis=0, return_inverse=True)
        if groups.max() == 0:
            continue
        for group in range(int(groups.max()) + 1):
            chosen = [int(at) for at in np.flatnonzero(groups.ravel() == group)]
            kept = Axis(axis.path, tuple(axis.values[at] for at in chosen))
            part = Grid((*grid.axes[:index], kept, *grid.axes[index + 1 :]))
            yield from _stackable_grids(part, np.take(kinds, chosen, axis=index))
        return
