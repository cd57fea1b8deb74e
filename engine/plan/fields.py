"""The fields of a plan with all that is known about them, for screens and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import Kind, knob_of, spec_type_of, spec_values
from capacity_tui.engine.plan.all_fields import fields_of_section
from capacity_tui.engine.plan.applying import Circumstances, HardwareFacts, circumstances, idle_reason
from capacity_tui.engine.plan.field_texts import field_text
from capacity_tui.engine.plan.names import known_words
from capacity_tui.engine.plan.plan import AUTO, Plan
from capacity_tui.engine.schema import Knob

_RUNNING = ("watch", "recovery", "recovery.battery")
_REPORTED = ("scalability", "report")
# Sections that matter for a task, in the order they are shown.
SECTIONS = {
    "train": ("model", "", "training", "data", "parallelism", "hardware", "pricing", *_RUNNING, *_REPORTED),
    "finetune": (
        "model",
        "",
        "training",
        Key.TRAINING_ADAPTER,
        "data",
        "parallelism",
        "hardware",
        "pricing",
        *_RUNNING,
        *_REPORTED,
    ),
    "infer": ("model", "", "inference", "parallelism", "hardware", "pricing", *_RUNNING, *_REPORTED),
    "fit": ("model", "", "hardware", "pricing", *_RUNNING, *_REPORTED),
}
# What a batch counts, for models that read sequences and for those that read single samples.
_SEQUENCES, _SAMPLES = "seq", "samples"


@dataclass(frozen=True, slots=True)
class PlanField:
    """One field of a plan.

    Attributes:
        path: dotted path, such as ``training.micro_batch``.
        knob: label, unit, range, step and choices.
        value: what the plan says: a value, ``auto``, or None where the default follows from other fields.
        idle: why it changes nothing in this plan; empty where it may.
        choices: a few words for each choice that has any.
    """

    path: str
    knob: Knob
    value: object
    idle: str = ""
    choices: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_auto(self) -> bool:
        """Whether the modes choose the value."""
        return self.value == AUTO


def plan_fields(
    plan: Plan,
    kind: Kind = "transformer",
    task: str | None = None,
    catalog: Catalog | None = None,
    hardware: HardwareFacts | None = None,
) -> tuple[PlanField, ...]:
    """Return the fields that apply to a plan, in the order of the plan file.

    Args:
        plan: the plan.
        kind: kind of model it names.
        task: what is done with it; the plan's own task by default, else training.
        catalog: what names in a plan stand for; default is the shipped one with the user's own.
        hardware: what is known of its hardware, beyond what the plan says.
    """
    facts = catalog or load_catalog()
    chosen = task or plan.task or "train"
    here = circumstances(plan, kind, chosen, facts, hardware)
    return tuple(_in_words(entry, facts, here) for entry in _entries(plan, kind, chosen))


def plan_values(plan: Plan, kind: Kind = "transformer") -> dict[str, object]:
    """Return the values of the fields that apply to a plan by their paths, without what is known about them."""
    return {entry.path: entry.value for entry in _entries(plan, kind, plan.task or "train")}


def _entries(plan: Plan, kind: Kind, task: str) -> Iterator[PlanField]:
    """Yield the fields that apply to a kind of model and a task: in the order of the plan file, overrides last."""
    overrides = []
    for section in SECTIONS[task]:
        for entry in (*_fields(plan, section), *(_spec_fields(plan, kind) if section == "model" else ())):
            if (
                (not entry.knob.families or kind in entry.knob.families)
                and (not entry.knob.tasks or task in entry.knob.tasks)
                and entry.knob.shown
                and not (entry.path == Key.MODEL_CONFIG and plan.model.config is None)
            ):
                if entry.path != Key.MODEL_SPEC:
                    yield entry
                elif not _has_parameters(plan, kind):
                    overrides.append(entry)
    yield from overrides


def _in_words(entry: PlanField, catalog: Catalog, here: Circumstances) -> PlanField:
    """Return a field with its help, the rows it may name, the unit of this kind of model, and why it is idle."""
    words, known = field_text(entry.path), known_words(entry.path, catalog)
    knob = replace(
        entry.knob,
        help=words.help or entry.knob.help,
        choices=tuple(known) or entry.knob.choices,
        unit=_SAMPLES if here.kind == "network" and entry.knob.unit == _SEQUENCES else entry.knob.unit,
    )
    return replace(entry, knob=knob, idle=idle_reason(entry.knob, here), choices={**known, **words.choices})


def _fields(plan: Plan, section: str) -> Iterator[PlanField]:
    holder = plan if not section else plan.value(section)
    for known in fields_of_section(section) if holder is not None else ():
        yield PlanField(known.path, known.knob, getattr(holder, known.path.rpartition(".")[2]))


def _has_parameters(plan: Plan, kind: Kind) -> bool:
    """Whether the model has parameters of its own, which are fields one by one."""
    return spec_type_of(plan.model.name, kind, plan.model.spec) is not None


def _spec_fields(plan: Plan, kind: Kind) -> Iterator[PlanField]:
    """Yield the parameters of a family that has its own: classical algorithms and networks."""
    spec_type = spec_type_of(plan.model.name, kind, plan.model.spec)
    if spec_type is None:
        return
    for name, value in spec_values(spec_type, plan.model.spec).items():
        knob = knob_of(spec_type.model_fields[name])
        if knob is not None:
            yield PlanField(f"model.spec.{name}", knob, value)
