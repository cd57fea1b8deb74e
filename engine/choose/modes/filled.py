"""A plan as one mode fills it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.choose.modes.feeding import with_data_settings, without_feeding
from capacity_tui.engine.choose.modes.limits import serving_room
from capacity_tui.engine.choose.modes.looking_after import settings_alone, with_run_policies
from capacity_tui.engine.choose.modes.mode_warnings import mode_warnings
from capacity_tui.engine.choose.modes.ranges import outside_ranges, reserve_text
from capacity_tui.engine.choose.modes.shares import memory_budget, used_shares
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate import Estimate, FilledBy, Note, ResolvedPlan, estimate_resolved, unsaid
from capacity_tui.engine.notebook import ShownInNotebooks
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.units import format_bytes, format_percent

Values: TypeAlias = dict[str, object]
Reasons: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True)
class ModePlan(ShownInNotebooks):
    """What one mode makes of a plan.

    Attributes:
        mode: the mode's figures.
        resolved: the plan with everything filled in, and what its names stand for.
        estimate: its estimate.
        reasons: why each open field got its value.
        catalog: facts.
        running: why each field about data, and about the run while it goes on, got its value.
    """

    mode: Mode
    resolved: ResolvedPlan
    estimate: Estimate
    reasons: Mapping[str, str]
    catalog: Catalog = field(repr=False, compare=False)
    running: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, mode: Mode, resolved: ResolvedPlan, estimate: Estimate, reasons: Mapping[str, str], catalog: Catalog
    ) -> ModePlan:
        """Return an estimated plan with what the mode says of its data, and of the run while it goes on."""
        resolved, estimate, feeding = with_data_settings(resolved, mode, estimate, catalog)
        plan, running = with_run_policies(resolved.plan, mode, estimate, catalog)
        return cls(mode, replace(resolved, plan=plan), estimate, reasons, catalog, {**feeding, **running})

    @property
    def settings(self) -> Plan:
        """The plan without what is said of its loader and of the run while it goes on: runs alike in it are alike."""
        plan = settings_alone(self.plan)
        return plan.model_copy(update={"data": without_feeding(plan.data)})

    @property
    def plan(self) -> Plan:
        """The plan with everything filled in."""
        return self.resolved.plan

    @property
    def annotated_estimate(self) -> Estimate:
        """The estimate with what the mode warns of, why it filled open fields as it did, and what else would fit."""
        estimate = self.estimate
        warnings = (*estimate.warnings, *mode_warnings(self.mode, estimate, self.resolved.cluster))
        basis = replace(estimate.basis, chosen=self.reasons, running=self.running, filled_by=self.filled_by)
        details = {**estimate.details, **serving_room(self.resolved, self.catalog)}
        assumed = unsaid(self.resolved, self.reasons)
        return replace(estimate, warnings=warnings, basis=basis, details=details, assumed=assumed)

    @property
    def filled_by(self) -> FilledBy | None:
        """What the mode is and what the run uses of its shares; None where it had nothing to choose."""
        if not self.reasons:
            return None
        shares = used_shares(self.mode, self.estimate, self.resolved.cluster)
        if self.plan.task == "infer":
            return FilledBy(self.mode.title, self.mode.line, shares)
        outside = outside_ranges(self.mode, self.plan, self.estimate, self.reasons)
        return FilledBy(self.mode.title, self.mode.line, shares, reserve_text(self.mode), tuple(outside))


@dataclass(frozen=True, slots=True)
class Settled:
    """What one mode chose, before it is estimated.

    Attributes:
        mode: the mode's figures.
        resolved: the plan with everything filled in, and what its names stand for.
        reasons: why each open field got its value.
        notes: what had to be given up.
        step_seconds: time of a step at the least, where the settings were searched for.
    """

    mode: Mode
    resolved: ResolvedPlan
    reasons: Mapping[str, str]
    notes: tuple[Note, ...] = ()
    step_seconds: float | None = None

    def estimated(self, catalog: Catalog) -> ModePlan:
        """Return the plan with its estimate."""
        estimate = estimate_resolved(self.resolved, catalog)
        estimate = replace(estimate, warnings=(*estimate.warnings, *self.notes))
        return ModePlan.of(self.mode, self.resolved, estimate, self.reasons, catalog)


def budget_text(mode: Mode, cluster: Cluster) -> str:
    """Return a mode's memory in words."""
    budget = memory_budget(mode, cluster)
    if budget is None:
        return "no memory limit known"
    return f"{format_bytes(budget)}, {format_percent(mode.utilization)} of memory"
