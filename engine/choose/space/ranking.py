"""The best combinations of evaluated blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.choose.space.grid import Floats, Grid, Values
from capacity_tui.engine.choose.space.space import Block
from capacity_tui.engine.numeric import Flags, Number

Positions: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One combination of a block.

    Attributes:
        order: what it was chosen by, column by column; less is better.
        values: plan fields.
        block: the block that it is of.
        position: its position in the flattened grid of the block.
    """

    order: tuple[float, ...]
    values: Values
    block: Block
    position: int

    def number(self, key: str) -> float:
        """Return one of its figures by result key; NaN where these runs have none."""
        return float(over(self.block.value(key), self.block.grid)[self.position])


def best(blocks: Iterable[Block], columns: Callable[[Block], tuple[Number, ...]]) -> Ranked | None:
    """Return the possible combination that comes first by columns of which less is better; None where none is possible.

    Args:
        blocks: evaluated blocks; of equal combinations the first stays.
        columns: returns what to choose by, over the arrays of a block; infinity excludes a combination.
    """
    first: Ranked | None = None
    for block in blocks:
        points = np.stack([over(column, block.grid) for column in columns(block)], axis=1)
        usable = (over(block.feasible, block.grid) > 0) & np.isfinite(points).all(axis=1)
        for place in best_of(points, np.flatnonzero(usable), 1):
            order = tuple(points[place].tolist())
            if first is None or order < first.order:
                first = Ranked(order, block.grid.at(int(place)), block, int(place))
    return first


def best_of(points: Floats, places: Positions, count: int) -> Positions:
    """Return the places of the best points, column by column, the first of equal ones.

    Args:
        points: a row for each point, less of every column being better.
        places: rows to look at.
    """
    window = 16 * count
    while True:
        some = places
        if places.size > window:
            first = points[places, 0]
            some = places[first <= np.partition(first, window)[window]]
        ordered = some[np.lexsort((some, *points[some].T[::-1]))]
        own = points[ordered]
        new = np.ones(len(ordered), dtype=np.bool_)
        new[1:] = np.any(own[1:] != own[:-1], axis=1)
        first_of_equal = ordered[new]
        if first_of_equal.size >= count or some.size == places.size:
            return np.asarray(first_of_equal[:count], dtype=np.intp)
        window *= 16


def over(value: Number | Flags | None, grid: Grid) -> Floats:
    """Return a number as a flat array over a grid; NaN where there is none."""
    return np.broadcast_to(np.asarray(np.nan if value is None else value, dtype=np.float64), grid.shape).ravel()
