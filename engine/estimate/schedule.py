"""From operators and collectives to the seconds of a step, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.roofline import operator_seconds
from capacity_tui.engine.estimate.work import Collective, Operator, Schedule, Where
from capacity_tui.engine.numeric import Number


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step.

    Attributes:
        seconds: the whole step.
        parts: exposed seconds by part; they sum to ``seconds``.
        hidden: seconds of communication that runs behind compute, by part.
    """

    seconds: Number
    parts: Mapping[str, Number]
    hidden: Mapping[str, Number]


def total_seconds(operators: Iterable[Operator], *, where: tuple[Where, ...], part: str = "") -> Number:
    """Sum the runs of all operators at a place (of one part, where one is named)."""
    total: Number = 0.0
    for operator in operators:
        if operator.where in where and part in {"", operator.part}:
            total = total + operator_seconds(operator) * operator.count
    return total


@equation(
    "bubble = (stages - 1) / interleave · mean + micro_batches · (slowest - mean)",
    unit="s",
    source="Narayanan et al. 2021, section 2.2; the slowest stage sets the pace",
    part="computation.parts.pipeline_bubble",
)
def pipeline_bubble(
    stages: Number, interleave: Number, micro_batches: Number, mean: Number, slowest: Number
) -> Number:
    """Seconds devices wait for others: filling and draining, and stages with more to do than the mean."""
    return (stages - 1.0) / interleave * mean + micro_batches * (slowest - mean)


@equation(
    "exposed = seconds - min(overlap · seconds, room)",
    unit="s",
    source="communication hides behind independent compute, as far as there is any",
)
def exposed_seconds(seconds: Number, overlap: Number, room: Number) -> Number:
    """Communication that compute does not hide."""
    return seconds - np.minimum(overlap * seconds, room)


@equation(
    "overhead = max(0, launches · launch - compute)",
    unit="s",
    source="a device idles when the host launches more slowly than it computes",
    part="computation.parts.overhead",
)
def launch_bound(launches: Number, launch: Number, compute: Number) -> Number:
    """Seconds of a micro-batch in which the device waits for kernels to be launched."""
    return np.maximum(0.0, launches * launch - compute)


def step_time(
    operators: tuple[Operator, ...],
    collectives: tuple[Collective, ...],
    schedule: Schedule,
    *,
    launch_seconds: Number,
    fixed_seconds: Number,
) -> StepTime:
    """Combine operators and collectives into the time of one step.

    Args:
        operators: kernels of one micro-batch (``layer`` counts are those of the mean stage) and of the step.
        collectives: communication of one micro-batch and of the step.
        schedule: micro-batches, stages and interleave.
        launch_seconds: host time of one kernel launch.
        fixed_seconds: host time of one step.
    """
    parts: dict[str, Number] = {}
    hidden: dict[str, Number] = {}
    micro_batches, stages = schedule.micro_batches, schedule.stages
    layer = total_seconds(operators, where=("layer",))
    ends = total_seconds(operators, where=("first",)), total_seconds(operators, where=("last",))
    launches: Number = sum((o.launches * o.count for o in operators if o.where != "step"), start=0.0)
    idle = launch_bound(launches, launch_seconds, layer)
    exposed: dict[str, Number] = {}
    for collective in collectives:
        room = layer if not collective.per_step else layer * np.minimum(micro_batches, 1.0)
        seconds = collective.seconds * collective.count
        visible = exposed_seconds(seconds, collective.overlap, room)
        repeats = 1.0 if collective.per_step else micro_batches
        hidden[collective.part] = hidden.get(collective.part, 0.0) + (seconds - visible) * repeats
        target = parts if collective.per_step else exposed
        target[collective.part] = target.get(collective.part, 0.0) + visible
    per_micro_batch: Number = sum(exposed.values(), start=0.0)
    mean = layer + idle + per_micro_batch + (ends[0] + ends[1]) / stages
    slowest = (layer + idle + per_micro_batch) * schedule.fullest_over_mean + np.where(
        stages > 1, np.maximum(ends[0], ends[1]), ends[0] + ends[1]
    )
    slowest = np.maximum(slowest, mean)
    for part in ("compute", "attention"):
        inside = total_seconds(operators, where=("layer",), part=part)
        outside = total_seconds(operators, where=("first", "last"), part=part) / stages
        parts[part] = (inside + outside) * micro_batches
    for part, seconds in exposed.items():
        parts[part] = parts.get(part, 0.0) + seconds * micro_batches
    parts["pipeline_bubble"] = pipeline_bubble(stages, schedule.interleave, micro_batches, mean, slowest)
    parts["optimizer"] = total_seconds(operators, where=("step",))
    parts["overhead"] = idle * micro_batches + fixed_seconds
    total: Number = sum(parts.values(), start=0.0)
    return StepTime(total, parts, hidden)
