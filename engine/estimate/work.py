"""Work in neutral terms: operators and collectives, whatever kind of model they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from capacity_tui.engine.estimate.result import ModelFacts, Note
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.uncertainty.intervals import GENERAL, OF_MEMORY, STEP, TRAINED_MEMORY

Part = Literal[
    "compute",
    "attention",
    "tensor_parallel",
    "context_parallel",
    "expert_parallel",
    "pipeline_bubble",
    "data_parallel",
    "optimizer",
    "overhead",
]
Phase = Literal["forward", "backward", "recompute", "step"]
PipelinePosition = Literal["layer", "first", "last", "step"]


@dataclass(frozen=True, slots=True)
class Operator:
    """One kind of kernel and how often it runs.

    Attributes:
        name: what it is, in the field's words.
        part: result part its time counts towards.
        phase: forward, backward, recompute, or once a step.
        where: in every layer, on the first or last pipeline stage, or once a step.
        flops: FLOPs of one run on one device.
        bytes: device memory traffic of one run.
        rate: FLOP/s this kernel reaches at this shape.
        bandwidth: B/s this kernel reaches.
        count: runs for one micro-batch on the device (a step for ``where == "step"``).
        launches: kernels one run launches.
    """

    name: str
    part: Part
    phase: Phase
    where: PipelinePosition
    flops: Number
    bytes: Number
    rate: Number
    bandwidth: Number
    count: Number = 1.0
    launches: Number = 1.0


@dataclass(frozen=True, slots=True)
class Collective:
    """Communication of one kind and how often it runs.

    Attributes:
        name: operation and what it carries.
        part: result part its exposed time counts towards.
        seconds: time of one run.
        count: runs for one micro-batch (a step for ``per_step``).
        overlap: share that can hide behind kernels and their launches.
        per_step: whether it runs once a step rather than once a micro-batch.
        bytes: payload of one run.
    """

    name: str
    part: Part
    seconds: Number
    count: Number = 1.0
    overlap: Number = 0.0
    per_step: bool = False
    bytes: Number = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """How micro-batches run through the pipeline.

    Attributes:
        micro_batches: micro-batches of one step on one replica.
        stages: pipeline stages.
        interleave: model chunks a stage holds.
        fullest_over_mean: layers of the fullest stage over the mean.
    """

    micro_batches: Number = 1.0
    stages: Number = 1.0
    interleave: Number = 1.0
    fullest_over_mean: Number = 1.0


@dataclass(frozen=True, slots=True)
class Work:
    """Everything a family of models says about one run; time, money and power follow from it alone.

    Attributes:
        facts: size and work of the model.
        memory: bytes inside the framework's allocator on the fullest device, by part.
        host_bytes: bytes in host memory for one device.
        places: bytes inside the allocator at each place that may be the peak, in words.
        fragmentation: what the allocator holds beyond its peak, as a share of it.
        context_bytes: driver context and communication buffers outside the allocator.
        operators: kernels of a micro-batch and of the step.
        collectives: communication.
        schedule: micro-batches and pipeline.
        host_launch_seconds: host time of one kernel launch.
        fixed_seconds: host time of one step.
        units_per_step: tokens or samples of one step.
        units_per_sample: tokens in one sample.
        steps: steps of the job, None when open.
        model_flops_per_step: FLOPs of the model itself, over all devices.
        peak_flops: dense peak of one device in the type used, FLOP/s.
        method: how the numbers are computed, for the basis.
        assumed: what was not given.
        step_range: measured over predicted time of a step, 10th and 90th percentile.
        memory_range: the same of memory beyond its exact parts.
        stages: bytes inside the allocator on a device of the first, last and fullest pipeline stage.
        timeline: the same on the fullest device by moment of a step; empty where only the peak is known.
        step_basis, memory_basis: which runs the ranges come from, in words.
        warnings: what to know before relying on the run.
        state_bytes: model states that one device writes to a checkpoint; None where they are not known.
    """

    facts: ModelFacts
    memory: Mapping[str, Number]
    host_bytes: Number
    places: Mapping[str, Number]
    fragmentation: Number
    context_bytes: Number
    operators: tuple[Operator, ...]
    collectives: tuple[Collective, ...]
    schedule: Schedule
    host_launch_seconds: Number
    fixed_seconds: Number
    units_per_step: Number
    units_per_sample: Number
    steps: Number | None
    model_flops_per_step: Number
    peak_flops: Number
    method: str
    assumed: tuple[str, ...] = ()
    step_range: tuple[float, float] = STEP
    memory_range: tuple[float, float] = TRAINED_MEMORY
    step_basis: str = GENERAL
    memory_basis: str = OF_MEMORY
    warnings: tuple[Note, ...] = ()
    state_bytes: Number | None = None
    stages: Mapping[str, Number] = field(default_factory=dict)
    timeline: Mapping[str, Number] = field(default_factory=dict)
