"""A plan as one mode fills it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capacity_tui.engine.catalog.modes import Mode
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.workload.plan import Plan


@dataclass(frozen=True, slots=True)
class ModePlan:
    """What one mode makes of a plan.

    Attributes:
        mode: the mode's figures.
        plan: the plan with everything filled in.
        estimate: its estimate.
        reasons: why each open field got its value.
        budget_bytes: device memory the mode allows itself; None where capacity is unknown.
    """

    mode: Mode
    plan: Plan
    estimate: Estimate
    reasons: Mapping[str, str]
    budget_bytes: float | None
