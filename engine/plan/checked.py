"""Plan data checked against the schema, with one line for whatever is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from pydantic import ValidationError

from capacity_tui.engine.catalog import DEEPEST_NESTING, Document
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.models import is_classical
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.plan.validation_errors import place_of, plan_error
from capacity_tui.engine.schema import LARGEST_TOKENS

FieldPath: TypeAlias = tuple[str, ...]


def checked_plan(
    data: Mapping[str, object],
    document: Document | None = None,
    origins: Mapping[FieldPath, FieldPath] | None = None,
) -> Plan:
    """Return the plan of data in the present form; sections that are checked already stay as they are.

    Args:
        data: the plan's sections by name.
        document: where the data stood, for messages.
        origins: where a value stood in the document, by its path in the plan, where they differ.

    Raises:
        PlanError: the data are not a plan.
    """
    source = document or Document(None)
    pinned = data.get("scenarios")
    scenarios = pinned.items() if isinstance(pinned, dict) else ()
    _check_specs(data, (), source)
    for scenario, section in scenarios:
        if isinstance(section, dict):
            _check_specs(section, ("scenarios", scenario), source)
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        raise plan_error(error, source, origins or {}) from None
    with_tasks = {name: _with_task(section) for name, section in plan.scenarios.items()}
    return _with_task(plan if with_tasks == plan.scenarios else plan.model_copy(update={"scenarios": with_tasks}))


def _with_task(plan: Plan) -> Plan:
    """Return a plan with the task of a classical algorithm where it has none."""
    return plan.model_copy(update={"task": "fit"}) if plan.task is None and is_classical(plan.model.name) else plan


def _check_specs(data: Mapping[str, object], above: tuple[str | int, ...], document: Document) -> None:
    for name in ("model", "hardware"):
        section = data.get(name)
        spec = section.get("spec") if isinstance(section, dict) else None
        if isinstance(spec, dict):
            _check_overrides(spec, (*above, name, "spec"), document)


def _check_overrides(value: object, path: tuple[str | int, ...], document: Document) -> None:
    """Refuse numbers in an override that no model and no machine has; the schema cannot know their names."""
    if len(path) > DEEPEST_NESTING:
        raise PlanError("nested too deeply", place=place_of(document, *path[:3]))
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            _check_overrides(entry, (*path, key), document)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value) or not 0 <= value <= LARGEST_TOKENS:
            raise PlanError(
                "not allowed",
                f"{value:.6g}",
                f"allowed: 0 to {LARGEST_TOKENS:.0e}",
                place_of(document, *path),
            )
    elif not isinstance(value, str | bool | None):
        raise PlanError("not allowed", type(value).__name__, "allowed: numbers, text, lists", place_of(document, *path))
