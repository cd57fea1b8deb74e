"""Limits beside what a plan reaches of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.choose.search.question import Limit
from capacity_tui.engine.estimate.figures import Figure, Metric, figure
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.estimate.serving.room import SEQUENCES
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.uncertainty.intervals import Interval
from capacity_tui.engine.units import PERCENT

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


def own_limits(plan: Plan) -> tuple[Limit, ...]:
    """Return what a plan asks of itself, besides its limits of latency: that its load is served."""
    rate = plan.inference.request_rate if plan.task == "infer" else None
    return () if rate is None else (Limit(REQUESTS, least=rate),)


def reached(plan: Plan, estimate: Estimate, limits: Iterable[Limit] = ()) -> Iterator[Reached]:
    """Yield what a plan reaches of limits that are given, of memory, and of the limits that it sets itself.

    A limit that is given holds at the far end of the figure's range; memory and what the plan itself sets are counted
    as everywhere, by the estimate itself.

    Args:
        plan: a plan without open fields.
        estimate: its estimate.
        limits: limits of a question.
    """
    given = tuple(limits)
    named = {limit.figure for limit in given}
    for limit in given:
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
