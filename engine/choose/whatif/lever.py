"""The knob that improves a figure most with one step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.whatif.steps import one_step_away
from capacity_tui.engine.choose.whatif.together import estimated_together
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan, resolved_change
from capacity_tui.engine.estimate.figures import LESS, METRICS, figure
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.plan.fields import PlanField

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
    return one_step_away(resolved, catalog, _is_lever)


def _is_lever(field: PlanField) -> bool:
    """Whether a field is a choice of how to run: not what to run, nor its price."""
    return field.knob.role in LEVERS and field.knob.kind in ("power-of-two", "choice")
