"""What one step of each field of a plan does to a figure."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.sensitivity.steps import one_step_away
from capacity_tui.engine.choose.sensitivity.swing import Swing, swing_of
from capacity_tui.engine.choose.whatif.together import estimated_changes
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.figures import figure
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
    tried = tuple(one_step_away(case.resolved, case.catalog, _is_knob))
    changes = [case.same_batch({field.path: after}) for field, after in tried]
    looks = estimated_changes(case.pinned.wanted, changes, case.machine, case.catalog)
    steps: dict[str, list[tuple[object, float | None]]] = {}
    for (field, after), look in zip(tried, looks, strict=True):
        if not isinstance(look, CapacityError):
            steps.setdefault(field.path, [(field.value, value)]).append((after, figure(look, of).number))
    fields = {field.path: field for field, _ in tried}
    for path, moved in steps.items():
        field = fields[path]
        swing = swing_of("knob", path, field.knob.label, field.value, moved, field.knob.unit)
        if swing is not None:
            yield swing


def _is_knob(field: PlanField) -> bool:
    return not field.idle and field.knob.role not in NO_KNOBS and field.path not in OTHER_RUNS
