"""Constraints of a plan as a question asks them: its own by their estimate, those of the question surely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.choose.search.question import Limit
from capacity_tui.engine.estimate import Constraint, Estimate
from capacity_tui.engine.keys import Figure

MEMORY, RESERVED = Figure.MEMORY_UTILIZATION_PERCENT, Figure.MEMORY_RESERVED_BYTES
# What says the same of a constraint that a plan has anyway.
_SAME: Mapping[str, str] = {MEMORY: RESERVED}


@dataclass(frozen=True, slots=True)
class CheckedConstraint:
    """A constraint of a single plan, and how sure it has to be.

    Attributes:
        constraint: the limit beside what the plan reaches.
        surely: whether the far end of the range counts, as it does for what a question asks; else the estimate itself.
    """

    constraint: Constraint
    surely: bool = False

    @property
    def key(self) -> str:
        """The figure's result key."""
        return self.constraint.figure

    @property
    def most(self) -> float | None:
        """The most that the figure may be."""
        return _single(self.constraint.most)

    @property
    def least(self) -> float | None:
        """The least that the figure must be."""
        return _single(self.constraint.least)

    @property
    def value(self) -> float | None:
        """The figure itself; None where the plan has none of it."""
        reached = self.constraint.reached
        return None if reached is None else _single(reached.value)

    @property
    def bound_value(self) -> float | None:
        """What counts of the figure: the end of its range that is nearer to the limit, or the figure itself."""
        reached = self.constraint.reached
        if reached is None or not self.surely:
            return self.value
        return _single(reached.low if self.most is None else reached.high)

    @property
    def violation(self) -> float:
        """By which share of the limit it is missed; negative where it holds, infinite where there is no figure."""
        end, most, least = self.bound_value, self.most, self.least
        if end is None:
            return np.inf
        over = [] if most is None else [(end - most) / abs(most or 1.0)]
        under = [] if least is None else [(least - end) / abs(least or 1.0)]
        return max((*over, *under), default=-np.inf)

    @property
    def holds(self) -> bool:
        """Whether the figure keeps the limit."""
        return self.violation <= 0.0


def checked_constraints(estimate: Estimate, limits: Iterable[Limit] = ()) -> Iterator[CheckedConstraint]:
    """Yield the limits of a question, then the constraints of the plan itself, each beside what is reached.

    Args:
        estimate: of a plan without open fields.
        limits: limits of a question.
    """
    asked = tuple(limits)
    named = {key for limit in asked for key in (limit.figure, _SAME.get(limit.figure))}
    for limit in asked:
        yield CheckedConstraint(limit.constraint(estimate), surely=True)
    yield from (CheckedConstraint(constraint) for constraint in estimate.constraints if constraint.figure not in named)


def _single(value: object) -> float | None:
    return None if value is None else float(np.max(np.asarray(value)))
