"""What an estimate says: frozen results with intervals, in the names scripts rely on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from capacity_tui.engine.cluster import DeviceKind, Level
from capacity_tui.engine.estimate.derivation import Record
from capacity_tui.engine.estimate.memory_estimate import Constraint, MemoryEstimate, in_words, verdicts
from capacity_tui.engine.estimate.ranges import Ranges
from capacity_tui.engine.estimate.timing.reliability import ReliabilityEstimate
from capacity_tui.engine.estimate.timing.schedule import PhaseTime
from capacity_tui.engine.estimate.work import ModelFacts, Note, Work
from capacity_tui.engine.machine import Quantity
from capacity_tui.engine.numeric import Labels, Number
from capacity_tui.engine.plan import Assumption
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval, Range
from capacity_tui.engine.units import format_percent
from capacity_tui.engine.verdict import Holds, Verdict

ShareOf = Literal["memory", "power"]
_NAMES: dict[ShareOf, str] = {"memory": "the memory", "power": "the power limit"}


@dataclass(frozen=True, slots=True)
class UsedShare:
    """The share of one figure that a run uses, beside what a mode allows."""

    figure: ShareOf  # memory of a device, or its power limit
    used: float  # the run's share of it, as estimated
    allowed: float  # the mode's
    why: str = ""  # why the run does not stay inside; empty where it does

    @property
    def text(self) -> str:
        """Used of what is allowed, in little room; of power, which no mode holds a run to, what is used."""
        allowed = f" of {100 * self.allowed:.0f}" if self.figure == "memory" else ""
        return f"{100 * self.used:.0f}{allowed} %"

    @property
    def words(self) -> str:
        """Used and allowed in words, and why more is used than is allowed where it is."""
        used = f"{format_percent(self.used)} of {_NAMES[self.figure]}, the mode allows {format_percent(self.allowed)}"
        return f"{used}: {self.why}" if self.why else used


@dataclass(frozen=True, slots=True)
class FilledBy:
    """A mode, and what the run uses of its shares."""

    name: str  # the mode's name
    line: str
    shares: tuple[UsedShare, ...] = ()  # used and allowed of memory and power, as far as they are known
    reserve: str = ""  # what it keeps free beside the estimate
    outside: tuple[str, ...] = ()  # what the run has outside of the mode's ranges, and why


Iteration = Literal["step", "batch", "fit"]
BottleneckKind = Literal["compute", "memory_bandwidth", "network", "capacity", "input", "overhead", "optimizer"]


@dataclass(frozen=True, slots=True)
class InferenceSpeed:
    """Speeds of serving, per model replica."""

    prefill_tokens_per_second: Interval  # prompt tokens of the whole batch a second
    # output tokens of the whole batch a second; None for models that generate none
    decode_tokens_per_second: Interval | None
    time_to_first_token_seconds: Interval  # from the batch's arrival to its first token
    time_per_output_token_seconds: Interval | None  # between two output tokens of one sequence; None likewise
    requests_per_second: Interval  # requests answered a second, over all replicas
    # their output tokens a second, prompts read meanwhile; None for models without
    output_tokens_per_second: Interval | None = None
    # from a request's arrival to its last token, under a load; None without one
    request_seconds: Interval | None = None
    # time to first token at the plan's percentile, likewise
    time_to_first_token_percentile_seconds: Interval | None = None
    # time between two tokens at that percentile, likewise
    time_per_output_token_percentile_seconds: Interval | None = None
    largest_requests_per_second: Interval | None = None  # requests that could be answered a second, likewise
    running_requests: Number | None = None  # requests that run at once, over all replicas, likewise
    waiting_requests: Number | None = None  # requests that wait, likewise
    percentile: Number | None = None  # of the figures that are at one, likewise
    # until the last request of a load that ends is answered; None for one that goes on
    all_requests_seconds: Interval | None = None


@dataclass(frozen=True, slots=True)
class ComputationEstimate:
    """Time of a step and of the whole job."""

    step_seconds: Interval  # one optimizer step (training), one batch (inference) or one fit
    parts: Mapping[str, Number]  # exposed seconds by part; they sum to ``step_seconds``
    units_per_step: Number  # tokens or samples one step works through
    steps: Number | None  # steps of the whole job, None when its length is open
    devices: Number  # how many devices share the work
    model_flops_per_step: Number  # model FLOPs of a step, no recomputation
    mfu: Number | None  # model FLOPs over dense peak, None where the peak is unknown
    phases: tuple[PhaseTime, ...] = ()  # the phases of the work, each with its own time
    infer: InferenceSpeed | None = None  # speeds of serving
    unit: Literal["token", "sample"] = "token"  # what is counted
    units_per_sample: Number = 1.0  # tokens in one sample
    iteration: Iteration = "step"  # what ``step_seconds`` times: an optimizer step, a batch or a fit
    device_kind: DeviceKind = "gpu"  # what shares the work


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Which resource limits."""

    # compute, memory_bandwidth, network, capacity, input, optimizer, or overhead: the host that launches kernels
    kinds: Labels[BottleneckKind]
    arithmetic_intensity: Number  # FLOPs per byte of device memory traffic
    ridge_point: Number  # FLOPs per byte above which the device is compute-bound
    parts: Mapping[str, Number] = field(default_factory=dict)  # exposed seconds of a step by part
    memory_bound: Number = 0.0  # share of the kernels' time that memory traffic bounds

    @property
    def kind(self) -> BottleneckKind:
        """What limits a single plan."""
        return self.kinds.single


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Money for the job, the way the plan runs it: on demand, or on spot capacity."""

    usd: Number | None  # price of the job; None where no price is known or the job's length is open
    usd_per_million_tokens: Number | None  # price of a million tokens or samples
    # the job on spot capacity, checkpoints and interruptions included, whichever way the plan runs it
    usd_spot: Number | None
    usd_per_hour: Number | None  # price of all devices for an hour
    source: str  # where the price comes from, with region and date
    # interval, spot_interval: the ranges of ``usd`` and ``usd_spot``
    interval: Interval | None = None
    spot_interval: Interval | None = None
    why_no_spot: str = ""  # why it would not get on there, and has no price; empty where it would


@dataclass(frozen=True, slots=True)
class EnergyEstimate:
    """Electricity of the whole job."""

    kwh: Number | None  # energy of all devices, None when the job's length is open
    watts_average: Number | None  # mean power of all devices while running
    usd: Number | None  # its price
    # energy with that of the machines around them, of the network, and of cooling and supply
    kwh_system: Number | None = None
    # kwh_host, kwh_network, kwh_cooling: those parts of it
    kwh_host: Number | None = None
    kwh_network: Number | None = None
    kwh_cooling: Number | None = None
    carbon_kg: Number | None = None  # what that emits, kg of CO2 equivalent
    grams_per_kwh: Number | None = None  # what a kilowatt-hour of its grid emits
    grid: str = ""  # which grid that is, of which year, and who says so


@dataclass(frozen=True, slots=True)
class Scaling:
    """One point of the scalability analysis."""

    devices: int
    batch: int  # samples of one step over all devices
    step_seconds: float  # time of a step
    speedup: float  # throughput over that of one device where devices are used best
    efficiency: float  # speed-up over devices; 1 where devices are used best, mostly at the fewest
    communication_share: float  # share of the step that waits for other devices
    parallelism: Literal["data", "model"] = "data"  # how the devices share the work: ``data`` or ``model``
    fits: bool | None = None  # whether the run fits into them
    limited_by: BottleneckKind = "compute"  # which resource limits there
    # ``strong`` where the batch is the same for all counts, ``weak`` where it is for each device
    growth: Literal["strong", "weak"] = "strong"
    job_seconds: float | None = None  # time of the whole job; None where its length is open
    usd: float | None = None  # its price; None where that is not known
    # what each hour costs that it ends earlier than on the next fewer devices; None where it does not end earlier
    usd_per_hour_saved: float | None = None
    price_source: str = ""  # whose price it is, with its date


@dataclass(frozen=True, slots=True)
class Basis:
    """Where the numbers come from."""

    method: str  # how they were computed
    calibration: str  # which constants, with their source
    catalogue_date: str  # when the hardware row was last checked
    assumed: tuple[str, ...] = ()  # what was not given and had to be assumed
    # the figures of the hardware that went in, by field, each with how it came about
    hardware: Mapping[str, Quantity] = field(default_factory=dict)
    devices: str = ""  # the devices, and the instances that are rented for them
    # why each field that the plan left open got its value, by its path
    chosen: Mapping[str, str] = field(default_factory=dict)
    # likewise of fields that no estimate depends on, about the run while it goes on
    running: Mapping[str, str] = field(default_factory=dict)
    filled_by: FilledBy | None = None  # the mode that chose them; None where the plan leaves nothing open
    levels: tuple[Level, ...] = ()  # what joins the devices, from the innermost out
    ranges: tuple[str, ...] = ()  # what the ranges of time and memory rest on, and what widens them


@dataclass(frozen=True, slots=True)
class Estimate(ShownInNotebooks):
    """The answer for one plan, or for several where the plan's fields were arrays.

    Numbers, and words such as verdict, bottleneck and peak, then have the shape to which those fields broadcast. Texts,
    and the properties that hold one word, are those of a single plan.

    Attributes:
        work: what all of it was computed from: kernels, communication and memory.
        ranges: of measured over estimated, by figure; None where nothing is known of them.
        limits: constraints beside those of memory: what the plan, its load or a question asks of its figures.
        reliability: what failures make of a training; None where nothing is trained, or its length is open.
        assumed: what the plan does not say, the most important first.
        derivations: the equations as they were evaluated; None unless they were asked for.
        details: further figures of this kind of run, by result key.
    """

    work: Work
    memory: MemoryEstimate
    computation: ComputationEstimate
    bottleneck: Bottleneck
    cost: CostEstimate
    energy: EnergyEstimate
    basis: Basis
    recommendations: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    scalability: tuple[Scaling, ...] = ()
    details: Mapping[str, Number] = field(default_factory=dict)
    derivations: Record | None = None
    ranges: Ranges | None = None
    limits: tuple[Constraint, ...] = ()
    reliability: ReliabilityEstimate | None = None
    assumed: tuple[Assumption, ...] = ()

    def range_of(self, key: str) -> Range:
        """Return the ratios of measured to estimated behind the figure of a result key; 1 where nothing is known."""
        return Range(1.0, 1.0) if self.ranges is None else self.ranges.of(key)

    @property
    def model(self) -> ModelFacts:
        """Size and work of the model."""
        return self.work.facts

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Everything that the run must keep: memory of devices and host, and its limits."""
        return (*self.memory.constraints, *self.limits)

    @property
    def verdicts(self) -> Labels[Verdict]:
        """What its constraints come to, plan by plan."""
        return verdicts(self.constraints, self.memory.capacity_bytes is not None)

    @property
    def verdict(self) -> Verdict:
        """The verdict of a single plan."""
        return self.verdicts.single

    @property
    def fits(self) -> bool | None:
        """Whether a single plan keeps every constraint by its estimate; None where a device's memory is unknown."""
        return self.verdict.holds

    @property
    def broken(self) -> tuple[Constraint, ...]:
        """The constraints that a single plan does not keep, the gravest first."""
        broken = (constraint for constraint in self.constraints if constraint.holds is Holds.NO)
        return tuple(sorted(broken, key=lambda constraint: -constraint.broken_as.gravity))

    @property
    def missed(self) -> tuple[Constraint, ...]:
        """The limits that a single plan does not keep, its memory aside."""
        return tuple(constraint for constraint in self.limits if constraint.holds is Holds.NO)

    @property
    def shortage(self) -> str:
        """What memory is too small for a single plan, in words; empty where it fits."""
        return in_words([c for c in self.constraints if c.broken_as is Verdict.DOES_NOT_FIT], Holds.NO)

    @property
    def reason(self) -> str:
        """The constraints that decide the verdict on a single plan, in words; empty where all of them hold surely."""
        gravest = [constraint for constraint in self.broken if constraint.broken_as is self.verdict]
        return in_words(gravest, Holds.NO) if gravest else in_words(self.constraints, Holds.LIKELY)

    @property
    def verdict_text(self) -> str:
        """The verdict on a single plan in words, with what makes it fit and costs something, and what it rests on."""
        verdict, in_host = self.verdict, self.memory.in_host
        words = f"{verdict.words} {in_host}" if in_host and verdict.holds is not False else verdict.words
        return f"{words}: {self.reason}" if self.reason else words
