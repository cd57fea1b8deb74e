"""What a search returns: configurations, those that a reason excludes, and the front of several figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate import Estimate, figures_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space.axes import Axis, Floats, Values
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Rejected:
    """Configurations that one reason excludes, each counted under the first reason that it meets."""

    rule: str
    count: int
    example: str  # one of them, with the sizes that show it


@dataclass(frozen=True, slots=True)
class SearchResult(ShownInNotebooks):
    """One configuration."""

    set: Mapping[str, object]  # the change that makes it of the plan that was asked about: plan keys with their values
    verdict: Verdict
    # its figures by result key; where no range is known, low and high are the value itself
    figures: Mapping[str, Interval]
    # position among the best of one that is no worse in any of the compared figures and better in one; None where there
    # is none
    dominated_by: int | None = None
    price_source: str = ""  # whose price it is, with its date; empty where none is known

    @classmethod
    def of(cls, change: Mapping[str, object], estimate: Estimate, verdict: Verdict | None = None) -> SearchResult:
        """Return a change with what it comes to, by the verdict of its estimate or one that knows more limits."""
        source = "" if estimate.cost.usd_per_hour is None else estimate.cost.source
        return cls(change, verdict or estimate.verdict, figures_of(estimate), price_source=source)

    @property
    def fits(self) -> bool | None:
        """Whether it keeps every constraint by its estimate; None where a device's memory is unknown."""
        return self.verdict.holds


@dataclass(frozen=True, slots=True)
class Answer(ShownInNotebooks):
    """What a search found, or has found so far.

    Attributes:
        evaluated: configurations that were judged: by rules, and those that these leave by their estimate.
        valid: those that no rule excludes.
        fitting: those of them that memory holds as estimated and that keep every limit at the far end of its range.
        rejected: what excluded the others, most first.
        missed: what the valid ones that are not fitting miss: memory, or a limit; each counted under the first.
        top: the best, the very best first; behind them, in the same order, those of the front that are not among them.
        pareto: positions in ``top`` of configurations that nothing dominates in the compared figures.
        compared: result keys of those figures.
        goal: result key of the figure the best are chosen by.
        varied: plan keys that were tried with several values, and how many values each.
        complete: whether everything was looked at.
        share_done: share of it that was, as far as that is known.
    """

    evaluated: int = 0
    valid: int = 0
    fitting: int = 0
    seconds: float = 0.0
    rejected: tuple[Rejected, ...] = ()
    missed: tuple[Rejected, ...] = ()
    top: tuple[SearchResult, ...] = ()
    pareto: tuple[int, ...] = ()
    compared: tuple[str, ...] = ()
    goal: str = ""
    varied: tuple[tuple[str, int], ...] = ()
    complete: bool = False
    share_done: float = 0.0

    @property
    def plans_per_second(self) -> float:
        """Configurations that no rule excludes, each with its estimate, a second."""
        return self.valid / self.seconds if self.seconds > 0 else 0.0


# Fields by which rows are of one kind, where a question wants few of each.
KIND_PATHS = (Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES)


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration that may be among the best."""

    # the goal's figure and what settles ties; less is better, and what has the same is the same to a user
    order: tuple[float, ...]
    change: Values  # what makes it of the plan that was asked about
    point: tuple[float, ...] = ()  # of a row that may be on the front the compared figures, less of each being better

    @property
    def score(self) -> float:
        """The goal's figure; less is better."""
        return self.order[0]

    @property
    def kind(self) -> tuple[str, ...]:
        """What runs on what."""
        return tuple(str(self.change.get(path)) for path in KIND_PATHS)


Positions: TypeAlias = NDArray[np.intp]


class Front:
    """Points that nothing dominates; less of every figure is better, and of equal points the first stays."""

    def __init__(self, figures: int) -> None:
        self.points: Floats = np.empty((0, figures))
        self.owners: list[Row] = []

    def improving(self, points: Floats) -> Positions:
        """Return the positions of points that would join the front, in the order of their first figure."""
        indices = np.flatnonzero(~self._behind(points))
        return indices[undominated(points[indices])]

    def join(self, points: Floats, owners: list[Row]) -> None:
        """Take points that improve the front, and drop what they dominate."""
        together = np.concatenate([self.points, points])
        everyone = [*self.owners, *owners]
        kept = undominated(together)
        self.points, self.owners = together[kept], [everyone[index] for index in kept]

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
        for point in self.points:
            behind |= np.all(point <= points, axis=1)
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


SAME_SHARE = 1e-3  # Figures that differ by less are the same to whoever compares them (this program's choice)


def dominator(points: Floats, place: int) -> int | None:
    """Return the first point that is no worse than one in any figure and better in one; None where there is none."""
    point = points[place]
    known = np.where(np.isfinite(point), point, 0.0)  # one that is not known is worse than any
    better = np.all(points <= point, axis=1) & np.any(points < point - SAME_SHARE * np.abs(known), axis=1)
    return int(np.argmax(better)) if better.any() else None


@dataclass(frozen=True, slots=True)
class BlockResult:
    """A piece of a search: a block of a space, what rules exclude from a space, or a space that cannot be."""

    evaluated: int = 0
    valid: int = 0  # those that no rule excludes
    fitting: int = 0  # those of them that are held and keep every limit
    rejected: tuple[Rejected, ...] = ()  # what excluded the others
    missed: tuple[Rejected, ...] = ()  # what the valid ones that are not fitting miss
    varied: tuple[Axis, ...] = ()  # the axes of a space, and what sets it apart
    rows: tuple[Row, ...] = ()  # those that may be among the best, by what the goal is
    front: tuple[Row, ...] = ()  # those that may be on the front
