"""The knob that improves a figure most with one step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.sensitivity.steps import one_step_away
from capacity_tui.engine.choose.whatif.together import estimated_changes
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.figure_table import METRICS
from capacity_tui.engine.estimate.figures import figure
from capacity_tui.engine.estimate.metric import LESS
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.plan.fields import PlanField

# A utilization is measured against what the precision could reach: another precision moves the measure itself.
MEASURES = frozenset({"computation.mfu", "bottleneck.arithmetic_intensity", "bottleneck.ridge_point"})
# Fields that say how a plan is run; those for memory are levers where it is short.
LEVERS = ("setting", "memory")
# A smaller change is no lever.
LEAST_CHANGE = 0.005
MOST_PLANNED = 3
"""So many of those that promise most are planned."""


@dataclasses.dataclass(frozen=True, slots=True)
class Lever:
    """The knob that would improve a number most with one step.

    Attributes:
        field: plan path.
        label: its name.
        before: value now.
        after: value one step away.
        change: relative change of the number, -0.5 for half.
        also: what else has to be set so that the work stays the same.
    """

    field: str
    label: str
    before: str
    after: str
    change: float
    also: Mapping[str, object] = dataclasses.field(default_factory=dict)


def strongest_lever(case: EstimatedPlan, key: str) -> Lever | None:
    """Return the knob that improves a figure most with one step, as planning that step says.

    All steps are ranked with the rest of the plan as it is; those that promise most are planned.

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
    changes = [case.same_batch({known.path: after}) for known, after in steps]
    looks = estimated_changes(case.pinned.wanted, changes, case.machine, case.catalog)
    promised = [
        0.0 if isinstance(look, CapacityError) else _gain(figure(look, key).number, value, better) for look in looks
    ]
    best, most = None, LEAST_CHANGE
    for place in sorted(range(len(steps)), key=lambda place: -promised[place])[:MOST_PLANNED]:
        if promised[place] <= LEAST_CHANGE:
            break
        (known, after), change = steps[place], changes[place]
        number = case.changed(change).number(key)
        if (gain := _gain(number, value, better)) > most and number is not None:
            also = {path: entry for path, entry in change.items() if path != known.path}
            moved = number / value - 1.0
            best, most = Lever(known.path, known.knob.label, str(known.value), str(after), moved, also), gain
    return best


def _gain(number: float | None, value: float, better: int) -> float:
    return 0.0 if number is None else (number / value - 1.0) * better


def _concerns(known: PlanField, key: str, *, short: bool) -> bool:
    """Whether a knob may be the lever of a figure, where memory is short or not."""
    if known.knob.role == "memory":
        return short and key.startswith("memory.")
    return known.path != "training.precision" or key not in MEASURES


def neighbours(resolved: ResolvedPlan, catalog: Catalog) -> Iterator[tuple[PlanField, object]]:
    """Yield every knob that can be stepped, with each value one step away."""
    return one_step_away(resolved, catalog, _is_lever)


def _is_lever(known: PlanField) -> bool:
    """Whether a field is a choice of how to run: not what to run, nor its price."""
    return known.knob.role in LEVERS and known.knob.kind in ("power-of-two", "choice")
