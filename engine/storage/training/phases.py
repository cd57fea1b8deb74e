"""The phases of a training, each as a plan of its own: its share of the tokens, and what changes in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate import Answer, estimate_plan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import DataPhase, Plan, edited
from capacity_tui.engine.schema import AUTO

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class PhaseEstimate:
    """One phase of a training.

    Attributes:
        phase: its name, its share and what changes in it.
        plan: the plan of the phase alone.
        tokens: tokens it trains on.
        step_seconds: seconds of a step.
        seconds: seconds of the phase.
        fits: whether it fits.
    """

    phase: DataPhase
    plan: Plan
    tokens: float
    step_seconds: float
    seconds: float
    fits: bool | None


def phase_plans(plan: Plan) -> tuple[tuple[DataPhase, Plan], ...]:
    """Return the phases of a settled plan with the plan of each.

    Raises:
        PlanError: a change of a phase is none that the plan takes, or the job has no length in tokens.
    """
    phases = plan.data.phases
    if not phases or phases == AUTO:
        return ()
    tokens = plan.training.tokens
    if tokens is None or tokens == AUTO:
        hint = "give training.tokens"
        raise PlanError("phases share out tokens, and the plan has none", hint=hint, place=Place(field=Key.DATA_PHASES))
    return tuple((phase, _plan_of(plan, phase, float(tokens))) for phase in phases)


def phase_estimates(found: Answer, machine: Machine | None, catalog: Catalog) -> tuple[PhaseEstimate, ...]:
    """Return the phases of an estimated training, each estimated by itself.

    Raises:
        CapacityError: a phase cannot be.
    """
    estimates = []
    for phase, plan in phase_plans(found.plan):
        estimate = estimate_plan(plan, machine, catalog).estimate
        step = mean(estimate.computation.step_seconds.value)
        steps = mean(estimate.computation.steps or 0.0)
        tokens = float(str(plan.training.tokens))
        estimates.append(PhaseEstimate(phase, plan, tokens, step, step * steps, estimate.fits))
    return tuple(estimates)


def _plan_of(plan: Plan, phase: DataPhase, tokens: float) -> Plan:
    change = {Key.DATA_PHASES: [], Key.TRAINING_TOKENS: phase.share * tokens, **phase.changes}
    try:
        return edited(plan, change).plan
    except PlanError as error:
        place = Place(field=f"data.phases.{phase.name}")
        raise PlanError(error.title, error.detail, error.hint, place) from error
