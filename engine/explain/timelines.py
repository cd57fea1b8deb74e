"""What happens when: memory over the moments of a step, and the parts of a step one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from capacity_tui.engine.estimate import Collective, Estimate, HidingPass, Part, Phase, part_label
from capacity_tui.engine.estimate.timing import PhaseTime
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass

_LEAST_HIDDEN = 1e-3
"""Of all the time of a phase; less is not told."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A size with its name."""

    name: str
    size: float


@dataclass(frozen=True, slots=True)
class MemoryTimeline:
    """Memory of the fullest device.

    Attributes:
        moments: bytes inside the allocator at the moments of a step, in their order; none where only the peak is known.
        parts: bytes at the peak, by part; what lies outside the allocator last.
        stages: bytes on the first, last and fullest pipeline stage; none without a pipeline.
        peak: where the peak lies, in words.
        capacity: bytes of the device, None where unknown.
    """

    moments: tuple[Amount, ...]
    parts: tuple[Amount, ...]
    stages: tuple[Amount, ...]
    peak: str
    capacity: float | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """One part of a phase, where nothing else runs, and what of it hides behind other parts.

    Attributes:
        start: seconds of the phase before it.
        seconds: seconds in which the phase waits for it.
        hidden: further seconds of it that run behind kernels.
        behind: the kernels they run behind, in words; empty where none hide.
    """

    name: str
    start: float
    seconds: float
    hidden: float
    behind: str


@dataclass(frozen=True, slots=True)
class PhaseTimeline:
    """The parts of a phase, one after another.

    Attributes:
        seconds: of all its runs.
    """

    name: str
    seconds: float
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class StepTimeline:
    """The phases of a step, a batch or a fit, and how long all of them take."""

    seconds: float
    phases: tuple[PhaseTimeline, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """All runs of a collective in the work of one iteration.

    Attributes:
        exposed: seconds of them that nothing hides.
    """

    collective: Collective
    runs: float
    seconds: float
    exposed: float


def sent(phase: Phase, time: PhaseTime) -> Iterator[Sent]:
    """Yield the communication of a phase as it runs in one iteration of the work."""
    share = mean(phase.schedule.share("layer"))
    for collective, exposed in zip(phase.collectives, time.exposed, strict=True):
        runs = mean(collective.count * phase.runs * (1.0 if collective.per_step else phase.schedule.repeats))
        yield Sent(collective, runs, mean(collective.seconds) * runs * share, mean(exposed * phase.runs))


def memory_timeline(estimate: Estimate) -> MemoryTimeline:
    """Return the memory of an estimate over the moments of a step."""
    memory = estimate.memory
    capacity = memory.capacity_bytes
    parts = (Amount(part_label(part), mean(size)) for part, size in memory.parts.items())
    return MemoryTimeline(
        moments=tuple(Amount(moment, mean(size)) for moment, size in memory.timeline.items()),
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
