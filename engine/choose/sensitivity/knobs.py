"""What one step of each field of a plan does to a figure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.choose.sensitivity.swing import Swing, swing_of
from capacity_tui.engine.choose.whatif.steps import one_step_away
from capacity_tui.engine.choose.whatif.together import estimated_together
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan, resolved_change
from capacity_tui.engine.plan.fields import PlanField

# A step of these is another question: what kind of run it is.
OTHER_RUNS = frozenset({"task"})
# Sizes that follow from others, and what changes reports alone.
NO_KNOBS = frozenset({"derived", "output"})


def knob_swings(case: EstimatedPlan, of: str, value: float) -> Iterator[Swing]:
    """Yield the fields whose next values move a figure, the rest of the plan staying as it is.

    Args:
        case: the estimated plan.
        of: result key of the figure.
        value: the figure as the plan stands.
    """
    tried = [
        (field, after, found[1])
        for field, after in one_step_away(case.resolved, case.catalog, _is_knob)
        if (found := resolved_change(case, {field.path: after}))
    ]
    numbers = np.full(len(tried), np.nan)
    for variants in estimated_together([resolved for _, _, resolved in tried], case.catalog):
        figures = variants.numbers(of)
        if figures is not None:
            numbers[list(variants.places)] = figures
    steps: dict[str, list[tuple[object, float | None]]] = {}
    for (field, after, _), number in zip(tried, numbers, strict=True):
        known = float(number) if np.isfinite(number) else None
        steps.setdefault(field.path, [(field.value, value)]).append((after, known))
    fields = {field.path: field for field, _, _ in tried}
    for path, moved in steps.items():
        field = fields[path]
        swing = swing_of("knob", path, field.knob.label, field.value, moved, field.knob.unit)
        if swing is not None:
            yield swing


def _is_knob(field: PlanField) -> bool:
    return not field.idle and field.knob.role not in NO_KNOBS and field.path not in OTHER_RUNS
