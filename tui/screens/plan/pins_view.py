"""Plans that stand beside the plan, as columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import headline
from capacity_tui.engine.solve.modes import ModePlan, fill, single
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.screens.plan.estimate_view import column
from capacity_tui.tui.shown.compared import Column

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class PinnedPlans:
    """Estimates of the plans beside a plan, each made once: they stay as they are while the plan is edited.

    Attributes:
        kept: plan, machine and estimate of each, by the plan's identity.
    """

    kept: dict[int, tuple[Plan, Machine | None, ModePlan]] = field(default_factory=dict)

    def filled(self, plan: Plan, machine: Machine | None, catalog: Catalog) -> ModePlan:
        """Return the estimate of a plan.

        Raises:
            CapacityError: it cannot be estimated.
        """
        known = self.kept.get(id(plan))
        if known is None or known[0] is not plan or known[1] is not machine:
            known = plan, machine, fill(plan, "balanced", machine, catalog)
            self.kept[id(plan)] = known
        return known[2]

    def column(self, name: str, plan: Plan, machine: Machine | None, catalog: Catalog) -> Column:
        """Return a plan as a column; one that cannot be estimated says why."""
        try:
            filled = self.filled(plan, machine, catalog)
        except CapacityError as error:
            return Column(name, Verdict.CANNOT_RUN, error.one_line(), (), is_pinned=True)
        made = column(single(filled), catalog, machine)
        about = f"{name}: {headline(filled.plan, filled.estimate)}"
        return replace(made, mode=name, brief="", title=name, alike=(), about=(about,), is_pinned=True)
