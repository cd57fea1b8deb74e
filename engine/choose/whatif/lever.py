"""The knob that improves a figure most with one step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.whatif.together import estimated_together
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan, resolved_change
from capacity_tui.engine.estimate.figures import LESS, METRICS, figure
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.estimate.timing.kernels import why_not_read
from capacity_tui.engine.plan.fields import PlanField, plan_fields
from capacity_tui.engine.schema.stepping import doubled

# A utilization is measured against what the precision could reach: another precision moves the measure itself.
MEASURES = frozenset({"computation.mfu", "bottleneck.arithmetic_intensity", "bottleneck.ridge_point"})
# Fields that say how a plan is run; those for memory are levers where it is short.
LEVERS = ("setting", "memory")
# A smaller change is no lever.
LEAST_CHANGE = 0.005


@dataclass(frozen=True, slots=True)
class Lever:
    """The knob that would improve a number most with one step.

    Attributes:
        field: plan path.
        label: its name.
        before: value now.
        after: value one step away.
        change: relative change of the number, -0.5 for half.
    """

    field: str
    label: str
    before: str
    after: str
    change: float


def strongest_lever(case: EstimatedPlan, key: str) -> Lever | None:
    """Estimate again with each knob one step away, and return the one that improves a figure most.

    Args:
        case: the estimated plan.
        key: result key of the figure.

    Returns:
        None for a figure that no knob improves, and for facts: a model's size, what a device offers, a price.
    """
    metric = METRICS.get(key)
    better = LESS if metric is None else metric.better
    value = figure(case.estimate, key).number
    if not value or not better:
        return None
    short = case.estimate.held is False
    steps = [step for step in neighbours(case.resolved, case.catalog) if _concerns(step[0], key, short=short)]
    changed = [(step, found[1]) for step in steps if (found := resolved_change(case, {step[0].path: step[1]}))]
    moved = np.full(len(changed), np.nan)
    for variants in estimated_together([resolved for _, resolved in changed], case.catalog):
        numbers = variants.numbers(key)
        if numbers is not None:
            moved[list(variants.places)] = numbers
    changes = moved / value - 1.0
    gains = np.where(np.isfinite(changes), changes * better, 0.0)
    if not changed or gains.max() <= LEAST_CHANGE:
        return None
    (field, after), _ = changed[int(np.argmax(gains))]
    return Lever(field.path, field.knob.label, str(field.value), str(after), float(changes[int(np.argmax(gains))]))


def _concerns(field: PlanField, key: str, *, short: bool) -> bool:
    """Whether a knob may be the lever of a figure, where memory is short or not."""
    if field.knob.role == "memory":
        return short and key.startswith("memory.")
    return field.path != "training.precision" or key not in MEASURES


def neighbours(resolved: ResolvedPlan, catalog: Catalog) -> Iterator[tuple[PlanField, object]]:
    """Yield every knob that can be stepped, with each value one step away."""
    for field in plan_fields(resolved.plan, resolved.family.kind, catalog=catalog):
        if _is_lever(field):
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


def _is_lever(field: PlanField) -> bool:
    """Whether a field is a choice of how to run: not what to run, nor its price."""
    return field.knob.role in LEVERS and field.value is not None and not isinstance(field.value, bool)


def _steps(field: PlanField) -> Iterator[object]:
    knob, value = field.knob, field.value
    if knob.kind == "power-of-two" and isinstance(value, int):
        for neighbour in (int(doubled(value, -1)), int(doubled(value, 1))):
            if neighbour != value and (knob.minimum or 1.0) <= neighbour <= (knob.maximum or np.inf):
                yield neighbour
    elif knob.kind == "choice":
        for choice in knob.choices:
            if choice != str(value):
                yield int(choice) if choice.isdigit() else choice
