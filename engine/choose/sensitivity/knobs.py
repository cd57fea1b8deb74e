"""What one step of each field of a plan does to a figure."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.sensitivity.steps import estimated_steps
from capacity_tui.engine.choose.sensitivity.swing import Swing, swing_of
from capacity_tui.engine.estimate import figure
from capacity_tui.engine.plan import PlanField

# A step of these is another question: what kind of run it is.
OTHER_RUNS = frozenset({"task"})
# Sizes that follow from others, and what changes reports alone.
NO_KNOBS = frozenset({"derived", "output"})


def knob_swings(case: EstimatedPlan, of: str, value: float) -> Iterator[Swing]:
    """Yield the fields whose next values move a figure, the rest of the plan staying as it is."""
    moved: dict[str, tuple[PlanField, list[tuple[object, float | None]]]] = {}
    for step in estimated_steps(case, _is_knob):
        if step.estimate is not None:
            _, values = moved.setdefault(step.field.path, (step.field, [(step.field.value, value)]))
            values.append((step.value, figure(step.estimate, of).number))
    for path, (field, values) in moved.items():
        swing = swing_of("knob", path, field.knob.label, field.value, values, field.knob.unit)
        if swing is not None:
            yield swing


def _is_knob(field: PlanField) -> bool:
    return not field.idle and field.knob.role not in NO_KNOBS and field.path not in OTHER_RUNS
