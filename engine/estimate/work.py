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
    """A recommendation or warning; ``saves`` is computed by estimating again."""

    code: str  # stable name for scripts
    title: str  # what to do or to know
    detail: str  # why, with the figures
    saves: Mapping[str, float] | None = None  # what changes, by result key: new value minus old
    change: Mapping[str, object] | None = None  # plan fields that bring it about, with their new values


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
    """Size and work of the model itself, whatever runs it."""

    parameters: Number
    active_parameters: Number  # parameters used for one token or sample
    forward_flops: Number  # forward FLOPs for one unit
    unit: Literal["token", "sample"]  # ``token`` or ``sample``: what the work is counted in
    complexity: str = ""  # complexity class, where the family has one
    samples: Literal["samples", "images", "rows"] = "samples"  # what samples are called

    @property
    def counted(self) -> str:
        """What the work is counted in, as a word for many."""
        return "tokens" if self.unit == "token" else self.samples


@dataclass(frozen=True, slots=True)
class Operator:
    """One kind of kernel and how often it runs."""

    name: str  # what it is, in the field's words
    part: Part  # result part its time counts towards
    phase: Direction  # forward, backward, recompute, or once a step
    where: PipelinePosition  # in every layer, on the first or last pipeline stage, or once a step
    flops: Number  # FLOPs of one run on one device
    bytes: Number  # device memory traffic of one run
    rate: Number  # FLOP/s this kernel reaches at this shape
    bandwidth: Number  # B/s this kernel reaches
    count: Number = 1.0  # runs for one micro-batch or pass on the device (a step for ``where == "step"``)
    launches: Number = 1.0  # kernels one run launches
    # equations recorded before it, whose latest results its numbers are
    recorded: int = field(default_factory=recorded_count, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Collective:
    """Communication of one kind and how often it runs."""

    name: str  # operation and what it carries
    part: Part  # result part its exposed time counts towards
    seconds: Number  # time of one run
    count: Number = 1.0  # runs for one micro-batch or pass (a step for ``per_step``)
    overlap: Number = 0.0  # share that can hide behind kernels and their launches
    per_step: bool = False  # whether it runs once a step rather than once a micro-batch
    bytes: Number = 0.0  # payload of one run
    # the pass whose kernels it can hide behind; of a step, that of one micro-batch alone
    hides_behind: HidingPass = "both"
    group: Number = 1.0  # devices that take part; 1 where no link between devices is used
    stride: Number = 1.0  # ranks between neighbours of the group
    # equations recorded before it, whose latest results its numbers are
    recorded: int = field(default_factory=recorded_count, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How micro-batches run through the pipeline, forward and backward."""

    micro_batches: Number = 1.0  # micro-batches of one step on one replica
    stages: Number = 1.0  # pipeline stages
    interleave: Number = 1.0  # model chunks a stage holds
    fullest_over_mean: Number = 1.0  # layers of the fullest stage over the mean
    # first_over_mean, last_over_mean: layers of the first and of the last stage over the mean
    first_over_mean: Number = 1.0
    last_over_mean: Number = 1.0
    # seconds of a micro-batch in which a stage waits for messages of others, whatever else it does
    message_seconds: Number = 0.0
    flushes: Number = 1.0  # times the pipeline is filled and emptied for a step
    nodes: Number = 1.0  # nodes that wait for each other
    spread: Number = 0.0  # standard deviation of a node's time for a step, as a share of it

    @property
    def repeats(self) -> Number:
        """How often the kernels of a micro-batch run."""
        return self.micro_batches

    def share(self, where: PipelinePosition) -> Number:
        """Return the share of a kernel's time that falls on the mean stage: one stage has the first or last layer."""
        return 1.0 / self.stages if where in {"first", "last"} else 1.0


@dataclass(frozen=True, slots=True)
class PassSchedule:
    """How forward passes run through the stages of a model that is served."""

    passes: Number  # passes that each stage works through
    waves: Number  # passes that follow each other through all stages; the others run beside them, each on its stage
    stages: Number  # pipeline stages, over which the kernels of a pass are divided
    overlap: Number  # share of the waves that the engine overlaps
    hand_over: Number  # seconds in which the activations of one pass go from stage to stage
    kernels: Number  # kernels of a pass
    kernel_gap: Number  # seconds between two of them on the device
    host_seconds: Number = 0.0  # host time of a pass for the sequences in it
    host_overlap: Number = 0.0  # share of the device's time in which the host does that

    @property
    def repeats(self) -> Number:
        """How often the kernels of a pass run."""
        return self.passes

    def share(self, where: PipelinePosition) -> Number:  # noqa: ARG002 - all stages share all kernels of a pass
        """Return the share of a kernel's time that falls on the mean stage."""
        return 1.0 / self.stages


@dataclass(frozen=True, slots=True)
class Phase:
    """Kernels and communication that follow one schedule: an optimizer step, reading of prompts, one decode step."""

    name: Literal["step", "text and picture", "prefill", "decode", "draft", "idle"]
    operators: tuple[Operator, ...]  # kernels of a micro-batch or pass, and of the whole phase
    collectives: tuple[Collective, ...] = ()  # communication
    # how often they run, and how they divide over pipeline stages
    schedule: Schedule | PassSchedule = field(default_factory=Schedule)
    host_launch_seconds: Number = 0.0  # host time of one kernel launch
    fixed_seconds: Number = 0.0  # host time of one step or pass
    runs: Number = 1.0  # how often one iteration of the work runs the phase


@dataclass(frozen=True, slots=True)
class Loaded:
    """One replica under a load of requests, in its steady state."""

    reading: Number  # seconds in which the prompts of as many requests are read as run at once
    running: Number  # requests that are at work, the mean
    # requests that wait or are at the host; infinite where more arrive than it answers, as are the times to the first
    # token
    waiting: Number
    arriving: Number  # requests that arrive in a second, at all replicas; infinite where each follows an answer
    largest_rate: Number  # requests that all replicas answer in a second at most
    first_token: Number  # seconds to the first token
    first_token_percentile: Number  # the same at the percentile that the plan tells
    token_seconds: Number  # seconds between two output tokens of a sequence
    token_seconds_percentile: Number  # the same at that percentile
    request: Number  # seconds from a request's arrival to its last token
    # mean seconds to the first token were all that are at once sent at one moment; 0 where they arrive
    together: Number = 0.0
    follows: bool = False  # whether each request follows an answer, so that faster devices are sent more


@dataclass(frozen=True, slots=True)
class Served:
    """The requests of one batch, or of a load."""

    batch: Number  # sequences served side by side by one replica
    prompt: Number  # tokens of a prompt
    replicas: Number  # copies of the model that serve side by side
    output: Number  # tokens of an answer, the mean
    running: Number  # sequences of a decode step, the mean
    accepted: Number = 1.0  # tokens a sequence gets from one pass
    drafts: Number = 0.0  # time of the draft for one pass, in passes of the model
    waves: Number = 1.0  # the batch over what of it the cache holds at once, from 1
    loaded: Loaded | None = None  # the steady state under a load; None for a batch that starts together
    beyond: Number = 0.5  # share of the requests under a load that take longer than the percentile of the plan
    host_seconds: Number = 0.0  # host time of a request beside its passes
    requests: Number = math.inf  # of the load in all; infinite where it goes on


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the data of one iteration arrive at the devices."""

    arriving: Number  # seconds in which they arrive
    hidden: Number  # 1 where that goes on beside the work of the iteration before, else 0
    reading: Number  # seconds in which they are read
    decoding: Number  # seconds in which processor cores decode them


@dataclass(frozen=True, slots=True)
class Work:
    """Everything a family of models says about one run; time, money and power follow from it alone."""

    facts: ModelFacts  # size and work of the model
    memory: Mapping[str, Number]  # bytes inside the framework's allocator on the fullest device, by part
    host_bytes: Number  # bytes in host memory for one device
    places: Mapping[str, Number]  # bytes inside the allocator at each place that may be the peak, in words
    fragmentation: Number  # what the allocator holds beyond its peak, as a share of it
    context_bytes: Number  # driver context and communication buffers outside the allocator
    # kernels and communication of one iteration: a step, a fit, or prefill and decode of a batch
    phases: tuple[Phase, ...]
    units_per_step: Number  # tokens or samples of one iteration
    units_per_sample: Number  # tokens in one sample
    steps: Number | None  # iterations of the job, None when open
    model_flops_per_step: Number  # FLOPs of the model itself, over all devices
    peak_flops: Number  # dense peak of one device in the type used, FLOP/s
    method: str  # how the numbers are computed, for the basis
    calibration: str = ""  # which measured constants went in; empty for those of the device
    assumed: tuple[str, ...] = ()  # what was not given
    # what the ranges of its figures rest on; none where they are not asked for
    evidence: Evidence = field(default_factory=Evidence)
    warnings: tuple[Note, ...] = ()  # what to know before relying on the run
    # returns the model states that one device writes to a checkpoint, which prices alone ask for; None where they are
    # not known
    state_bytes: Callable[[], Number] | None = None
    # bytes inside the allocator on a device of the first, last and fullest pipeline stage
    stages: Mapping[str, Number] = field(default_factory=dict)
    # the same on the fullest device by moment of a step; empty where only the peak is known
    timeline: Mapping[str, Number] = field(default_factory=dict)
    served: Served | None = None  # the requests, where the work answers any
    details: Mapping[str, Number] = field(default_factory=dict)  # further figures, by result key
    # sum of the memory, where it is known without its parts; None where they are added up
    allocated: Number | None = None
    # how its data arrive; None where the plan says nothing of them, and they are there in time
    delivery: Delivery | None = None
    stranded: Number = 0.0  # bytes it holds beyond that, in blocks that it keeps for one use and cannot give to another
    yielding: Number = 0.0  # bytes inside the allocator that give way where the device has no room for them
    held_seconds: Number | None = None  # of one iteration where the plan holds its utilization; None where it does not
    share_on_host: Number = 0.0  # share of the model's FLOPs that processors of the host do
    host_holds: str = ""  # what lies there that could lie on the device, in words; empty for nothing

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The kernels of all phases."""
        return tuple(operator for phase in self.phases for operator in phase.operators)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The communication of all phases."""
        return tuple(collective for phase in self.phases for collective in phase.collectives)
