"""What configurations of other tools will do: whether it fits, what contradicts itself, what is wasted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.engine.estimate import Answer, Estimate
from capacity_tui.engine.explain import memory_timeline
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.imports import Imported
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.advice.advice import planned, recommended
from capacity_tui.engine.solve.advice.remedies import remedies
from capacity_tui.engine.solve.answers import answer
from capacity_tui.engine.solve.candidate import EstimatedPlan
from capacity_tui.engine.units import format_bytes, format_percent

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

LEAST_IDLE_MEMORY = 0.25  # Share of a device's memory that no run like it needs, from which on it is worth a word

LEAST_BUBBLE = 0.05  # Share of a step that stages wait for each other, likewise

_CONTRADICTIONS = frozenset(
    {
        "beyond_context",
        "global_batch_not_divisible",
        "precision_not_native",
        "no_kernels",
        "attention_kernel",
        "ignored",
    }
)
"""Warnings that say a configuration asks for what cannot be."""

_WASTE: Mapping[str, str] = {
    "less_checkpointing": "Unnecessary recomputation",
    "no_offload": "Unnecessary offload",
    "mixed_precision": "Higher precision than needed",
    "less_sharding": "Unnecessary sharding",
    "micro_batch": "Micro-batches smaller than memory allows",
    "fused_attention": "Unfused attention",
    "batch": "Fewer requests at once than memory allows",
    "gpu_layers": "Layers left on the CPU",
}
"""What remedies of these kinds do away with."""

_IDLE_DEVICES = "idle_devices"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a configuration, or wasted by it."""

    code: str
    title: str
    detail: str  # the settings or figures that show it
    places: tuple[Place, ...] = ()
    saves: Mapping[str, float] = field(default_factory=dict, hash=False)  # what a remedy would change, by result key


@dataclass(frozen=True, slots=True)
class MemoryPhase:
    """Memory of the fullest device at a moment of a step."""

    name: str
    size: float  # bytes in use, what lies outside the allocator with them
    short: float  # bytes that the device lacks then; 0 where it does not


@dataclass(frozen=True, slots=True)
class Audit:
    """What configurations come to."""

    imported: Imported  # the plan that they say, with the place of each value
    answer: Answer | None  # its estimate; None where it cannot run at all, and where no file names a model
    refusal: CapacityError | None
    memory_phases: tuple[MemoryPhase, ...]
    contradictions: tuple[Finding, ...]  # what contradicts itself
    wasted: tuple[Finding, ...]  # what costs without need

    @property
    def runs(self) -> bool:
        """Whether it can run, fits, and keeps the limits that it sets; so far as files without a model say."""
        if self.imported.is_fragment:
            return not self.contradictions
        return self.answer is not None and self.answer.estimate.fits is not False


def audit(imported: Imported, machine: Machine | None = None, catalog: Catalog | None = None) -> Audit:
    """Return what configurations will do."""
    facts = catalog or load_catalog()
    clashes = tuple(Finding(clash.rule, clash.title, clash.detail, clash.places) for clash in imported.clashes)
    contradicting = tuple(finding for finding in clashes if finding.code != _IDLE_DEVICES)
    idle = tuple(finding for finding in clashes if finding.code == _IDLE_DEVICES)
    if imported.is_fragment:
        return Audit(imported, None, None, (), contradicting, idle)
    try:
        answered = answer(imported.plan, machine, facts)
    except CapacityError as error:
        return Audit(imported, None, error, (), (*contradicting, *_refusals(imported, error)), idle)
    case = EstimatedPlan(imported.plan, answered.resolved, answered.estimate, facts, machine)
    impossible = (
        Finding(note.code, note.title, note.detail)
        for note in answered.estimate.warnings
        if note.code in _CONTRADICTIONS
    )
    wasted = (*idle, *_wasted(case)) if answered.estimate.fits is not False else idle
    return Audit(imported, answered, None, memory_phases(answered.estimate), (*contradicting, *impossible), wasted)


def memory_phases(estimate: Estimate) -> tuple[MemoryPhase, ...]:
    """Return the memory over a step, and how much of it a device lacks."""
    memory = estimate.memory
    timeline = memory_timeline(estimate)
    outside = mean(memory.reserved_bytes.value) - mean(memory.per_device_bytes.value)
    capacity = timeline.capacity
    return tuple(
        MemoryPhase(
            phase.name, phase.size + outside, max(0.0, phase.size + outside - capacity) if capacity is not None else 0.0
        )
        for phase in timeline.phases
    )


def _refusals(imported: Imported, error: CapacityError) -> Iterator[Finding]:
    """Yield why a plan cannot be laid out, with the options that say so."""
    for fault in (error, *getattr(error, "further", ())):
        setting = imported.settings.get(fault.place.field or "")
        detail = "; ".join(part for part in (fault.detail, setting.words if setting else "", fault.hint) if part)
        yield Finding("cannot_run", fault.title, detail, (setting.place,) if setting else ())


def _wasted(case: EstimatedPlan) -> Iterator[Finding]:
    """Yield what costs memory, time or money without need, by the figures of what would be without it."""
    yield from _idle_memory(case)
    yield from _bubble(case)
    tried = planned(case, (remedy for remedy in remedies(case) if remedy.code in _WASTE))
    for offer in recommended(case, tried):
        note = offer.note
        yield Finding(offer.code, _WASTE[offer.code], f"{note.title}: {note.detail}", (), offer.saves)


def _idle_memory(case: EstimatedPlan) -> Iterator[Finding]:
    memory = case.estimate.memory
    if memory.capacity_bytes is None or case.plan.task == "infer":
        return
    capacity, most = mean(memory.capacity_bytes), mean(memory.reserved_bytes.high)
    share = 1.0 - most / capacity
    if share >= LEAST_IDLE_MEMORY:
        detail = (
            f"{format_bytes(capacity - most)} of {format_bytes(capacity)} a device stay free ({format_percent(share)})"
        )
        yield Finding("idle_memory", "Unused memory", detail)


def _bubble(case: EstimatedPlan) -> Iterator[Finding]:
    computation = case.estimate.computation
    share = mean(computation.parts.get("pipeline_bubble", 0.0)) / mean(computation.step_seconds.value)
    if share >= LEAST_BUBBLE:
        detail = f"{format_percent(share)} of a step; more micro-batches, or a larger interleave, fill it"
        yield Finding("bubble", "Pipeline bubble: stages wait for each other", detail)
