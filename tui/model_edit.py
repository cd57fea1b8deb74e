"""Choosing another model, and changing its own parameters, in a plan that is edited."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from capacity_tui.engine.api import (
    AUTO,
    Catalog,
    Knob,
    ModelKind,
    Plan,
    TrainingSection,
    family_of,
    find_known_model,
    plan_fields,
    presumed_family,
    read_overrides,
    read_spec,
    spec_type_of,
    typed_path,
    with_value,
)

SPEC = "model.spec."
METHOD = "training.method"
_FILES = (".json", ".gguf")
# Length of a training that had one in tokens, where samples are counted.
_EXAMPLE_STEPS = 1000
# What training begins with where it was not planned before: the modes choose what they can.
_OPEN = {"micro_batch": AUTO, "global_batch": AUTO, "precision": AUTO, "checkpointing": AUTO}
_FIRST_TRAINING: Mapping[ModelKind, Mapping[str, object]] = {
    "transformer": {**_OPEN, "seq_len": AUTO, "tokens": AUTO},
    "network": {**_OPEN, "steps": _EXAMPLE_STEPS},
}
_TASKS: Mapping[ModelKind, tuple[str | None, ...]] = {
    "transformer": ("train", "finetune", "infer"),
    "network": ("train", "infer"),
}
# What networks know of a plan for transformers.
_SHARED_PARALLELISM = ("dp", "zero", "shard", "offload")
_NETWORK_CHECKPOINTING = ("none", "full", AUTO)


def with_model(plan: Plan, name: str, catalog: Catalog) -> Plan:
    """Return the plan with another model: its parameters begin with their defaults, data and hardware stay.

    Raises:
        PlanError: no model is called that.
    """
    row = catalog.architectures.find_id(name)
    if row is None and _is_path(name):
        return _of_kind(with_value(plan, "model", {"config": name}), plan, "transformer", catalog)
    name = row if row is not None and catalog.architectures.is_variant(name) else name
    kind = _kind(name, catalog) if name == AUTO else family_of(name, catalog).kind
    changed = with_value(plan, "model", {"name": name, "spec": _first_parameters(plan, name, kind, catalog)})
    return _of_kind(changed, plan, kind, catalog)


def with_method(plan: Plan, method: str) -> Plan:
    """Return the plan trained by another method; what that method needs of memory is chosen anew by the modes.

    Raises:
        PlanError: there is no such method.
    """
    changed = with_value(plan, METHOD, None if method == AUTO else method)
    for path in ("training.micro_batch", "training.checkpointing", "parallelism.zero"):
        changed = with_value(changed, path, AUTO)
    return changed


def with_parameter(plan: Plan, key: str, text: str, catalog: Catalog) -> Plan:
    """Return the plan with one of the model's own parameters changed; ``auto`` gives it back.

    Args:
        plan: the plan.
        key: dotted path, such as ``model.spec.n``.
        text: the value as typed.
        catalog: facts.

    Raises:
        PlanError: the parameter does not take the value.
    """
    name = key.removeprefix(SPEC)
    kind = _kind(plan.model.name, catalog)
    spec_type = spec_type_of(plan.model.name, kind)
    other_names = {} if spec_type is None else spec_type.other_names
    others = {given: value for given, value in plan.model.spec.items() if other_names.get(given, given) != name}
    knob = next((entry.knob for entry in plan_fields(plan, kind) if entry.path == key), None)
    value: object = AUTO if knob is not None and knob.automatic else None
    if text != AUTO:
        value = _read(plan, kind, name, _typed(text, knob))
    return with_value(plan, "model.spec", others if value is None else {**others, name: value})


def _is_path(name: str) -> bool:
    """Whether a name means a model's file or folder, not its owner and itself on a hub."""
    if name.endswith(_FILES) or name.startswith((".", "~", "/")):
        return True
    with suppress(OSError):
        return "/" in name and typed_path(name).exists()
    return False


def _kind(name: str | None, catalog: Catalog) -> ModelKind:
    """Return the kind of the model that a plan names so far."""
    return presumed_family(name, catalog).kind


def _typed(text: str, knob: Knob | None) -> object:
    """Return what a text stands for before it is checked."""
    if knob is not None and knob.kind == "list":
        return [part for part in text.replace(",", " ").split() if part]
    if knob is not None and knob.kind == "switch" and text in ("on", "off"):
        return text == "on"
    return text


def _read(plan: Plan, kind: ModelKind, name: str, value: object) -> object:
    """Return a checked value as plain data.

    Raises:
        PlanError: the parameter does not take it.
    """
    spec_type = spec_type_of(plan.model.name, kind)
    if kind != "transformer" and spec_type is not None:
        return read_spec(spec_type, {name: value}).model_dump(mode="json")[name]
    number = read_overrides({name: value})[name]
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _first_parameters(plan: Plan, name: str, kind: ModelKind, catalog: Catalog) -> dict[str, object]:
    """Return the parameters to begin with: the data of the model before, sizes of the catalogue, open fields."""
    known = None if name == AUTO else find_known_model(name, catalog)
    if known is None:
        return {}
    before_type = spec_type_of(plan.model.name, _kind(plan.model.name, catalog))
    kept = {
        field: plan.model.spec[field]
        for field, knob, _ in known.parameters()
        if field in plan.model.spec and (knob.group == "data" or before_type is known.spec_type)
    }
    is_open = {field: AUTO for field, knob, _ in known.parameters() if knob.automatic}
    return {**is_open, **known.sizes, **(kept if kind != "transformer" else {})}


def _of_kind(changed: Plan, before: Plan, kind: ModelKind, catalog: Catalog) -> Plan:
    """Return the plan with the task and the settings that this kind of model has."""
    was = _kind(before.model.name, catalog)
    if kind == was:
        return changed
    task = before.task if before.task in _TASKS.get(kind, ()) else None
    draft = changed if kind == "classical" else with_value(changed, "task", task)
    if kind not in _TASKS:
        return draft
    if was not in _TASKS and before.training == TrainingSection():
        return with_value(draft, "training", _FIRST_TRAINING[kind])
    return _for_network(draft) if kind == "network" else draft


def _for_network(plan: Plan) -> Plan:
    """Return the plan without what only transformers have."""
    training, parallel = plan.training, plan.parallelism
    settings = training.model_dump(mode="json", exclude={"tokens", "adapter", "quantization", "seq_len"})
    if training.tokens is not None:
        settings["steps"] = _EXAMPLE_STEPS
    if training.checkpointing not in _NETWORK_CHECKPOINTING:
        settings["checkpointing"] = AUTO
    draft = with_value(plan, "training", settings)
    return with_value(draft, "parallelism", {name: getattr(parallel, name) for name in _SHARED_PARALLELISM})
