"""From operators and collectives to seconds, part by part: of a phase of the work, and of one iteration of it all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from capacity_tui.engine.estimate.data.supply import input_seconds
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.timing.roofline import operator_seconds
from capacity_tui.engine.estimate.work import (
    Collective,
    Operator,
    PassSchedule,
    Phase,
    PipelinePosition,
    Schedule,
    Work,
)
from capacity_tui.engine.numeric import Number, added, any_true, where
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """Seconds of one run of a phase."""

    seconds: Number  # the whole phase
    parts: Mapping[str, Number]  # exposed seconds by part; they sum to ``seconds``
    exposed: tuple[Number, ...]  # seconds of each collective of the phase, in its order, that nothing hides


def total(parts: Mapping[str, Number]) -> Number:
    return added(parts.values())


pass_overhead = formula()  # Seconds of one forward pass in which the device waits for kernels to start

# Seconds of one forward pass in which the device waits for the host to work on its sequences.
sequence_overhead = formula()
pipelined = formula()


def pass_time(phase: Phase, schedule: PassSchedule) -> PhaseTime:
    """Combine the kernels and collectives of forward passes; what a stage does not work is the pipeline's part."""
    in_pass: dict[str, Number] = {"compute": 0.0, "attention": 0.0}
    for operator in phase.operators:
        in_pass[operator.part] = in_pass[operator.part] + operator_seconds(operator) * operator.count
    exposed = tuple(collective.seconds * collective.count for collective in phase.collectives)
    for collective, seconds in zip(phase.collectives, exposed, strict=True):
        in_pass[collective.part] = in_pass.get(collective.part, 0.0) + seconds
    in_pass["overhead"] = pass_overhead(
        schedule.kernels, schedule.kernel_gap, phase.host_launch_seconds, total(in_pass), phase.fixed_seconds
    )
    if any_true(schedule.host_seconds > 0):
        further = sequence_overhead(schedule.host_seconds, schedule.host_overlap, total(in_pass))
        in_pass["overhead"] = in_pass["overhead"] + further
    through, per_stage = total(in_pass), schedule.passes / schedule.stages
    whole = pipelined(through, schedule.stages, schedule.waves, schedule.overlap) + schedule.hand_over
    parts: dict[str, Number] = {part: seconds * per_stage for part, seconds in in_pass.items()}
    parts["pipeline_bubble"] = whole - through * per_stage
    return PhaseTime(whole, parts, tuple(seconds * per_stage for seconds in exposed))


SHORTEST = 1e-30  # Stands for no seconds at all where something is divided by them


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one iteration of the work."""

    seconds: Number  # the whole iteration
    parts: Mapping[str, Number]  # exposed seconds by part; they sum to ``seconds``
    phases: tuple[PhaseTime, ...]  # the times of its phases, each of one run


@dataclass(frozen=True, slots=True)
class BusyTime:
    """Seconds of device work, by place and part."""

    # layer, ends, step: by part, of one micro-batch in the layers and at both ends, and of the step
    layer: Mapping[str, Number]
    ends: Mapping[str, Number]
    step: Mapping[str, Number]
    # first, last: of one micro-batch on the first and the last stage beyond their layers
    first: Number
    last: Number
    launches: Number  # kernels of one micro-batch
    # flops, forward_flops: FLOPs of one micro-batch in the layers without recomputation, and of its forward pass
    flops: Number
    forward_flops: Number


def busy_time(operators: Iterable[Operator]) -> BusyTime:
    """Add up the runs of all operators."""
    places: dict[PipelinePosition, dict[str, list[Number]]] = {"layer": {}, "first": {}, "last": {}, "step": {}}
    launches, flops, forward = list[Number](), list[Number](), list[Number]()
    for operator in operators:
        seconds = operator_seconds(operator) * operator.count
        places[operator.where].setdefault(operator.part, []).append(seconds)
        if operator.where == "layer" and operator.phase != "recompute":
            flops.append(operator.flops * operator.count)
            if operator.phase == "forward":
                forward.append(flops[-1])
        if operator.where != "step":
            launches.append(operator.launches * operator.count)
    layer, first, last, step = (
        {part: added(seconds) for part, seconds in places[place].items()}
        for place in ("layer", "first", "last", "step")
    )
    ends = {part: first.get(part, 0.0) + last.get(part, 0.0) for part in {**first, **last}}
    return BusyTime(layer, ends, step, total(first), total(last), added(launches), added(flops), added(forward))


@equation
def pipeline_bubble(
    stages: Number, interleave: Number, micro_batches: Number, mean: Number, slowest: Number, flushes: Number = 1.0
) -> Number:
    """Seconds devices wait for others: filling and draining, and stages with more to do than the mean."""
    return (stages - 1.0) / interleave * flushes * mean + micro_batches * (slowest - mean)


@equation
def hidden_share(busy: Number, hideable: Number) -> Number:
    """Share of the communication that could hide behind kernels which does."""
    return np.minimum(1.0, busy / np.maximum(hideable, SHORTEST))


exposed_seconds = formula()
launch_bound = formula()


@equation
def forward_share(forward: Number, flops: Number) -> Number:
    """Share of a micro-batch in which its forward pass runs."""
    return forward / np.maximum(flops, SHORTEST)


straggling = formula()


@dataclass(frozen=True, slots=True)
class Overlap:
    """What runs side by side in one micro-batch: kernels, their launches on the host, and the network.

    A micro-batch is as long as the longest of the three, so that more of any of them never makes it shorter.
    """

    exposed: tuple[Number, ...]  # seconds of each collective that nothing hides, of a micro-batch or of the step
    idle: Number  # seconds in which the device waits for kernels to be launched


@dataclass(frozen=True, slots=True)
class Room:
    """What one pass of a micro-batch hides of the collectives that may hide behind it, as shares of them."""

    hidden: Number  # of those of the micro-batch itself, which come first
    hidden_once: Number  # of those of the step, which find what is left of one micro-batch


def overlapped(phase: Phase, busy: BusyTime) -> Overlap:
    """Let communication hide behind kernels and launches: first that of a micro-batch, then that of the step.

    What the forward pass needs hides behind it, what the backward pass makes behind that; a step's reduction of
    gradients has the last micro-batch alone. All collectives share the time there is.
    """
    layer = total(busy.layer)
    blocking = added(
        (1.0 - collective.overlap) * collective.seconds * collective.count
        for collective in phase.collectives
        if not collective.per_step
    )
    idle = launch_bound(busy.launches, phase.host_launch_seconds, layer + blocking)
    if not phase.collectives:
        return Overlap((), idle)
    forward = forward_share(busy.forward_flops, busy.flops)
    rooms = {
        name: _room(phase.collectives, name, share, share * (layer + idle))
        for name, share in (("forward", forward), ("backward", 1.0 - forward))
    }
    return Overlap(tuple(_exposed(collective, rooms, forward) for collective in phase.collectives), idle)


def _room(collectives: Iterable[Collective], name: str, share: Number, busy: Number) -> Room:
    """Share out the seconds of one pass; what may hide behind both passes claims each in proportion."""
    claimed: Number = 0.0
    claimed_once: Number = 0.0
    for collective in collectives:
        if collective.hides_behind in (name, "both"):
            part = share if collective.hides_behind == "both" else 1.0
            seconds = collective.overlap * collective.seconds * collective.count * part
            claimed, claimed_once = (
                (claimed, claimed_once + seconds) if collective.per_step else (claimed + seconds, claimed_once)
            )
    hidden = hidden_share.named(name)(busy, claimed)
    return Room(hidden, hidden_share.named(f"{name}.once")(np.maximum(busy - claimed, 0.0), claimed_once))


def _exposed(collective: Collective, rooms: Mapping[str, Room], forward: Number) -> Number:
    shares = {name: room.hidden_once if collective.per_step else room.hidden for name, room in rooms.items()}
    both = forward * shares["forward"] + (1.0 - forward) * shares["backward"]
    hidden = both if collective.hides_behind == "both" else shares[collective.hides_behind]
    origin = f"hidden_share.{collective.hides_behind}{'.once' if collective.per_step else ''}"
    exposed = exposed_seconds.with_origins(hidden=() if collective.hides_behind == "both" else origin)
    return exposed(collective.seconds * collective.count, collective.overlap, hidden)


def step_time(work: Work) -> StepTime:
    """Return the time of one iteration of some work: that of its phases, as often as each runs, and of late data.

    Where a plan holds the utilization, its parts share the time that follows from that.
    """
    working = _working_time(work)
    if work.held_seconds is not None:
        share = work.held_seconds / working.seconds
        parts = {part: seconds * share for part, seconds in working.parts.items()}
        return StepTime(work.held_seconds, parts, working.phases)
    if work.delivery is None:
        return working
    waiting = input_seconds(work.delivery.arriving, work.delivery.hidden, working.seconds)
    return StepTime(working.seconds + waiting, {**working.parts, "input": waiting}, working.phases)


def _working_time(work: Work) -> StepTime:
    times = tuple(phase_time(phase) for phase in work.phases)
    if len(times) == 1 and not any_true(work.phases[0].runs != 1.0):
        return StepTime(times[0].seconds, times[0].parts, times)
    seconds: Number = 0.0
    parts: dict[str, Number] = {}
    for phase, time in zip(work.phases, times, strict=True):
        seconds = seconds + phase.runs * time.seconds
        for part, part_seconds in time.parts.items():
            parts[part] = parts.get(part, 0.0) + phase.runs * part_seconds
    return StepTime(seconds, parts, times)


def phase_time(phase: Phase) -> PhaseTime:
    """Return the time of one run of a phase, by its schedule."""
    if isinstance(phase.schedule, PassSchedule):
        return pass_time(phase, phase.schedule)
    return _pipeline_time(phase, phase.schedule)


def _pipeline_time(phase: Phase, schedule: Schedule) -> PhaseTime:
    """Combine operators and collectives of micro-batches that run through a pipeline, forward and backward."""
    micro_batches, stages = schedule.micro_batches, schedule.stages
    busy = busy_time(phase.operators)
    overlap = overlapped(phase, busy)
    waited: list[Number] = [*busy.layer.values(), overlap.idle]
    visible: list[Number] = []
    exposed_of: dict[str, list[Number]] = {}
    for collective, exposed in zip(phase.collectives, overlap.exposed, strict=True):
        if not collective.per_step:
            waited.append(exposed)
        visible.append(exposed if collective.per_step else exposed * micro_batches)
        exposed_of.setdefault(collective.part, []).append(visible[-1])
    parts = {part: added(seconds) for part, seconds in exposed_of.items()}
    layer_seconds = added(waited)
    mean = layer_seconds + (busy.first + busy.last) / stages
    # One stage waits for no other: what sums of another order differ by is no bubble.
    slowest = where(np.asarray(stages) > 1, np.maximum(_slowest(layer_seconds, busy, schedule), mean), mean)
    for part in ("compute", "attention"):
        parts[part] = (busy.layer.get(part, 0.0) + busy.ends.get(part, 0.0) / stages) * micro_batches
    flushes = np.minimum(schedule.flushes, micro_batches)
    messages = schedule.message_seconds
    bubble = pipeline_bubble(stages, schedule.interleave, micro_batches, mean + messages, slowest + messages, flushes)
    parts["pipeline_bubble"] = parts.get("pipeline_bubble", 0.0) + bubble + messages * micro_batches
    parts["optimizer"] = total(busy.step)
    parts["overhead"] = parts.get("overhead", 0.0) + overlap.idle * micro_batches + phase.fixed_seconds
    seconds = total(parts)
    waiting = straggling(seconds, schedule.spread, schedule.nodes)
    parts["overhead"] = parts["overhead"] + waiting
    return PhaseTime(seconds + waiting, parts, tuple(visible))


def _slowest(layer_seconds: Number, busy: BusyTime, schedule: Schedule) -> Number:
    """Return the seconds of a micro-batch on the slowest stage: the first, the last, or one with most layers."""
    first, last = (
        layer_seconds * schedule.first_over_mean + busy.first,
        layer_seconds * schedule.last_over_mean + busy.last,
    )
    inner = np.maximum(layer_seconds * schedule.fullest_over_mean, np.maximum(first, last))
    return where(schedule.stages > 1, inner, layer_seconds + busy.first + busy.last)
