"""Every field of a plan one step away: what levers and sensitivity try."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.whatif.together import estimate_changes
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, ResolvedPlan
from capacity_tui.engine.estimate.timing import why_not_read
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import PlanField, plan_fields
from capacity_tui.engine.schema import next_number


def one_step_away(
    resolved: ResolvedPlan, catalog: Catalog, wanted: Callable[[PlanField], bool]
) -> Iterator[tuple[PlanField, object]]:
    """Yield the wanted fields that have a value, with each value one step away: down and up, or every other choice.

    Args:
        wanted: whether a field is to be stepped.
    """
    for field in plan_fields(resolved.plan, resolved.family.kind, catalog=catalog):
        if field.value is not None and wanted(field):
            for value in _steps(field):
                if _has_kernels(resolved, field.path, value, catalog):
                    yield field, value


@dataclass(frozen=True, slots=True)
class Step:
    """A field one step away, the rest of the plan as it is.

    Attributes:
        field: the field, with its value now.
        value: the next one.
        change: the same with what keeps the work of a step the same.
        estimate: what the plan comes to then; None where it cannot be.
    """

    field: PlanField
    value: object
    change: Mapping[str, object]
    estimate: Estimate | None


def estimated_steps(case: EstimatedPlan, wanted: Callable[[PlanField], bool]) -> list[Step]:
    """Return the wanted fields one step away, all of them estimated together.

    Args:
        wanted: whether a field is to be stepped.
    """
    steps = tuple(one_step_away(case.resolved, case.catalog, wanted))
    changes = [case.same_batch({field.path: value}) for field, value in steps]
    looks = estimate_changes(case.pinned.wanted, changes, case.machine, case.catalog)
    return [
        Step(*step, change, None if isinstance(look, CapacityError) else look)
        for step, change, look in zip(steps, changes, looks, strict=True)
    ]


def _has_kernels(resolved: ResolvedPlan, path: str, value: object, catalog: Catalog) -> bool:
    """Whether the device and the engine run a value as it is named."""
    device = resolved.cluster.device
    if path == Key.TRAINING_PRECISION:
        # A type the device has no units for runs as another one, which is tried itself.
        return value in device.peaks
    if path == Key.INFERENCE_WEIGHTS:
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
