"""What is wrong with a plan's file, and what configurations of other tools will do: fits, contradictions, waste."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, Document, Plain, load_catalog
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.estimate import Answer, Estimate, estimate_resolved, resolve_plan
from capacity_tui.engine.explain import memory_timeline
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import nearest_models
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import MOST_FAULTS, Plan
from capacity_tui.engine.plan.files import PlanSource, place_in_document
from capacity_tui.engine.plan.imports import Imported
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.advice.advice import planned, recommended
from capacity_tui.engine.solve.advice.remedies import remedies
from capacity_tui.engine.solve.advice.warnings import ignored
from capacity_tui.engine.solve.answers import answer
from capacity_tui.engine.solve.candidate import EstimatedPlan
from capacity_tui.engine.solve.modes.modes import with_placeholders
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
    "gpu_layers": "Layers or experts left on the CPU",
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
    of_epochs = f"{Key.TRAINING_EPOCHS} "  # of data that the files only name, which is no contradiction
    impossible = (
        Finding(note.code, note.title, note.detail)
        for note in answered.estimate.warnings
        if note.code in _CONTRADICTIONS and not note.title.startswith(of_epochs)
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
    offers = planned(case, (remedy for remedy in remedies(case) if remedy.code in _WASTE))
    for offer in recommended(case, offers):
        note = offer.note
        yield Finding(offer.code, _WASTE[offer.code], f"{note.title}: {note.detail}", (), offer.saves)


def _idle_memory(case: EstimatedPlan) -> Iterator[Finding]:
    memory = case.estimate.memory
    if memory.capacity_bytes is None or case.plan.is_inference:
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


# What stands in for a model where the one that is named cannot be used.
_ANY_MODEL = "transformer_decoder"
_MODEL = (["model"], ["model", "name"], ["model", "config"])
_HARDWARE = (["hardware"], ["hardware", "name"])


def faults(source: PlanSource, catalog: Catalog, machine: Callable[[Plan], Machine | None]) -> list[CapacityError]:
    """Return what is wrong with a plan, at most ``MOST_FAULTS`` entries in reading order; none where it can run.

    Faults that others hide are found with those taken out of the file.
    """
    reported: dict[str, CapacityError] = {}
    left = source.document
    while len(reported) < MOST_FAULTS:
        named = {fault.one_line(): fault for fault in _first_faults(PlanSource(left, source.folder), catalog, machine)}
        new = [line for line in named if line not in reported][: MOST_FAULTS - len(reported)]
        sound = left.data
        for line in new:
            reported[line] = named[line]
            without = _without(sound, (named[line].place.field or "").split("."), catalog)
            sound = sound if without is None else without
        if sound is left.data:
            break
        left = Document(sound, left.file, left.lines)
    return sorted(reported.values(), key=lambda fault: fault.place.line or 0)


def remarks(
    source: PlanSource, catalog: Catalog, machine: Callable[[Plan], Machine | None]
) -> Iterator[tuple[Place, str]]:
    """Yield where a sound plan sets a field in vain, and why."""
    plan = source.plan()
    resolved = resolve_plan(with_placeholders(plan, catalog), catalog, machine(plan))
    for path, reason in ignored(resolved, plan, catalog):
        yield place_in_document(source.document, path), reason


def check(plan: Plan, catalog: Catalog, machine: Machine | None) -> None:
    """Estimate a plan, whatever the modes would choose for its open fields."""
    estimate_resolved(resolve_plan(with_placeholders(plan, catalog), catalog, machine), catalog)


def _first_faults(
    source: PlanSource, catalog: Catalog, machine: Callable[[Plan], Machine | None]
) -> tuple[CapacityError, ...]:
    """Return the faults that show at once: those of all fields, or the first of those fields that go together."""
    try:
        plan = source.plan()
        check(plan, catalog, machine(plan))
        for name, scenario in plan.scenarios.items():
            _check_scenario(name, scenario, catalog, machine)
    except PlanError as error:
        return tuple(map(source.placed, (error, *error.further)))
    except CapacityError as error:
        return (source.placed(error),)
    return ()


def _check_scenario(name: str, plan: Plan, catalog: Catalog, machine: Callable[[Plan], Machine | None]) -> None:
    """Estimate a plan that stands beside another; what is wrong with it names it."""
    try:
        check(plan, catalog, machine(plan))
    except CapacityError as error:
        field = ".".join(part for part in (Key.SCENARIOS, name, error.place.field) if part)
        error.place = replace(error.place, field=field)
        raise


def _without(data: Plain, path: list[str], catalog: Catalog) -> Plain:
    """Return the data without the value at a path; None where it holds none.

    What a plan cannot do without is replaced by something sound.
    """
    if path[0] == Key.SCENARIOS:
        # The others are looked at without it: what it lacks then would be told of a plan nobody wrote.
        return _removed(data, path[:2])
    if isinstance(data, dict) and path in _MODEL:
        return {**data, "model": _sound_model(data.get("model"), catalog)}
    if isinstance(data, dict) and path in _HARDWARE:
        hardware = data.get("hardware")
        others = hardware if isinstance(hardware, dict) else {}
        return {**data, "hardware": {**others, "name": next(iter(catalog.accelerators))}}
    return _removed(data, path)


def _sound_model(model: Plain, catalog: Catalog) -> Plain:
    """Return a model section with a model that there is: the one most like the name, so that the rest is judged too."""
    if not isinstance(model, dict):
        return {"name": _ANY_MODEL}
    near = next(iter(nearest_models(str(model.get("name", "")), catalog)), None)
    left = {key: value for key, value in model.items() if key not in ("name", "config", "spec")}
    spec = {"spec": model["spec"]} if near and "spec" in model else {}
    return {"name": near or _ANY_MODEL, **left, **spec}


def _removed(data: Plain, path: list[str]) -> Plain:
    """Return the data without what stands at a path, a list as a whole; None where nothing stands there."""
    key, *rest = path
    if not isinstance(data, dict) or key not in data:
        return None
    others = {name: value for name, value in data.items() if name != key}
    below = data[key]
    if not rest or not isinstance(below, dict):
        return others
    inner = _removed(below, rest)
    return None if inner is None else {**data, key: inner}
