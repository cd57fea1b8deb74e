"""What ``models`` says about families, networks and models of other packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.models import KnownModel
    from capacity_tui.engine.schema import Knob

HEADS = ("id", "what it is", "complexity", "best use")
_PARAMETER_HEADS = ("parameter", "default", "unit", "range", "meaning")
_FIELD_HEADS = ("parameter", "field of the plan", "default", "meaning")
_FIELD_KEYS = ("name", "field", "default", "meaning")
_LARGEST_IN_FULL = 1e7
_ANY_NUMBER = "no limit: time grows in proportion to the samples, memory with the batch"


def cells(model: KnownModel) -> Sequence[str]:
    """Return a model's line of the list."""
    return (model.id, model.title, model.complexity, model.best_use)


def listed(model: KnownModel) -> dict[str, object]:
    """Return a model's entry of the list as plain data."""
    return {
        "id": model.id,
        "name": model.title,
        "kind": model.kind,
        "complexity": model.complexity,
        "best_use": model.best_use,
    }


def details(model: KnownModel, catalog: Catalog) -> dict[str, object]:
    """Return all that is known about a model as plain data."""
    return {
        **listed(model),
        **_limit(model, catalog),
        "parameters": [_parameter(name, knob, default) for name, knob, default in model.parameters()],
        "taken_for_fields": [dict(zip(_FIELD_KEYS, cells, strict=True)) for cells in _fields(model)],
        "example": example(model),
    }


def detail_parts(model: KnownModel, catalog: Catalog) -> Iterator[RenderableType]:
    """Yield the same for people: what it is, its parameters, a plan to begin with."""
    from rich.text import Text

    from capacity_tui.engine.present import to_yaml
    from capacity_tui.tui.headless.tables.layout import pairs, table

    entries = {**listed(model), **_limit(model, catalog)}
    yield pairs((key.replace("_", " "), str(value) or "n/a (nobody says)") for key, value in entries.items())
    yield Text("\nparameters of model.spec", style="bold")
    yield table(_PARAMETER_HEADS, [_parameter_cells(*entry) for entry in model.parameters()], ())
    if fields := tuple(_fields(model)):
        yield Text("\nalso taken in model.spec, for fields of the plan", style="bold")
        yield table(_FIELD_HEADS, fields, ())
    yield Text("\na plan to begin with", style="bold")
    yield Text(to_yaml(example(model)).rstrip())


def example(model: KnownModel) -> dict[str, object]:
    """Return a small plan of the model on this machine, as data."""
    return {"model": {"name": model.id, "spec": model.example()}, "hardware": {"name": "detected"}}


def _fields(model: KnownModel) -> Iterator[Sequence[str]]:
    """Yield what ``model.spec`` takes for fields of the plan: its name, the field, its default, what it is."""
    from capacity_tui.engine.plan import all_fields, field_text
    from capacity_tui.engine.plan.files import SPEC_NAMES
    from capacity_tui.engine.present import plan_value_text

    own = {name for name, _, _ in model.parameters()}
    for name, path in SPEC_NAMES.items() if model.kind in ("network", "transformer") else ():
        entry = all_fields()[path]
        if name not in own and (not entry.knob.families or model.kind in entry.knob.families):
            yield name, path, plan_value_text(entry.default), field_text(path).help


def _limit(model: KnownModel, catalog: Catalog) -> Mapping[str, object]:
    """Say up to how many samples the model is reasonable on this machine, and what to use beyond."""
    if model.kind == "plugin":
        return {"reasonable_up_to": "n/a (its package does not say)"}
    if model.kind != "classical":
        return {"reasonable_up_to": _ANY_NUMBER}
    from capacity_tui.engine.cluster import resolve_cluster
    from capacity_tui.engine.estimate.classical import reasonable_rows
    from capacity_tui.engine.machine import detect
    from capacity_tui.engine.plan import HardwareSection, PricingSection
    from capacity_tui.engine.units import format_count, format_seconds

    device = resolve_cluster(HardwareSection(), PricingSection(), catalog, detect()).device
    rows = format_count(float(reasonable_rows(model.id, device, catalog)), decimals=0)
    time = format_seconds(catalog.algorithms[model.id].reasonable_seconds)
    limit = f"about {rows} rows with the defaults below, in {time} and the memory of this machine"
    return {"reasonable_up_to": limit, "beyond": model.beyond}


def _parameter(name: str, knob: Knob, default: object) -> dict[str, object]:
    return {
        "name": name,
        "label": knob.label,
        "default": list(default) if isinstance(default, tuple) else default,
        "unit": knob.unit or None,
        "minimum": knob.minimum,
        "maximum": knob.maximum,
        "choices": list(knob.choices) or None,
        "automatic": knob.automatic,
        "meaning": knob.help or knob.label.lower(),
    }


def _parameter_cells(name: str, knob: Knob, default: object) -> Sequence[str]:
    from capacity_tui.engine.present import plan_value_text

    return (name, plan_value_text(default), knob.unit, _range(knob), knob.help or knob.label.lower())


def _range(knob: Knob) -> str:
    from capacity_tui.engine.units import format_number

    if knob.kind == "switch":
        return "on, off"
    if knob.choices:
        return ", ".join(knob.choices)
    if knob.minimum is None or knob.maximum is None:
        return ""
    return " to ".join(
        format_number(end) if float(end).is_integer() and end < _LARGEST_IN_FULL else f"{end:g}"
        for end in (knob.minimum, knob.maximum)
    )
