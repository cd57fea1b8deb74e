"""Work in neutral terms: operators and collectives, whatever kind of model they come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal

from capacity_tui.engine.estimate.derivation import recorded_count
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Evidence


@dataclass(frozen=True, slots=True)
class Note:
    """A recommendation or warning; ``saves`` is computed by estimating again.

    Attributes:
        code: stable name for scripts.
        title: what to do or to know.
        detail: why, with the figures.
        saves: what changes, by result key: new value minus old.
        change: plan fields that bring it about, with their new values.
    """

    code: str
    title: str
    detail: str
    saves: Mapping[str, float] | None = None
    change: Mapping[str, object] | None = None


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
    "input",
    "idle",
]

Direction = Literal["forward", "backward", "recompute", "step"]

PipelinePosition = Literal["layer", "first", "last", "step"]

HidingPass = Literal["forward", "backward", "both"]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Size and work of the model itself, whatever runs it.

    Attributes:
        parameters: all parameters.
        active_parameters: parameters used for one token or sample.
        forward_flops: forward FLOPs for one unit.
        unit: ``token`` or ``sample``: what the work is counted in.
        complexity: complexity class, where the family has one.
        samples: what samples are called.
    """

    parameters: Number
    active_parameters: Number
    forward_flops: Number
    unit: Literal["token", "sample"]
    complexity: str = ""
    samples: Literal["samples", "images", "rows"] = "samples"

    @property
    def counted(self) -> str:
        """What the work is counted in, as a word for many."""
        return "tokens" if self.unit == "token" else self.samples


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
        count: runs for one micro-batch or pass on the device (a step for ``where == "step"``).
        launches: kernels one run launches.
        recorded: equations recorded before it, whose latest results its numbers are.
    """

    name: str
    part: Part
    phase: Direction
    where: PipelinePosition
    flops: Number
    bytes: Number
    rate: Number
    bandwidth: Number
    count: Number = 1.0
    launches: Number = 1.0
    recorded: int = field(default_factory=recorded_count, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Collective:
    """Communication of one kind and how often it runs.

    Attributes:
        name: operation and what it carries.
        part: result part its exposed time counts towards.
        seconds: time of one run.
        count: runs for one micro-batch or pass (a step for ``per_step``).
        overlap: share that can hide behind kernels and their launches.
        per_step: whether it runs once a step rather than once a micro-batch.
        bytes: payload of one run.
        hides_behind: the pass whose kernels it can hide behind; of a step, that of one micro-batch alone.
        group: devices that take part; 1 where no link between devices is used.
        stride: ranks between neighbours of the group.
        recorded: equations recorded before it, whose latest results its numbers are.
    """

    name: str
    part: Part
    seconds: Number
    count: Number = 1.0
    overlap: Number = 0.0
    per_step: bool = False
    bytes: Number = 0.0
    hides_behind: HidingPass = "both"
    group: Number = 1.0
    stride: Number = 1.0
    recorded: int = field(default_factory=recorded_count, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How micro-batches run through the pipeline, forward and backward.

    Attributes:
        micro_batches: micro-batches of one step on one replica.
        stages: pipeline stages.
        interleave: model chunks a stage holds.
        fullest_over_mean: layers of the fullest stage over the mean.
        first_over_mean, last_over_mean: layers of the first and of the last stage over the mean.
        message_seconds: seconds of a micro-batch in which a stage waits for messages of others, whatever else it does.
        flushes: times the pipeline is filled and emptied for a step.
        nodes: nodes that wait for each other.
        spread: standard deviation of a node's time for a step, as a share of it.
    """

    micro_batches: Number = 1.0
    stages: Number = 1.0
    interleave: Number = 1.0
    fullest_over_mean: Number = 1.0
    first_over_mean: Number = 1.0
    last_over_mean: Number = 1.0
    message_seconds: Number = 0.0
    flushes: Number = 1.0
    nodes: Number = 1.0
    spread: Number = 0.0

    @property
    def repeats(self) -> Number:
        """How often the kernels of a micro-batch run."""
        return self.micro_batches

    def share(self, where: PipelinePosition) -> Number:
        """Return the share of a kernel's time that falls on the mean stage: one stage has the first or last layer."""
        return 1.0 / self.stages if where in {"first", "last"} else 1.0


@dataclass(frozen=True, slots=True)
class PassSchedule:
    """How forward passes run through the stages of a model that is served.

    Attributes:
        passes: passes that each stage works through.
        waves: passes that follow each other through all stages; the others run beside them, each on its stage.
        stages: pipeline stages, over which the kernels of a pass are divided.
        overlap: share of the waves that the engine overlaps.
        hand_over: seconds in which the activations of one pass go from stage to stage.
        kernels: kernels of a pass.
        kernel_gap: seconds between two of them on the device.
        host_seconds: host time of a pass for the sequences in it.
        host_overlap: share of the device's time in which the host does that.
    """

    passes: Number
    waves: Number
    stages: Number
    overlap: Number
    hand_over: Number
    kernels: Number
    kernel_gap: Number
    host_seconds: Number = 0.0
    host_overlap: Number = 0.0

    @property
    def repeats(self) -> Number:
        """How often the kernels of a pass run."""
        return self.passes

    def share(self, where: PipelinePosition) -> Number:  # noqa: ARG002 - all stages share all kernels of a pass
        """Return the share of a kernel's time that falls on the mean stage."""
        return 1.0 / self.stages


@dataclass(frozen=True, slots=True)
class Phase:
    """Kernels and communication that follow one schedule: an optimizer step, reading of prompts, one decode step.

    Attributes:
        operators: kernels of a micro-batch or pass, and of the whole phase.
        collectives: communication.
        schedule: how often they run, and how they divide over pipeline stages.
        host_launch_seconds: host time of one kernel launch.
        fixed_seconds: host time of one step or pass.
        runs: how often one iteration of the work runs the phase.
    """

    name: Literal["step", "prefill", "decode", "draft", "idle"]
    operators: tuple[Operator, ...]
    collectives: tuple[Collective, ...] = ()
    schedule: Schedule | PassSchedule = field(default_factory=Schedule)
    host_launch_seconds: Number = 0.0
    fixed_seconds: Number = 0.0
    runs: Number = 1.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """One replica under a load of requests, in its steady state.

    Attributes:
        reading: seconds in which the prompts of as many requests are read as run at once.
        running: requests that are at work, the mean.
        waiting: requests that wait or are at the host; infinite where more arrive than it answers, as are the times to
            the first token.
        arriving: requests that arrive in a second, at all replicas; infinite where each follows an answer.
        largest_rate: requests that all replicas answer in a second at most.
        first_token: seconds to the first token.
        first_token_percentile: the same at the percentile that the plan tells.
        token_seconds: seconds between two output tokens of a sequence.
        token_seconds_percentile: the same at that percentile.
        request: seconds from a request's arrival to its last token.
        together: mean seconds to the first token were all that are at once sent at one moment; 0 where they arrive.
        follows: whether each request follows an answer, so that faster devices are sent more.
    """

    reading: Number
    running: Number
    waiting: Number
    arriving: Number
    largest_rate: Number
    first_token: Number
    first_token_percentile: Number
    token_seconds: Number
    token_seconds_percentile: Number
    request: Number
    together: Number = 0.0
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """The requests of one batch, or of a load.

    Attributes:
        batch: sequences served side by side by one replica.
        prompt: tokens of a prompt.
        replicas: copies of the model that serve side by side.
        output: tokens of an answer, the mean.
        running: sequences of a decode step, the mean.
        accepted: tokens a sequence gets from one pass.
        drafts: time of the draft for one pass, in passes of the model.
        waves: the batch over what of it the cache holds at once, from 1.
        loaded: the steady state under a load; None for a batch that starts together.
        beyond: share of the requests under a load that take longer than the percentile of the plan.
        host_seconds: host time of a request beside its passes.
        requests: of the load in all; infinite where it goes on.
    """

    batch: Number
    prompt: Number
    replicas: Number
    output: Number
    running: Number
    accepted: Number = 1.0
    drafts: Number = 0.0
    waves: Number = 1.0
    loaded: Loaded | None = None
    beyond: Number = 0.5
    host_seconds: Number = 0.0
    requests: Number = math.inf


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the data of one iteration arrive at the devices.

    Attributes:
        arriving: seconds in which they arrive.
        hidden: 1 where that goes on beside the work of the iteration before, else 0.
        reading: seconds in which they are read.
        decoding: seconds in which processor cores decode them.
    """

    arriving: Number
    hidden: Number
    reading: Number
    decoding: Number


@dataclass(frozen=True, slots=True)
class Work:
    """Everything a family of models says about one run; time, money and power follow from it alone.

    Attributes:
        facts: size and work of the model.
        memory: bytes inside the framework's allocator on the fullest device, by part.
        host_bytes: bytes in host memory for one device.
        host_holds: what lies there that could lie on the device, in words; empty for nothing.
        places: bytes inside the allocator at each place that may be the peak, in words.
        fragmentation: what the allocator holds beyond its peak, as a share of it.
        stranded: bytes it holds beyond that, in blocks that it keeps for one use and cannot give to another.
        context_bytes: driver context and communication buffers outside the allocator.
        phases: kernels and communication of one iteration: a step, a fit, or prefill and decode of a batch.
        units_per_step: tokens or samples of one iteration.
        units_per_sample: tokens in one sample.
        steps: iterations of the job, None when open.
        model_flops_per_step: FLOPs of the model itself, over all devices.
        peak_flops: dense peak of one device in the type used, FLOP/s.
        method: how the numbers are computed, for the basis.
        calibration: which measured constants went in; empty for those of the device.
        assumed: what was not given.
        evidence: what the ranges of its figures rest on; none where they are not asked for.
        stages: bytes inside the allocator on a device of the first, last and fullest pipeline stage.
        timeline: the same on the fullest device by moment of a step; empty where only the peak is known.
        warnings: what to know before relying on the run.
        state_bytes: returns the model states that one device writes to a checkpoint, which prices alone ask for; None
            where they are not known.
        served: the requests, where the work answers any.
        details: further figures, by result key.
        allocated: sum of the memory, where it is known without its parts; None where they are added up.
        delivery: how its data arrive; None where the plan says nothing of them, and they are there in time.
    """

    facts: ModelFacts
    memory: Mapping[str, Number]
    host_bytes: Number
    places: Mapping[str, Number]
    fragmentation: Number
    context_bytes: Number
    phases: tuple[Phase, ...]
    units_per_step: Number
    units_per_sample: Number
    steps: Number | None
    model_flops_per_step: Number
    peak_flops: Number
    method: str
    calibration: str = ""
    assumed: tuple[str, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    warnings: tuple[Note, ...] = ()
    state_bytes: Callable[[], Number] | None = None
    stages: Mapping[str, Number] = field(default_factory=dict)
    timeline: Mapping[str, Number] = field(default_factory=dict)
    served: Served | None = None
    details: Mapping[str, Number] = field(default_factory=dict)
    allocated: Number | None = None
    delivery: Delivery | None = None
    stranded: Number = 0.0
    host_holds: str = ""

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The kernels of all phases."""
        return tuple(operator for phase in self.phases for operator in phase.operators)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The communication of all phases."""
        return tuple(collective for phase in self.phases for collective in phase.collectives)
