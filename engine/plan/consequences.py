"""How fields follow one another: the rules that the metadata of fields name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from pydantic import BaseModel

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import Place
from capacity_tui.engine.files import typed_path
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import (
    NETWORK_CHECKPOINTING,
    Kind,
    family_of,
    find_known_model,
    knob_of,
    presumed_family,
    read_spec,
    spec_type_of,
)
from capacity_tui.engine.models.transformer import IMAGES, read_overrides
from capacity_tui.engine.plan.field_table import paths_where
from capacity_tui.engine.plan.plan import Plan, counted_name
from capacity_tui.engine.plan.sections import FULL, METHODS, TrainingSection
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO, Knob, Rule
from capacity_tui.engine.units import parse_count

_FILES = (".json", ".gguf")
_EXAMPLE_STEPS = 1000  # Length of a training that had one in tokens, where samples are counted

_TASKS: Mapping[Kind, tuple[str | None, ...]] = {
    "transformer": ("train", "finetune", "infer"),
    "network": ("train", "infer"),
}


def is_model_file(name: str, catalog: Catalog) -> bool:
    """Return whether a name means a model's file or folder, not its owner and itself on a hub."""
    if catalog.architectures.find_id(name) is not None:
        return False
    if name.endswith(_FILES) or name.startswith((".", "~", "/")):
        return True
    with suppress(OSError, ValueError):
        return "/" in name and typed_path(name).exists()
    return False


def brought_by_model(before: Plan, after: Plan, catalog: Catalog) -> dict[str, object]:
    """Return what follows from another model: its parameters, and a task and settings that its kind has."""
    name = after.model.name
    kind = presumed_family(None, catalog).kind if name in (None, AUTO) else family_of(name, catalog).kind
    brought: dict[str, object] = {Key.MODEL_SPEC: _first_parameters(before, name, kind, catalog)}
    was = _kind(before.model.name, catalog)
    if kind == was:
        return brought
    brought[Key.TASK] = before.task if before.task in _TASKS.get(kind, ()) else None
    if kind in _TASKS and was not in _TASKS and before.training == TrainingSection():
        brought["training"] = _first_training(kind)
    elif kind == "network":
        brought |= _of_network(before)
    return brought


def spec_parameter(plan: Plan, name: str, value: object, catalog: Catalog) -> object:
    """Return the checked value of one of the model's own parameters as plain data; None where it is given back.

    Args:
        name: the parameter, such as ``n``.
        value: the value, or as typed; ``auto`` leaves it to the modes where they choose it.

    Raises:
        PlanError: the model does not have the parameter, or it does not take the value.
    """
    if value is None:
        return None
    kind = _kind(plan.model.name, catalog)
    spec_type = spec_type_of(plan.model.name, kind)
    info = None if spec_type is None else spec_type.model_fields.get(spec_type.other_names.get(name, name))
    knob = None if info is None else knob_of(info)
    if value == AUTO:
        return AUTO if knob is not None and knob.automatic else None
    typed = _typed(value, knob)
    if kind != "transformer" and spec_type is not None:
        return read_spec(spec_type, {name: typed}).model_dump(mode="json")[spec_type.other_names.get(name, name)]
    if name in IMAGES:
        return parse_count(str(typed), place=Place(field=f"{Key.MODEL_SPEC}.{name}"))
    number = next(iter(read_overrides({name: typed}).values()), None)
    if isinstance(number, tuple):
        return typed  # names of parts, or a switch for the usual ones
    return int(number) if isinstance(number, float) and number.is_integer() else number


def names_of_parameter(plan: Plan, name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the keys under which a plan gives one of the model's own parameters."""
    spec_type = spec_type_of(plan.model.name, _kind(plan.model.name, catalog))
    other_names = {} if spec_type is None else spec_type.other_names
    return tuple(key for key in plan.model.spec if other_names.get(key, key) == other_names.get(name, name))


def _kind(name: str | None, catalog: Catalog) -> Kind:
    """Return the kind of the model that a plan names so far."""
    return presumed_family(name, catalog).kind


def _typed(value: object, knob: Knob | None) -> object:
    """Return what a text stands for before it is checked."""
    if knob is not None and isinstance(value, str) and knob.kind == "list":
        return [part for part in value.replace(",", " ").split() if part]
    if knob is not None and knob.kind == "switch" and value in ("on", "off"):
        return value == "on"
    return value


def _first_parameters(plan: Plan, name: str | None, kind: Kind, catalog: Catalog) -> dict[str, object]:
    """Return the parameters to begin with: the data of the model before, sizes of the catalogue, open fields."""
    known = None if name in (None, AUTO) else find_known_model(str(name), catalog)
    if known is None:
        return {}
    before_type = spec_type_of(plan.model.name, _kind(plan.model.name, catalog))
    carried = {
        field: plan.model.spec[field]
        for field, knob, _ in known.parameters()
        if field in plan.model.spec and (knob.group == "data" or before_type is known.spec_type)
    }
    is_open = {field: AUTO for field, knob, _ in known.parameters() if knob.automatic}
    return {**is_open, **known.sizes, **(carried if kind != "transformer" else {})}


def _first_training(kind: Kind) -> dict[str, object]:
    """Return what training begins with where it was not planned before: the modes choose what they can."""
    automatic = paths_where(_is_open_at_first)
    opened: dict[str, object] = {
        path.removeprefix("training."): AUTO for path in automatic if path.startswith("training.")
    }
    if kind == "transformer":
        return opened
    of_transformers = paths_where(_is_of_transformers)
    changes = {name: value for name, value in opened.items() if f"training.{name}" not in of_transformers}
    return {**changes, "steps": _EXAMPLE_STEPS}


def _of_network(plan: Plan) -> dict[str, object]:
    """Return the settings of a plan without what only transformers have."""
    paths = paths_where(_is_of_transformers)
    training = _without(plan.training.model_dump(mode="json"), "training", paths)
    if plan.training.tokens is not None:
        training["steps"] = _EXAMPLE_STEPS
    if plan.training.checkpointing not in (*NETWORK_CHECKPOINTING, AUTO):
        training["checkpointing"] = AUTO
    return {"training": training, "parallelism": _without(dict(plan.parallelism), "parallelism", paths)}


def _without(values: dict[str, object], section: str, paths: tuple[str, ...]) -> dict[str, object]:
    return {name: value for name, value in values.items() if f"{section}.{name}" not in paths}


def _is_open_at_first(knob: Knob) -> bool:
    return knob.automatic


def _is_of_transformers(knob: Knob) -> bool:
    return bool(knob.families) and "network" not in knob.families


class Unset:
    """What stands for the value that a field has where a plan gives none."""


DEFAULT: Final = Unset()
UNCHANGED: Final = object()  # What a rule returns where nothing follows


@dataclass(frozen=True, slots=True)
class Change:
    """A field that was changed, and another that may follow it."""

    before: Plan
    after: Plan
    trigger: str  # path of the field that was changed
    path: str  # path of the field that may follow
    given: Catalog | None = None  # catalogue to look names up in; None for the shipped one with the user's own

    @property
    def catalog(self) -> Catalog:
        """Facts about what a plan names."""
        return self.given or load_catalog()

    @property
    def now(self) -> object:
        """The value of the field that may follow."""
        return self.after.value(self.path)

    @property
    def is_written(self) -> bool:
        """Whether the plan gives the field that may follow another value than its default."""
        section, _, name = self.path.rpartition(".")
        holder = self.after.value(section) if section else self.after
        if not isinstance(holder, BaseModel):
            return False
        return bool(self.now != type(holder).model_fields[name].get_default(call_default_factory=True))


def _default(change: Change) -> object:
    return DEFAULT if change.is_written else UNCHANGED


def _counted(change: Change) -> object:
    """Keep the number of devices among accelerators; an instance or a processor has its own."""
    name = change.after.hardware.name
    if change.before.hardware.devices != change.now or change.catalog.accelerators.find_id(name) is not None:
        return UNCHANGED
    return _default(change)


def _divided(change: Change) -> object:
    """Give back a sharding group that no longer divides the replicas, where their number is known."""
    parallel, devices = change.after.parallelism, change.after.hardware.devices
    if not isinstance(parallel.shard, int) or AUTO in (parallel.tp, parallel.pp, parallel.cp, parallel.dp):
        return UNCHANGED
    replicas = parallel.dp
    if replicas is None or change.trigger != Key.PARALLELISM_DP:
        model = int(parallel.tp or 1) * int(parallel.pp or 1) * int(parallel.cp)
        replicas = None if devices is None else devices // model
    if replicas is None or int(replicas) * int(parallel.cp) % parallel.shard == 0:
        return UNCHANGED
    return DEFAULT


def _single(change: Change) -> object:
    if change.now == AUTO:
        return UNCHANGED
    return DEFAULT if change.after.value(change.trigger) == 1 and change.is_written else UNCHANGED


def _scaled(change: Change) -> object:
    """Keep the price of a device: the same hardware, more or fewer of it."""
    before, after, price = change.before.hardware, change.after.hardware, change.now
    if not isinstance(price, float) or before.name != after.name or before.devices is None or after.devices is None:
        return UNCHANGED
    return price * after.devices / before.devices


def _model(change: Change) -> object:
    brought = brought_by_model(change.before, change.after, change.catalog).get(change.path, UNCHANGED)
    return UNCHANGED if brought == change.now else DEFAULT if brought is None else brought


RULES: Mapping[Rule, Callable[[Change], object]] = {
    "given back": _default,
    "open": lambda _: AUTO,
    "counted": _counted,
    "refilled": lambda change: DEFAULT if isinstance(change.now, int) else UNCHANGED,
    "divided": _divided,
    "single": _single,
    "scaled": _scaled,
    "model": _model,
}
"""What follows in a plan that is sound after a change."""


def _adapter(method: object, adapter: object) -> object:
    """Return the adapter of a method: as it was but of that kind, none for training all weights."""
    if method not in METHODS or method == FULL:
        return DEFAULT
    before = (
        {name: getattr(adapter, name) for name in adapter.model_fields_set} if isinstance(adapter, BaseModel) else {}
    )
    return {**before, "kind": method}


REPLACING: Mapping[Rule, Callable[[object, object], object]] = {
    "replaced": lambda value, _: UNCHANGED if value in (None, DEFAULT) else DEFAULT,
    "counted": lambda value, _: DEFAULT if counted_name(value) else UNCHANGED,
    "adapter": _adapter,
    "method": lambda *_: DEFAULT,
}
"""What has to change along before a plan is sound at all, from the new value and the one that follows."""
