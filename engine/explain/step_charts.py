"""What charts of a step draw: memory over its phases, its parts in their order, and its kernels below the roofline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from capacity_tui.engine.estimate import Answer, Collective, Estimate, HidingPass, Part, Phase, part_label
from capacity_tui.engine.estimate.timing import PhaseTime, operator_seconds
from capacity_tui.engine.numeric import largest, mean
from capacity_tui.engine.record import dataclass

_LEAST_HIDDEN = 1e-3  # Of all the time of a phase; less is not shown
# Kernels that take the most time are shown; more would not be told apart.
MOST_POINTS = 10
LEAST_SHARE = 0.001
_PASSES = (", backward", ", input gradient", ", weight gradient")


@dataclass(frozen=True, slots=True)
class Amount:
    """A size with its name."""

    name: str
    size: float


@dataclass(frozen=True, slots=True)
class MemoryTimeline:
    """Memory of the fullest device."""

    # bytes inside the allocator in the phases of a step, in their order; none where only the peak is known
    phases: tuple[Amount, ...]
    parts: tuple[Amount, ...]  # bytes at the peak, by part; what lies outside the allocator last
    stages: tuple[Amount, ...]  # bytes on the first, last and fullest pipeline stage; none without a pipeline
    peak: str  # where the peak lies, in words
    capacity: float | None  # bytes of the device, None where unknown


@dataclass(frozen=True, slots=True)
class Stretch:
    """One part of a phase, where nothing else runs, and what of it hides behind other parts."""

    name: str
    start: float  # seconds of the phase before it
    seconds: float  # seconds in which the phase waits for it
    hidden: float  # further seconds of it that run behind kernels
    behind: str  # the kernels they run behind, in words; empty where none hide


@dataclass(frozen=True, slots=True)
class PhaseTimeline:
    """The parts of a phase, one after another."""

    name: str
    seconds: float  # of all its runs
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class StepTimeline:
    """The phases of a step, a batch or a fit, and how long all of them take."""

    seconds: float
    phases: tuple[PhaseTimeline, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """All runs of a collective in the work of one iteration."""

    collective: Collective
    runs: float
    seconds: float
    exposed: float  # seconds of them that nothing hides


def sent(phase: Phase, time: PhaseTime) -> Iterator[Sent]:
    """Yield the communication of a phase as it runs in one iteration of the work."""
    share = mean(phase.schedule.share("layer"))
    for collective, exposed in zip(phase.collectives, time.exposed, strict=True):
        runs = mean(collective.count * phase.runs * (1.0 if collective.per_step else phase.schedule.repeats))
        yield Sent(collective, runs, mean(collective.seconds) * runs * share, mean(exposed * phase.runs))


def memory_timeline(estimate: Estimate) -> MemoryTimeline:
    """Return the memory of an estimate over the phases of a step."""
    memory = estimate.memory
    capacity = memory.capacity_bytes
    parts = (Amount(part_label(part), mean(size)) for part, size in memory.parts.items())
    return MemoryTimeline(
        phases=tuple(Amount(phase, mean(size)) for phase, size in memory.timeline.items()),
        parts=tuple(part for part in parts if part.size > 0),
        stages=tuple(Amount(name, mean(stage.per_device_bytes)) for name, stage in memory.stages.items()),
        peak=memory.peak,
        capacity=None if capacity is None else mean(capacity),
    )


def step_timeline(estimate: Estimate) -> StepTimeline:
    """Return the parts of an estimate's step one after another, with what hides behind them."""
    computation = estimate.computation
    pairs = zip(estimate.work.phases, computation.phases, strict=True)
    phases = tuple(_phase(phase, time) for phase, time in pairs)
    return StepTimeline(mean(computation.step_seconds.value), tuple(phase for phase in phases if phase.seconds > 0))


def _phase(phase: Phase, time: PhaseTime) -> PhaseTimeline:
    parts = {part: mean(seconds * phase.runs) for part, seconds in time.parts.items()}
    whole = sum(parts.values())
    hidden = {part: seconds for part, seconds in _hidden(phase, time).items() if seconds[0] >= _LEAST_HIDDEN * whole}
    return PhaseTimeline(phase.name, whole, tuple(_stretches(parts, hidden)))


def _hidden(phase: Phase, time: PhaseTime) -> Mapping[str, tuple[float, str]]:
    """Return the seconds of communication that hide, by part, and the passes they hide behind."""
    by_part: dict[str, tuple[float, set[HidingPass]]] = {}
    for sending in sent(phase, time):
        seconds, passes = by_part.get(sending.collective.part, (0.0, set()))
        by_part[sending.collective.part] = (
            seconds + sending.seconds - sending.exposed,
            {*passes, sending.collective.hides_behind},
        )
    return {part: (seconds, _behind(passes)) for part, (seconds, passes) in by_part.items()}


def _behind(passes: set[HidingPass]) -> str:
    [first, *others] = sorted(passes)
    return "kernels" if others or first == "both" else f"{first} kernels"


def _stretches(parts: Mapping[str, float], hidden: Mapping[str, tuple[float, str]]) -> Iterator[Stretch]:
    """Yield the parts in the order in which a step comes to them."""
    start = 0.0
    for part in get_args(Part):
        seconds, (behind_seconds, behind) = parts.get(part, 0.0), hidden.get(part, (0.0, ""))
        if seconds > 0 or behind_seconds > 0:
            yield Stretch(part_label(part), start, seconds, behind_seconds, behind)
            start += seconds


@dataclass(frozen=True, slots=True)
class Point:
    """One kind of kernel."""

    name: str
    intensity: float  # FLOPs for each byte of device memory traffic
    flops_per_second: float  # what it reaches on one device
    share: float  # of the time all kernels take
    bound: Literal["compute", "memory"]  # what limits it


@dataclass(frozen=True, slots=True)
class Roofline:
    """The limits of one device, and where a run and its kernels lie below them."""

    device: str
    peak: float  # dense peak of the type used, FLOP/s
    bandwidth: float  # memory bandwidth, B/s
    intensity: float  # FLOPs a byte of the whole run
    flops_per_second: float  # model FLOPs a second the run reaches on one device
    points: tuple[Point, ...]  # kernels, the longest first

    @property
    def ridge(self) -> float:
        """FLOPs a byte from which on arithmetic limits (Williams et al. 2009)."""
        return self.peak / self.bandwidth

    def roof(self, intensity: float) -> float:
        """FLOP/s the device can reach at an intensity."""
        return min(self.peak, intensity * self.bandwidth)


def roofline(answer: Answer) -> Roofline | None:
    """Return the roofline of an answered plan, from the work its estimate kept; None where it moves no memory."""
    device, estimate = answer.resolved.cluster.device, answer.estimate
    computation, bottleneck = estimate.computation, estimate.bottleneck
    intensity, ridge = largest(bottleneck.arithmetic_intensity), largest(bottleneck.ridge_point)
    bandwidth = largest(device.bandwidth)
    if intensity <= 0 or ridge <= 0:
        return None
    reached = computation.model_flops_per_step / computation.step_seconds.value / computation.devices
    points = sorted(_points(estimate.work.phases), key=lambda point: -point.share)
    return Roofline(device.name, ridge * bandwidth, bandwidth, intensity, largest(reached), tuple(points[:MOST_POINTS]))


def _points(phases: tuple[Phase, ...]) -> Iterator[Point]:
    """Yield one point a kind of kernel: forward, backward and recomputation of a product together."""
    kinds: dict[str, list[tuple[float, float, float, float]]] = {}
    for phase in phases:
        ending = "" if len(phases) == 1 else f", {phase.name}"
        for operator in phase.operators:
            repeats = 1.0 if operator.where == "step" else phase.schedule.repeats
            runs = largest(operator.count * repeats * phase.runs)
            sums = (operator.flops, operator.bytes, operator_seconds(operator), operator.flops / operator.rate)
            flops, traffic, seconds, arithmetic = (largest(summed) * runs for summed in sums)
            kinds.setdefault(_kind(operator.name) + ending, []).append((flops, traffic, seconds, arithmetic))
    total = sum(summed[2] for members in kinds.values() for summed in members)
    for name, members in kinds.items():
        flops, traffic, seconds, arithmetic = (sum(column) for column in zip(*members, strict=True))
        if min(flops, traffic) > 0 and seconds >= LEAST_SHARE * total:
            # Arithmetic that takes half the time and more is what limits.
            bound: Literal["compute", "memory"] = "compute" if arithmetic >= 0.5 * seconds else "memory"
            yield Point(name, flops / traffic, flops / seconds, seconds / total, bound)


def _kind(name: str) -> str:
    """Return what a kernel computes, whichever pass it belongs to."""
    for ending in _PASSES:
        name = name.removesuffix(ending)
    return name
