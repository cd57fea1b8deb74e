"""The best combinations of a space, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.choose.space.grid import Floats, Values
from capacity_tui.engine.choose.space.stacking import picked
from capacity_tui.engine.choose.space.training import Evaluated
from capacity_tui.engine.numeric import Number


@dataclass(frozen=True, slots=True)
class Candidate:
    """One combination of a space.

    Attributes:
        values: plan fields.
        score: what it was chosen by.
        result: what became of it, all of single numbers.
    """

    values: Values
    score: float
    result: Evaluated


def top(blocks: Iterable[Evaluated], score: Callable[[Evaluated], Number], count: int = 1) -> tuple[Candidate, ...]:
    """Return the possible combinations with the highest scores, the first in the space's order among equals.

    Args:
        blocks: an evaluated space.
        score: returns what to choose by, over the arrays of a block.
        count: how many to keep.
    """
    best: list[Candidate] = []
    for block in blocks:
        shape = block.grid.shape
        scores = np.broadcast_to(np.where(block.possible, score(block), -np.inf), shape).ravel()
        for position in _highest(scores, count):
            if not np.isfinite(scores[position]):
                break
            place = tuple(int(at) for at in np.unravel_index(position, shape))
            best.append(Candidate(block.grid.at(position), float(scores[position]), picked(block, place, shape)))
        best = sorted(best, key=lambda candidate: -candidate.score)[:count]
    return tuple(best)


def _highest(scores: Floats, count: int) -> list[int]:
    """Return the positions of the highest numbers, the first of equals first."""
    if count == 1:
        return [int(np.argmax(scores))]
    some = np.argpartition(-scores, min(count, scores.size) - 1)[:count]
    return [int(position) for position in some[np.lexsort((some, -scores[some]))]]
