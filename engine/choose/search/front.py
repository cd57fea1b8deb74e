"""The front of several figures, kept as points come in: what no other point is better than in all of them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.choose.space.grid import Floats

Positions: TypeAlias = NDArray[np.intp]


class Front:
    """Points that nothing dominates; less of every figure is better, and of equal points the first stays."""

    def __init__(self, figures: int) -> None:
        self.points: Floats = np.empty((0, figures))
        self.owners: list[object] = []

    def improving(self, points: Floats) -> Positions:
        """Return the positions of points that would join the front, in the order of their first figure."""
        places = np.flatnonzero(~self._behind(points))
        return places[undominated(points[places])]

    def join(self, points: Floats, owners: list[object]) -> None:
        """Take points that improve the front, and drop what they dominate."""
        together = np.concatenate([self.points, points])
        everyone = [*self.owners, *owners]
        kept = undominated(together)
        self.points, self.owners = together[kept], [everyone[place] for place in kept]

    def _behind(self, points: Floats) -> NDArray[np.bool_]:
        """Return which points the front dominates, or has already."""
        if not len(self.points) or not len(points):
            return np.zeros(len(points), dtype=np.bool_)
        if points.shape[1] == 2:
            # The front is in the order of its first figure, so the second falls along it: the last point not beyond.
            last = np.searchsorted(self.points[:, 0], points[:, 0], side="right") - 1
            best = np.where(last >= 0, self.points[np.maximum(last, 0), 1], np.inf)
            return np.asarray(best <= points[:, 1])
        behind = np.zeros(len(points), dtype=np.bool_)
        for own in self.points:
            behind |= np.all(own <= points, axis=1)
        return behind


def undominated(points: Floats) -> Positions:
    """Return the positions of points that no other dominates, in the order of their first figure.

    Args:
        points: a row for each point, a column for each figure, of which less is better.
    """
    order = np.lexsort(points.T[::-1]).astype(np.intp)
    if points.shape[1] == 2:
        second = points[order, 1]
        before = np.minimum.accumulate(np.concatenate([[np.inf], second[:-1]]))
        return np.asarray(order[second < before], dtype=np.intp)
    front: list[int] = []
    while order.size:
        first = order[0]
        front.append(int(first))
        order = order[~np.all(points[first] <= points[order], axis=1)]
    return np.array(front, dtype=np.intp)


def dominator(points: Floats, place: int) -> int | None:
    """Return the first point that is no worse than one in any figure and better in one; None where there is none."""
    own = points[place]
    better = np.all(points <= own, axis=1) & np.any(points < own, axis=1)
    return int(np.argmax(better)) if better.any() else None
