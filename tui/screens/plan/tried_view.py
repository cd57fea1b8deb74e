"""A plan with a row of a list taken, in the words of that list."""

from __future__ import annotations

from capacity_tui.engine.api import CapacityError, Catalog, Machine, Plan, edited, figure, fill
from capacity_tui.tui.screens.plan.answer_view import headlines, usage
from capacity_tui.tui.tried import Tried

_SECONDS = {
    True: ("computation.estimated_train_time_seconds", "computation.step_seconds"),
    False: ("computation.infer.time_per_output_token_seconds", "computation.step_seconds"),
}


def tried(plan: Plan, key: str, text: str, catalog: Catalog, machine: Machine | None) -> Tried:
    """Return what a plan would be with one field changed, filled as the balanced mode does."""
    try:
        filled = fill(edited(plan, {key: text}, catalog).plan, "balanced", machine, catalog)
    except CapacityError as error:
        return Tried(None, reason=error.title)
    estimate = filled.estimate
    held, price = usage(estimate), figure(estimate, "cost.usd_per_hour")
    numbers = (figure(estimate, path).number for path in _SECONDS[filled.plan.task != "infer"])
    return Tried(
        estimate.verdict,
        held.text,
        headlines(filled.plan, estimate)[0].text,
        "" if price.number is None else f"{price.text}/h",
        share=held.share,
        seconds=next((number for number in numbers if number is not None), None),
        usd=price.number,
    )
