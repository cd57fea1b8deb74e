"""A plan with a row of a list taken, in the words of that list."""

from __future__ import annotations

from capacity_tui.engine.api import CapacityError, Catalog, Estimate, Machine, Plan, edited, figure, fill
from capacity_tui.tui.screens.plan.answer_view import usage
from capacity_tui.tui.tried import Tried

_JOB = "computation.estimated_train_time_seconds"
_EACH = "computation.infer.time_per_output_token_seconds"
_STEP = "computation.step_seconds"


def tried(plan: Plan, key: str, text: str, catalog: Catalog, machine: Machine | None) -> Tried:
    """Return what a plan would be with one field changed, filled as the balanced mode does."""
    try:
        filled = fill(edited(plan, {key: text}, catalog).plan, "balanced", machine, catalog)
    except CapacityError as error:
        return Tried(None, reason=error.title)
    estimate = filled.estimate
    held, price = usage(estimate), figure(estimate, "cost.usd_per_hour")
    seconds, time = _time(filled.plan, estimate)
    return Tried(
        estimate.verdict,
        held.text,
        time,
        "" if price.number is None else f"{price.text}/h",
        share=held.share,
        seconds=seconds,
        usd=price.number,
    )


def _time(plan: Plan, estimate: Estimate) -> tuple[float | None, str]:
    """Return the seconds that rows are compared by, and how they are shown: of the job, a token, or else a step."""
    of_all = figure(estimate, _EACH if plan.task == "infer" else _JOB)
    if of_all.number is not None:
        return of_all.number, f"{of_all.text}/token" if plan.task == "infer" else of_all.text
    step = figure(estimate, _STEP)
    return step.number, f"{estimate.computation.iteration} {step.text}"
