"""The knob that improves a figure most with one step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.sensitivity.steps import estimated_steps, one_step_away
from capacity_tui.engine.estimate import LESS, METRICS, ResolvedPlan, figure
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import PlanField
from capacity_tui.engine.verdict import Verdict

# A utilization is measured against what the precision could reach: another precision moves the measure itself.
MEASURES = frozenset({Figure.MFU, Figure.BOTTLENECK_ARITHMETIC_INTENSITY, Figure.BOTTLENECK_RIDGE_POINT})
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

    Returns:
        None for a figure that no knob improves, and for facts: a model's size, what a device offers, a price.
    """
    metric = METRICS.get(key)
    better = LESS if metric is None else metric.better
    value = figure(case.estimate, key).number
    if not value or not better:
        return None
    short = case.estimate.verdict is Verdict.DOES_NOT_FIT
    promised = [
        (_gain(figure(step.estimate, key).number, value, better), step)
        for step in estimated_steps(case, lambda known: _is_lever(known) and _concerns(known, key, short=short))
        if step.estimate is not None
    ]
    best, most = None, LEAST_CHANGE
    for promise, step in sorted(promised, key=lambda pair: -pair[0])[:MOST_PLANNED]:
        number = case.evaluate(step.change).number(key) if promise > LEAST_CHANGE else None
        gain = _gain(number, value, better)
        if number is not None and gain > most:
            known = step.field
            also = {path: entry for path, entry in step.change.items() if path != known.path}
            moved = number / value - 1.0
            best, most = Lever(known.path, known.knob.label, str(known.value), str(step.value), moved, also), gain
    return best


def _gain(number: float | None, value: float, better: int) -> float:
    return 0.0 if number is None else (number / value - 1.0) * better


def _concerns(known: PlanField, key: str, *, short: bool) -> bool:
    """Whether a knob may be the lever of a figure, where memory is short or not."""
    if known.knob.role == "memory":
        return short and key.startswith("memory.")
    return known.path != Key.TRAINING_PRECISION or key not in MEASURES


def neighbours(resolved: ResolvedPlan, catalog: Catalog) -> Iterator[tuple[PlanField, object]]:
    """Yield every knob that can be stepped, with each value one step away."""
    return one_step_away(resolved, catalog, _is_lever)


def _is_lever(known: PlanField) -> bool:
    """Whether a field is a choice of how to run: not what to run, nor its price."""
    return known.knob.role in LEVERS and known.knob.kind in ("power-of-two", "choice")
