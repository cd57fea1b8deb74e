"""The fields of a plan as lines of the configuration."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel

from capacity_tui.engine.api import (
    AUTO,
    SWITCH,
    Catalog,
    Cluster,
    Plan,
    PlanField,
    format_number,
    plan_fields,
    plan_value_text,
    presumed_family,
)
from capacity_tui.tui.view import Field, Kind

_KINDS = {
    "integer": Kind.INTEGER,
    "power-of-two": Kind.POWER_OF_TWO,
    "number": Kind.NUMBER,
    "choice": Kind.CHOICE,
    "switch": Kind.CHOICE,
    "text": Kind.TEXT,
    "list": Kind.TEXT,
}
_CATALOGUES = {
    "model.name": "model",
    "hardware.name": "accelerator",
    "hardware.interconnect": "interconnect",
}


def field_lines(plan: Plan, catalog: Catalog, cluster: Cluster | None = None) -> tuple[Field, ...]:
    """Return the fields that apply to a plan, tables left out; a model nobody knows has those of a transformer."""
    family = presumed_family(plan.model.name, catalog)
    task = plan.task or ("finetune" if plan.training.method else family.task)
    entries = plan_fields(plan, family.kind, task, catalog, cluster)
    return tuple(_line(entry) for entry in entries if entry.knob.kind in _KINDS)


def reset_value(plan: Plan, key: str) -> object:
    """Return what gives a field back: ``auto`` where the modes may choose it, else its default.

    None gives back an entry of a table, such as a parameter of the model's own.
    """
    section, _, name = key.rpartition(".")
    holder = plan.value(section) if section else plan
    if not isinstance(holder, BaseModel):
        return None
    info = type(holder).model_fields[name]
    automatic = any(getattr(part, "automatic", False) for part in info.metadata)
    return AUTO if automatic else info.get_default()


def _line(entry: PlanField) -> Field:
    knob = entry.knob
    is_number = isinstance(entry.value, int | float) and not isinstance(entry.value, bool)
    return Field(
        key=entry.path,
        label=knob.label,
        group=knob.group,
        text=_length_text(entry.value) if knob.is_length else plan_value_text(entry.value),
        value=float(cast("float", entry.value)) if is_number else None,
        unit=knob.unit,
        kind=_KINDS[knob.kind],
        minimum=knob.minimum,
        maximum=knob.maximum,
        step=knob.step,
        choices=SWITCH if knob.kind == "switch" else knob.choices,
        catalogue=_CATALOGUES.get(entry.path, ""),
        can_be_auto=knob.automatic,
        is_auto=entry.is_auto,
        help=knob.help,
        idle=entry.idle,
        words=entry.choices,
    )


def _length_text(value: object) -> str:
    """Return a length in full: its ``M`` would be read as another number."""
    return format_number(value) if isinstance(value, int) else plan_value_text(value)
