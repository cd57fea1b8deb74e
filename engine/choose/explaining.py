"""Why a figure of a plan is what it is; the balanced mode fills what the plan leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.modes.modes import fill, open_fields
from capacity_tui.engine.choose.sensitivity.lever import Lever, strongest_lever
from capacity_tui.engine.estimate import estimate_resolved, resolve_plan
from capacity_tui.engine.explain import Explanation, explain_estimate
from capacity_tui.engine.notebook import ShownInNotebooks
from capacity_tui.engine.plan import Plan

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class Explained(ShownInNotebooks):
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
    explanation = explain_estimate(resolved, estimate, key, facts)
    return Explained(
        explanation, strongest_lever(EstimatedPlan(plan, resolved, estimate, facts, machine), explanation.key)
    )
