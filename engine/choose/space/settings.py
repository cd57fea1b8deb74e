"""Fields that change several numbers of a run: one run for each of their combinations, the like ones stacked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.choose.space.grid import Axis, Grid, Values
from capacity_tui.engine.choose.space.stacking import alike, stacked
from capacity_tui.engine.errors import CapacityError, PlanError

Run = TypeVar("Run")
# Runs that are kept at once: a space of more settings makes some of them anew for each of its blocks.
MOST_KNOWN = 4096
Kinds: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why settings do not go together."""

    title: str
    detail: str
    hint: str


@dataclass(frozen=True, slots=True)
class Settings(Generic[Run]):
    """The runs of settings, each worked out once.

    Attributes:
        numbers: paths of axes that are no settings: a run takes their numbers as they are.
        run: returns the run of a plan with such settings; raises where they do not go together.
        known: runs so far.
    """

    numbers: Collection[str]
    run: Callable[[Values], Run]
    known: dict[str, Run | Refused] = field(default_factory=dict, compare=False, repr=False)

    def parts(self, grid: Grid) -> Iterator[Grid]:
        """Yield parts of a grid whose runs are alike; settings that do not go together are left out."""
        return (part for part, run in self._parts(grid) if not isinstance(run, Refused))

    def refused(self, grid: Grid) -> Iterator[tuple[Grid, Refused]]:
        """Yield parts of a grid whose settings do not go together, and why."""
        return ((part, run) for part, run in self._parts(grid) if isinstance(run, Refused))

    def over(self, grid: Grid) -> Run:
        """Return the runs of a part of a grid as one run of arrays.

        Raises:
            UnlikeError: they differ in more than numbers.
            PlanError: some do not go together.
        """
        runs = []
        for run in self._runs(grid):
            if isinstance(run, Refused):
                raise PlanError(run.title, run.detail, run.hint)
            runs.append(run)
        return stacked(runs, self._settings(grid).shape)

    def _parts(self, grid: Grid) -> Iterator[tuple[Grid, Run | Refused]]:
        first: list[Run | Refused] = []
        kinds = np.array([_kind(run, first) for run in self._runs(grid)], dtype=np.intp)
        kinds = kinds.reshape(self._settings(grid).shape)
        return ((part, first[kind]) for part, kind in _alike_parts(grid, kinds))

    def _settings(self, grid: Grid) -> Grid:
        return grid.over(axis.path for axis in grid.axes if axis.path not in self.numbers)

    def _runs(self, grid: Grid) -> Iterator[Run | Refused]:
        for values in self._settings(grid).combinations():
            yield self._run({path: value for path, value in values.items() if path not in self.numbers})

    def _run(self, values: Values) -> Run | Refused:
        key = repr(values)
        if key not in self.known:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            try:
                self.known[key] = self.run(values)
            except CapacityError as error:
                self.known[key] = Refused(error.title, error.detail, error.hint)
        return self.known[key]


def _kind(run: Run | Refused, first: list[Run | Refused]) -> int:
    """Return which of the first runs of each kind a run is like; one that is like none is the first of its own."""
    for place, other in enumerate(first):
        if alike(run, other):
            return place
    first.append(run)
    return len(first) - 1


def _alike_parts(grid: Grid, kinds: Kinds) -> Iterator[tuple[Grid, int]]:
    """Yield parts of a grid of one kind each, cut along as few axes as that takes."""
    if not kinds.size:
        return
    if (kinds == kinds.flat[0]).all():
        yield grid, int(kinds.flat[0])
        return
    for place, axis in enumerate(grid.axes):
        rows = np.moveaxis(kinds, place, 0).reshape(kinds.shape[place], -1)
        _, groups = np.unique(rows, axis=0, return_inverse=True)
        if groups.max() == 0:
            continue
        for group in range(int(groups.max()) + 1):
            chosen = [int(at) for at in np.flatnonzero(groups.ravel() == group)]
            kept = Axis(axis.path, tuple(axis.values[at] for at in chosen))
            part = Grid((*grid.axes[:place], kept, *grid.axes[place + 1 :]))
            yield from _alike_parts(part, np.take(kinds, chosen, axis=place))
        return
