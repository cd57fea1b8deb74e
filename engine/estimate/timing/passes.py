"""Seconds of forward passes that run through the stages of a served model, part by part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.estimate.timing.roofline import operator_seconds
from capacity_tui.engine.estimate.work import PassSchedule, Phase
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number, added, any_true
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """Seconds of one run of a phase."""

    seconds: Number  # the whole phase
    parts: Mapping[str, Number]  # exposed seconds by part; they sum to ``seconds``
    exposed: tuple[Number, ...]  # seconds of each collective of the phase, in its order, that nothing hides


def total(parts: Mapping[str, Number]) -> Number:
    """Sum of all parts."""
    return added(parts.values())


@equation(
    "overhead = max(kernels · gap, kernels · host - device) + step",
    unit="s",
    source="gaps between kernels; a device idles when the host launches more slowly than it computes",
    part=Figure.OVERHEAD,
    kernels=("kernels of the pass", "", "launched_kernels"),
    gap=("seconds between two of them on the device", "s"),
    host=("seconds the host takes to launch one", "s", "launch_seconds"),
    device=("seconds the device computes", "s"),
    step=("seconds of host time of a pass, whatever its kernels", "s", "fixed_seconds"),
)
def pass_overhead(kernels: Number, gap: Number, host: Number, device: Number, step: Number) -> Number:
    """Seconds of one forward pass in which the device waits for kernels to start."""
    return np.maximum(kernels * gap, kernels * host - device) + step


@equation(
    "overhead = max(host - overlap · device, 0)",
    unit="s",
    source="scheduling, sampling, and turning tokens into text cost host time for every sequence in flight",
    host=("seconds of host time for all sequences of a pass", "s"),
    overlap="share of the device's time in which the host does that",
    device=("seconds of the pass on the device", "s"),
)
def sequence_overhead(host: Number, overlap: Number, device: Number) -> Number:
    """Seconds of one forward pass in which the device waits for the host to work on its sequences."""
    return np.maximum(host - overlap * device, 0.0)


@equation(
    "seconds = through / stages · (overlap · (passes + stages - 1) + (1 - overlap) · passes · stages)",
    unit="s",
    source="passes follow each other through the stages, as far as the engine overlaps them",
    through=("seconds of one pass through all stages", "s"),
    stages="pipeline stages",
    passes="passes",
    overlap="share of them that the engine overlaps",
)
def pipelined(through: Number, stages: Number, passes: Number, overlap: Number) -> Number:
    """Seconds of several passes of which each takes ``through`` seconds through all stages."""
    return through / stages * (overlap * (passes + stages - 1.0) + (1.0 - overlap) * passes * stages)


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
