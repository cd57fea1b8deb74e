"""The fields of a plan as lines of the configuration."""

from __future__ import annotations

from typing import cast

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Cluster, hardware_facts
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.plan import Plan, PlanField, field_text, plan_fields, table_text
from capacity_tui.engine.present import SWITCH, plan_value_text
from capacity_tui.engine.units import format_number
from capacity_tui.tui.view import Field, Kind

# What the screen shows in the way of another kind.
_KINDS = {"switch": Kind.CHOICE, "list": Kind.TEXT, "table": Kind.TEXT}


def field_lines(plan: Plan, catalog: Catalog, cluster: Cluster | None = None) -> tuple[Field, ...]:
    """Return the fields that apply to a plan, tables as one line; a model nobody knows has those of a transformer."""
    family = presumed_family(plan.model.name, catalog)
    task = plan.task or ("finetune" if plan.training.method else family.task)
    facts = None if cluster is None else hardware_facts(cluster, plan.pricing.usd_per_hour is not None)
    entries = plan_fields(plan, family.kind, task, catalog, facts)
    return tuple(map(_line, entries))


def _line(entry: PlanField) -> Field:
    knob = entry.knob
    is_number = isinstance(entry.value, int | float) and not isinstance(entry.value, bool)
    return Field(
        key=entry.path,
        label=knob.label,
        group=knob.group,
        text=_text(entry),
        value=float(cast("float", entry.value)) if is_number else None,
        unit=knob.unit,
        kind=_KINDS.get(knob.kind) or Kind(knob.kind),
        minimum=knob.minimum,
        maximum=knob.maximum,
        step=knob.step,
        choices=SWITCH if knob.kind == "switch" else knob.choices,
        catalogue=knob.catalogue,
        can_be_auto=knob.automatic,
        is_auto=entry.is_auto,
        help=knob.help,
        idle=entry.idle,
        words=entry.choices,
        synonyms=field_text(entry.path).synonyms,
    )


def _text(entry: PlanField) -> str:
    if entry.knob.kind == "table":
        return table_text(entry.value)
    return _length_text(entry.value) if entry.knob.is_length else plan_value_text(entry.value)


def _length_text(value: object) -> str:
    """Return a length in full: its ``M`` would be read as another number."""
    return format_number(value) if isinstance(value, int) else plan_value_text(value)
