"""Limits that a plan sets for its figures: latency, the load to be answered, sequences that the cache must hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.estimate.constraint import Constraint
from capacity_tui.engine.estimate.figures import figure
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.estimate.serving.latency import EACH, FIRST, limited, limits_of
from capacity_tui.engine.estimate.serving.room import SEQUENCES
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.uncertainty.intervals import Interval

REQUESTS = "computation.infer.largest_requests_per_second"
_FIELDS = {FIRST: "ttft_seconds", EACH: "tpot_seconds"}


def limit(
    estimate: Estimate, key: str, *, most: Number | None = None, least: Number | None = None, why: str = ""
) -> Constraint:
    """Return a limit of one figure beside what an estimate reaches of it; broken where it has no such figure.

    Args:
        estimate: the estimate.
        key: result key of the figure.
        most: the most it may be.
        least: the least it must be.
        why: where the limit comes from.

    Raises:
        PlanError: no result has that key.
    """
    found = figure(estimate, key)
    value = found.value
    reached = value if value is None or isinstance(value, Interval) else Interval.exactly(value)
    label = found.metric.brief or found.metric.label
    return Constraint(key, label, found.metric.unit, reached, most, least, why or f"{label}: {found.absence}")


def plan_limits(plan: Plan, estimate: Estimate) -> tuple[Constraint, ...]:
    """Return what a plan that serves asks of its figures; nothing of others."""
    return tuple(_served(plan, estimate)) if plan.task == "infer" else ()


def _served(plan: Plan, estimate: Estimate) -> Iterator[Constraint]:
    wanted, speed = plan.inference, estimate.computation.infer
    if wanted.request_rate is not None and speed is not None and speed.largest_requests_per_second is not None:
        load = limit(estimate, REQUESTS, least=wanted.request_rate, why="inference.request_rate")
        yield replace(load, label="load served")
    for name, seconds in limits_of(wanted).items():
        found = None if speed is None else limited(speed, name)
        if found is not None:
            yield limit(estimate, found[0], most=seconds, why=f"inference.{_FIELDS[name]}")
    room = estimate.details.get(SEQUENCES)
    if room is not None and isinstance(wanted.batch, int) and wanted.request_rate is None:
        held = Interval.exactly(room)
        yield Constraint(SEQUENCES, "cache", "sequences", held, least=float(wanted.batch), why="inference.batch")
