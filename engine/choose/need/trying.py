"""One value of a field tried: the plan filled in and estimated, and the limits that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.modes.filled import ModePlan
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.search.question import Goal, Limit
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.figures import Figure, Metric, figure
from capacity_tui.engine.estimate.serving.room import SEQUENCES
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.uncertainty.intervals import Interval
from capacity_tui.engine.units import PERCENT

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

MEMORY, HOST = "memory.utilization_percent", "memory.host_bytes"
REQUESTS = "computation.infer.largest_requests_per_second"


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit beside what a plan reaches of the figure.

    Attributes:
        limit: the limit.
        figure: the figure, in the words of the run.
        end: what counts of it; None where the plan has no such figure.
    """

    limit: Limit
    figure: Figure
    end: float | None

    @property
    def key(self) -> str:
        """The figure's result key."""
        return self.limit.figure

    @property
    def excess(self) -> float:
        """By which share of the limit it is missed; negative where it holds, infinite where there is no figure."""
        if self.end is None:
            return np.inf
        over = [] if self.limit.most is None else [(self.end - self.limit.most) / abs(self.limit.most or 1.0)]
        under = [] if self.limit.least is None else [(self.limit.least - self.end) / abs(self.limit.least or 1.0)]
        return max((*over, *under), default=-np.inf)

    @property
    def holds(self) -> bool:
        """Whether the figure keeps the limit."""
        return self.excess <= 0.0


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate, estimated.

    Attributes:
        change: the plan fields that make it.
        value: of the field that is asked for.
        plan: the plan before what it leaves open was filled.
        filled: the same as filled in and estimated; None where such a plan cannot be.
        reached: every limit beside what is reached.
        fault: why such a plan cannot be; empty where it can.
    """

    change: Mapping[str, object]
    value: object
    plan: Plan | None = None
    filled: ModePlan | None = None
    reached: tuple[Reached, ...] = ()
    fault: str = ""

    @property
    def broken(self) -> tuple[Reached, ...]:
        """The limits that it does not keep, the one that is missed most first."""
        return tuple(sorted((each for each in self.reached if not each.holds), key=lambda each: -each.excess))

    @property
    def holds(self) -> bool:
        """Whether it can be, and keeps every limit."""
        return self.filled is not None and not self.broken

    @property
    def excess(self) -> float:
        """By which share the limit that is missed most is missed; infinite where such a plan cannot be."""
        return np.inf if self.filled is None else max((each.excess for each in self.broken), default=0.0)

    def number(self, key: str) -> float | None:
        """Return one of its figures; None where it has none of this key."""
        return None if self.filled is None else figure(self.filled.estimate, key).number


@dataclass(slots=True)
class Trials:
    """Tries candidates for one plan, each of them once.

    Attributes:
        plan: what is asked about.
        limits: what every candidate must keep.
        catalog: facts.
        machine: the detected machine, for plans that run on it.
        seen: is told every candidate that was tried.
        made: what was tried, by change.
    """

    plan: Plan
    limits: tuple[Limit, ...]
    catalog: Catalog
    machine: Machine | None = None
    seen: Callable[[Tried], None] | None = None
    made: dict[tuple[tuple[str, str], ...], Tried] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Tried, ...]:
        """Everything that was tried, in its order."""
        return tuple(self.made.values())

    def of(self, value: object, change: Mapping[str, object]) -> Tried:
        """Return a candidate, filled in as the balanced mode does, estimated and held against the limits."""
        key = tuple((path, str(entry)) for path, entry in change.items())
        if key not in self.made:
            self.made[key] = self._tried(value, change)
            if self.seen is not None:
                self.seen(self.made[key])
        return self.made[key]

    def _tried(self, value: object, change: Mapping[str, object]) -> Tried:
        try:
            plan = edited(self.plan, change, self.catalog).plan
            filled = fill(plan, "balanced", self.machine, self.catalog)
        except CapacityError as error:
            return Tried(change, value, fault=error.one_line())
        return Tried(change, value, plan, filled, tuple(reached(filled, self.limits)))


def own_limits(plan: Plan) -> tuple[Limit, ...]:
    """Return what a plan asks of itself, besides its limits of latency: that its load is served."""
    rate = plan.inference.request_rate if plan.task == "infer" else None
    return () if rate is None else (Limit(REQUESTS, least=rate),)


def reached(filled: ModePlan, limits: tuple[Limit, ...]) -> Iterator[Reached]:
    """Yield what a plan reaches of the limits: those given, memory, and those that the plan itself sets.

    A limit that is given holds at the far end of the figure's range; memory and what the plan itself sets are counted
    as everywhere, by the estimate itself.
    """
    plan, estimate, named = filled.plan, filled.estimate, {limit.figure for limit in limits}
    for limit in limits:
        found = figure(estimate, limit.figure)
        yield Reached(limit, found, _far_end(found, limit))
    memory = estimate.memory
    own = [
        Limit(each.figure, least=_single(each.least), most=_single(each.most))
        for each in estimate.limits
        if each.figure != SEQUENCES
    ]
    if memory.capacity_bytes is not None:
        own.append(Limit(MEMORY, most=PERCENT))
        if memory.host_capacity_bytes is not None:
            own.append(Limit(HOST, most=float(np.max(np.asarray(memory.host_capacity_bytes)))))
    for limit in (each for each in own if each.figure not in named):
        found = figure(estimate, limit.figure)
        yield Reached(limit, found, found.number)
    room, batch = estimate.details.get(SEQUENCES), plan.inference.batch
    if room is not None and isinstance(batch, int) and plan.inference.request_rate is None:
        held = Figure(Metric(SEQUENCES, "sequences in the cache", "requests", lambda _: room), room)
        yield Reached(Limit(SEQUENCES, least=float(batch)), held, held.number)


def _single(value: Number | None) -> float | None:
    return None if value is None else float(np.max(np.asarray(value)))


def _far_end(found: Figure, limit: Limit) -> float | None:
    """Return the end of a figure's range that a limit is held against: the upper one, the lower for a least value."""
    value = found.value
    if isinstance(value, Interval):
        value = value.low if limit.most is None else value.high
    return None if value is None else float(np.max(np.asarray(value)))


def is_better(one: Tried, other: Tried, goal: Goal) -> bool:
    """Whether a candidate reaches a goal better than another; one without the figure never does."""
    mine, theirs = one.number(goal.figure), other.number(goal.figure)
    if mine is None or theirs is None:
        return mine is not None
    return goal.sign * mine < goal.sign * theirs
