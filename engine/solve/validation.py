"""Everything that is wrong with a plan's file, in the order of its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, Document, Plain
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.estimate import estimate_resolved, resolve_plan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import MOST_FAULTS, Plan
from capacity_tui.engine.plan.files import PlanSource, place_in_document
from capacity_tui.engine.plan.line import MODEL_NAME, similar_names
from capacity_tui.engine.solve.advice.warnings import ignored
from capacity_tui.engine.solve.modes.modes import with_placeholders

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

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
    """Estimate a plan, whatever the modes would choose for its open fields.

    Raises:
        CapacityError: it cannot be estimated.
    """
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
    similar = similar_names(str(model.get("name", "")), catalog)
    near = next((name for kind, name in similar if kind == MODEL_NAME), None)
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
