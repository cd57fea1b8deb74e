"""Limits that a plan sets for its figures: latency, the load to be answered, sequences that the cache must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from capacity_tui.engine.estimate.constraint import Constraint
from capacity_tui.engine.estimate.figures.readers import Figured
from capacity_tui.engine.estimate.figures.values import figure
from capacity_tui.engine.estimate.serving.memory import SEQUENCES
from capacity_tui.engine.estimate.serving.rates import FIRST, PER_TOKEN, limited, limits_of
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict

RATE, BATCH = Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_BATCH
NO_NUMBERS: Mapping[str, Number | None] = MappingProxyType({})
REQUESTS = Figure.LARGEST_REQUESTS_PER_SECOND
_FIELDS = {FIRST: "ttft_seconds", PER_TOKEN: "tpot_seconds"}


def limit(
    estimate: Figured, key: str, *, most: Number | None = None, least: Number | None = None, why: str = ""
) -> Constraint:
    """Return a limit of one figure beside what an estimate reaches of it; broken where it has no such figure.

    Args:
        estimate: the estimate, of one plan or of several.
        key: result key of the figure.
        most: the most it may be.
        least: the least it must be.
        why: where the limit comes from.

    Raises:
        PlanError: no result has that key.
    """
    value = figure(estimate, key)
    reached = value.value if value.value is None or isinstance(value.value, Interval) else Interval.exactly(value.value)
    label = value.metric.brief or value.metric.label
    why = f"{label}: {value.absence}" if reached is None else why
    return Constraint(key, label, value.metric.unit, reached, most, least, why)


def plan_limits(
    plan: Plan, estimate: Figured, numbers: Mapping[str, Number | None] = NO_NUMBERS
) -> tuple[Constraint, ...]:
    """Return what a plan that serves asks of its figures; nothing of others.

    Args:
        plan: the plan.
        estimate: its estimate, or that of several plans that differ in some numbers.
        numbers: those numbers as arrays, by plan key; None where these have none.
    """
    return tuple(_served(plan, estimate, numbers)) if plan.task == "infer" else ()


def _served(plan: Plan, estimate: Figured, numbers: Mapping[str, Number | None]) -> Iterator[Constraint]:
    wanted, speed = plan.inference, estimate.computation.infer
    rate = numbers.get(RATE, wanted.arrival_rate)
    goes_on = rate is not None and wanted.requests is None
    if goes_on and speed is not None and speed.largest_requests_per_second is not None:
        yield replace(limit(estimate, REQUESTS, least=rate, why=RATE), label="load served")
    for name, seconds in limits_of(wanted).items():
        path = f"inference.{_FIELDS[name]}"
        limiting = None if speed is None else limited(speed, name)
        if limiting is not None:
            yield limit(estimate, limiting[0], most=numbers.get(path, seconds), why=path)
    room, batch = estimate.details.get(SEQUENCES), numbers.get(BATCH, _whole(wanted.batch))
    if room is not None and batch is not None and rate is None:
        reached = Interval.exactly(room)
        yield Constraint(SEQUENCES, "cache", "sequences", reached, least=batch, why=BATCH, broken_as=Verdict.TIGHT)


def _whole(value: object) -> float | None:
    return float(value) if isinstance(value, int) else None
