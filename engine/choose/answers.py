"""The questions users ask of a plan that may leave fields open: the balanced mode fills those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.advice.advice import advise
from capacity_tui.engine.choose.modes.modes import fill, open_fields
from capacity_tui.engine.choose.scaling import scalability
from capacity_tui.engine.choose.whatif.lever import Lever, strongest_lever
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan
from capacity_tui.engine.estimate.estimate import Answer, estimate_resolved
from capacity_tui.engine.estimate.resolve import resolve_plan
from capacity_tui.engine.explain.explain import Explanation, explain_estimate
from capacity_tui.engine.plan.files.examples import example_names, example_text
from capacity_tui.engine.plan.files.loading import load_plan, plan_from_text
from capacity_tui.engine.plan.plan import Plan

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine


def answer(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> Answer:
    """Return a plan with everything filled in, and its estimate with advice and, if it asks for it, scalability.

    Args:
        plan: what to run; fields that are ``auto`` get the balanced mode's values.
        machine: what was detected, for plans that run on ``detected`` hardware.
        catalog: facts; the shipped ones with the user's own by default.

    Raises:
        CapacityError: the plan cannot be estimated; the message names field and remedy.
    """
    facts = catalog or load_catalog()
    filled = fill(plan, "balanced", machine, facts)
    resolved, estimate = filled.resolved, filled.told
    case = EstimatedPlan(plan, resolved, filled.estimate, facts, machine)
    recommendations, warnings = advise(case)
    advised = replace(
        estimate,
        recommendations=recommendations,
        warnings=(*estimate.warnings, *warnings),
        scalability=scalability(case),
    )
    return Answer(resolved, advised)


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a figure is what it is, and what would improve it most."""

    explanation: Explanation
    lever: Lever | None


def explain(plan: Plan, key: str, machine: Machine | None = None, catalog: Catalog | None = None) -> Explained:
    """Explain one figure of a plan: formula, numbers put in, sources, strongest lever.

    A plan without open fields is estimated once for its explanation; the lever tries changes of it.

    Raises:
        CapacityError: no result has that key, or the plan cannot be estimated.
    """
    facts = catalog or load_catalog()
    is_open = bool(open_fields(plan))
    resolved = fill(plan, "balanced", machine, facts).resolved if is_open else resolve_plan(plan, facts, machine)
    estimate = estimate_resolved(resolved, facts, recorded=True)
    found = explain_estimate(resolved, estimate, key, facts)
    return Explained(found, strongest_lever(EstimatedPlan(plan, resolved, estimate, facts, machine), found.key))


def step_seconds(plan: Plan | Path | str) -> float:
    """Return the seconds of one batch: an optimizer step of training, or a batch served.

    Args:
        plan: a plan, its file, or the name of an example; ``detected`` hardware is looked at.

    Raises:
        CapacityError: there is no such plan, or it cannot be estimated.
    """
    loaded = plan if isinstance(plan, Plan) else _loaded(plan)
    machine = _this_machine() if loaded.hardware.name == "detected" else None
    facts = load_catalog()
    return float(fill(loaded, "balanced", machine, facts).estimate.computation.step_seconds.value)


def _this_machine() -> Machine:
    from capacity_tui.engine.machine.detect import detect  # noqa: PLC0415 - most plans name their hardware

    return detect()


def _loaded(name: Path | str) -> Plan:
    if not Path(name).exists() and str(name) in example_names():
        return plan_from_text(example_text(str(name)), str(name))
    return load_plan(str(name))
