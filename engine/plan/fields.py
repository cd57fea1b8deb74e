"""The fields of a plan with all that is known about them, for screens and messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import lru_cache

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import Kind, knob_of, spec_type_of, spec_values
from capacity_tui.engine.models.transformer import TransformerShape, shape_from_spec, shape_of
from capacity_tui.engine.plan.field_table import all_fields, condition_text, field_text, fields_of_section
from capacity_tui.engine.plan.names import known_words, software_id
from capacity_tui.engine.plan.plan import DETECTED, Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO, Knob

_ALWAYS = ("hardware", "pricing", "limits", "watch", "recovery", "recovery.battery", "scalability", "report")
# Sections that matter for a task, in the order they are shown.
SECTIONS = {
    "train": ("model", "", "training", "data", "parallelism", *_ALWAYS),
    "finetune": ("model", "", "training", Key.TRAINING_ADAPTER, "data", "parallelism", *_ALWAYS),
    "infer": ("model", "", "inference", "parallelism", *_ALWAYS),
    "fit": ("model", "", *_ALWAYS),
}

# What a batch counts, for models that read sequences and for those that read single samples.
_SEQUENCES, _SAMPLES = "seq", "samples"


@dataclass(frozen=True, slots=True)
class PlanField:
    """One field of a plan."""

    path: str  # dotted path, such as ``training.micro_batch``
    knob: Knob  # label, unit, range, step and choices
    value: object  # what the plan says: a value, ``auto``, or None where the default follows from other fields
    idle: str = ""  # why it changes nothing in this plan; empty where it may
    choices: Mapping[str, str] = field(default_factory=dict, hash=False)  # a few words for each choice that has any

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
        task: what is done with it; the plan's own task by default, else training.
        catalog: what names in a plan stand for; default is the shipped one with the user's own.
        hardware: what is known of its hardware, beyond what the plan says.
    """
    facts = catalog or load_catalog()
    chosen = task or plan.task or "train"
    context = field_context(plan, kind, chosen, facts, hardware)
    return tuple(_in_words(entry, facts, context) for entry in _entries(plan, kind, chosen))


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
                elif spec_type_of(plan.model.name, kind, plan.model.spec) is None:
                    overrides.append(entry)
    yield from overrides


def _in_words(entry: PlanField, catalog: Catalog, context: FieldContext) -> PlanField:
    """Return a field with its help, the rows it may name, the unit of this kind of model, and why it is idle."""
    knob, choices = _knob_in_words(entry.path, entry.knob, catalog, context.kind == "network")
    is_fixed = context.fixed_length and _ANY_LENGTH in entry.knob.needs
    value = context.fixed_length if is_fixed else entry.value
    return PlanField(entry.path, knob, value, idle_reason(entry.knob, context), choices)


@lru_cache(maxsize=1024)
def _knob_in_words(path: str, knob: Knob, catalog: Catalog, of_samples: bool) -> tuple[Knob, Mapping[str, str]]:
    """Return a knob with its help, the rows it may name and its unit, and a few words for each choice, kept."""
    words, known = field_text(path), known_words(path, catalog)
    in_words = replace(
        knob,
        help=words.help or knob.help,
        choices=tuple(known) or knob.choices,
        unit=_SAMPLES if of_samples and knob.unit == _SEQUENCES else knob.unit,
    )
    return in_words, {**known, **words.choices}


def _fields(plan: Plan, section: str) -> Iterator[PlanField]:
    holder = plan if not section else plan.value(section)
    for known in fields_of_section(section) if holder is not None else ():
        yield PlanField(known.path, known.knob, getattr(holder, known.path.rpartition(".")[2]))


def _spec_fields(plan: Plan, kind: Kind) -> Iterator[PlanField]:
    """Yield the parameters of a family that has its own: classical algorithms and networks."""
    spec_type = spec_type_of(plan.model.name, kind, plan.model.spec)
    if spec_type is None:
        return
    for name, value in spec_values(spec_type, plan.model.spec).items():
        knob = knob_of(spec_type.model_fields[name])
        if knob is not None:
            yield PlanField(f"{Key.MODEL_SPEC}.{name}", knob, value)


PERCEPTRON = "mlp"
_ANY_LENGTH = "any length"
TREES = ("decision_tree", "random_forest", "xgboost_like")


@dataclass(frozen=True, slots=True)
class HardwareFacts:
    """What is known of a plan's hardware; None for what is not."""

    devices: int | None = None
    per_node: int | None = None  # devices of one node
    on_processor: bool | None = None  # whether it runs on processors alone
    has_own_memory: bool | None = None  # whether its devices have memory beside the host's
    has_price: bool | None = None  # whether it is known what the hardware costs
    has_spot_price: bool | None = None  # whether a spot price is known for it
    has_committed_price: bool | None = None  # whether a price for a commitment of years is known, and asked for
    has_regional_prices: bool | None = None  # whether prices of several regions are known, and asked for


@dataclass(frozen=True, slots=True)
class FieldContext:
    """What decides whether a field has an effect."""

    plan: Plan  # the plan; what is ``auto`` or not given may still become anything
    kind: Kind
    task: str
    hardware: HardwareFacts
    has_towers: bool | None  # whether the model sees or hears through weights of their own; None where that is unknown
    has_experts: bool | None  # whether the model is a mixture of experts, likewise
    zero: int | None  # what replicas share, as given or as the framework does; None while it is open
    claims_memory: bool  # whether the engine takes a share of memory for itself
    full_precision: bool  # whether weights are their own master copy
    casts: bool  # whether matrices are cast to a narrower type for their products
    has_rank: bool  # whether the optimizer's states are of low rank
    fixed_length: int  # tokens that the model always reads; 0 where the plan says or that is unknown

    @property
    def serves(self) -> bool:
        """Whether requests are served, rather than a model trained."""
        return self.task == "infer"


def _is_one(path: str) -> Callable[[FieldContext], bool]:
    """A size of one for certain: left out it is one too, but in serving the least that fits."""
    return lambda context: context.plan.value(path) == 1 or (context.plan.value(path) is None and not context.serves)


def _lacks_nodes(context: FieldContext) -> bool:
    hardware = context.hardware
    return hardware.devices is not None and hardware.devices <= (hardware.per_node or hardware.devices)


def _has_plain_base(plan: Plan) -> bool:
    training = plan.training
    return training.quantization is None and (training.adapter is None or training.adapter.kind != "qlora")


LACKING: Mapping[str, Callable[[FieldContext], bool]] = {
    "adapter": lambda context: context.plan.training.adapter is None,
    "quantized base": lambda context: _has_plain_base(context.plan),
    "cast matrices": lambda context: not context.casts,
    "states of low rank": lambda context: not context.has_rank,
    "reference": lambda context: context.plan.training.preference not in {"dpo", "kto", "grpo", "ppo"},
    "towers": lambda context: context.has_towers is False,
    "nodes": _lacks_nodes,
    "devices": lambda context: context.hardware.devices == 1,
    "experts": lambda context: context.has_experts is False,
    "stages": _is_one(Key.PARALLELISM_PP),
    "split layers": _is_one(Key.PARALLELISM_TP),
    "split sequence": _is_one(Key.PARALLELISM_CP),
    "replicas": lambda context: context.hardware.devices == 1 or context.plan.parallelism.dp == 1,
    "sharing": lambda context: context.zero == 0,
    "epochs": lambda context: context.plan.training.epochs is None,
    "short numbers": lambda context: context.full_precision,
    "files": lambda context: context.task != "fit",
    _ANY_LENGTH: lambda context: context.fixed_length > 0,
    "claim": lambda context: not context.claims_memory,
    "accelerator": lambda context: context.hardware.on_processor is True,
    "host at work": lambda context: context.serves and (not context.plan.is_split_with_host),
    "own memory": lambda context: context.hardware.has_own_memory is False,
    "load": lambda context: not context.plan.inference.is_load,
    "an end": lambda context: context.serves and context.plan.inference.requests is None,
    "served adapters": lambda context: context.plan.inference.adapters == 0,
    "teacher": lambda context: context.plan.training.preference != "distillation",
    "guessing": lambda context: context.plan.inference.num_speculative_tokens == 0,
    "one batch": lambda context: context.serves and context.kind == "transformer" and context.plan.inference.is_load,
    "served": lambda context: context.kind == "network",
    "divided model": lambda context: context.kind in ("classical", "plugin"),
    "split model": lambda context: context.serves and context.plan.parallelism.tp == context.plan.parallelism.pp == 1,
    "energy": lambda context: context.serves,
    "a price": lambda context: context.hardware.has_price is False,
    "spot price": lambda context: context.hardware.has_spot_price is False,
    "committed price": lambda context: context.hardware.has_committed_price is False,
    "regional price": lambda context: context.hardware.has_regional_prices is False,
    "processors": lambda context: context.hardware.on_processor is False,
    "images": lambda context: context.plan.model.name == PERCEPTRON,
    "unlike devices": lambda context: not context.plan.hardware.groups and context.plan.hardware.name != DETECTED,
    "reports": lambda _: True,
    "watched": lambda _: True,
    "stated data": lambda context: not context.plan.data.is_stated,
    "loader": lambda _: True,
    "matrices": lambda context: context.plan.model.name in TREES,
    "samples": lambda context: context.plan.training.samples is None,
}
"""Whether something is missing for certain without which a field changes nothing, by the names that fields give."""


def idle_reason(knob: Knob, context: FieldContext) -> str:
    """Return why a field changes nothing in a plan; empty where it may change something."""
    return next((condition_text(name) for name in knob.needs if LACKING[name](context)), "")


def field_context(
    plan: Plan, kind: Kind, task: str, catalog: Catalog, hardware: HardwareFacts | None = None
) -> FieldContext:
    """Return what decides whether fields have an effect; ``hardware`` is by default what the plan says."""
    engines, shape = catalog.engine_rows(plan.inference.engine), _shape(plan, kind, catalog)
    return FieldContext(
        plan,
        kind,
        task,
        hardware or HardwareFacts(plan.hardware.devices, plan.hardware.per_node),
        None if shape is None else bool(shape.tower_weights),
        _has_experts(plan, kind, catalog),
        _zero(plan, catalog),
        any(row.memory_policy != "needed" for row in engines),
        _has_full_precision(plan, catalog),
        _casts(plan, catalog),
        (row := catalog.optimizers.get(plan.training.optimizer)) is None or row.rank is not None,
        0 if shape is None else shape.fixed_length,
    )


def ineffective_fields(context: FieldContext) -> Iterator[tuple[str, str]]:
    """Yield each field that the plan sets to something of its own though it changes nothing, and why."""
    if _is_read("training", context.task) and context.plan.training.epochs is not None and LACKING[_SAMPLES](context):
        yield Key.TRAINING_EPOCHS, condition_text(_SAMPLES)
    for path, entry in all_fields().items():
        section, _, _ = path.partition(".")
        if not entry.knob.is_wish or not _is_read(section, context.task):
            continue
        is_of_others = bool(entry.knob.families) and context.kind not in entry.knob.families
        reason = "is of other kinds of models" if is_of_others else idle_reason(entry.knob, context)
        if reason and context.plan.value(path) not in (entry.default, AUTO, None, 1, False):
            yield path, reason


def _is_read(section: str, task: str) -> bool:
    if section == "inference":
        return task == "infer"
    return section not in ("training", "data") or task not in ("infer", "fit")


def _casts(plan: Plan, catalog: Catalog) -> bool:
    row = catalog.precisions.get(plan.training.precision)
    return row is not None and row.casts > 0


def _has_full_precision(plan: Plan, catalog: Catalog) -> bool:
    row = catalog.precisions.get(plan.training.precision)
    return row is not None and row.master_bytes == 0.0


def _zero(plan: Plan, catalog: Catalog) -> int | None:
    if plan.parallelism.zero is not None:
        return None if plan.parallelism.zero == AUTO else int(plan.parallelism.zero)
    return catalog.frameworks[software_id(plan.training.framework, catalog)].zero


def _shape(plan: Plan, kind: Kind, catalog: Catalog) -> TransformerShape | None:
    """Return the sizes of a plan's model; None for kinds that have others, and where only its file knows them."""
    row = None if kind != "transformer" or plan.model.config else catalog.architectures.known(plan.model.name or "")
    if row is None:
        return None
    try:
        return shape_from_spec(row, plan.model.spec) if plan.model.spec else shape_of(row)
    except PlanError:
        return None


def _has_experts(plan: Plan, kind: Kind, catalog: Catalog) -> bool | None:
    """Return whether a plan's model is a mixture of experts; None where only its file knows."""
    if kind != "transformer" or plan.model.spec.get("experts"):
        return kind == "transformer"
    if plan.model.config is not None or plan.model.name in (None, AUTO):
        return None
    row = catalog.architectures.find_id(plan.model.name or "")
    return bool(row and catalog.architectures[row].experts)
