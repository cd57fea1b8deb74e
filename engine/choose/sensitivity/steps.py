"""Every field of a plan one step away: what levers and sensitivity try."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.estimate.timing.kernels import why_not_read
from capacity_tui.engine.plan.fields import PlanField, plan_fields
from capacity_tui.engine.schema.stepping import next_number


def one_step_away(
    resolved: ResolvedPlan, catalog: Catalog, wanted: Callable[[PlanField], bool]
) -> Iterator[tuple[PlanField, object]]:
    """Yield the wanted fields that have a value, with each value one step away: down and up, or every other choice.

    Args:
        resolved: the plan.
        catalog: facts.
        wanted: whether a field is to be stepped.
    """
    for field in plan_fields(resolved.plan, resolved.family.kind, catalog=catalog):
        if field.value is not None and wanted(field):
            for value in _steps(field):
                if _has_kernels(resolved, field.path, value, catalog):
                    yield field, value


def _has_kernels(resolved: ResolvedPlan, path: str, value: object, catalog: Catalog) -> bool:
    """Whether the device and the engine run a value as it is named."""
    device = resolved.cluster.device
    if path == "training.precision":
        # A type the device has no units for runs as another one, which is tried itself.
        return value in device.peaks
    if path == "inference.weights":
        weights = catalog.quantizations.find(str(value))
        return not why_not_read(weights, resolved.plan.inference.engine, device, catalog)
    return True


def _steps(field: PlanField) -> Iterator[object]:
    knob, value = field.knob, field.value
    if isinstance(value, bool):
        yield not value
    elif knob.kind == "choice":
        for choice in knob.choices:
            if choice != str(value):
                yield int(choice) if choice.isdigit() else choice
    elif isinstance(value, int | float):
        for direction in (-1, 1):
            after = next_number(knob, value, direction)
            if after is not None and after != value:
                yield type(value)(after)
