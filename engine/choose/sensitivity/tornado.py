"""What moves a figure of a plan most: its fields by a step each, and what nobody knows exactly, from end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.sensitivity.knobs import knob_swings
from capacity_tui.engine.choose.sensitivity.measurements import Narrowing, measure_next
from capacity_tui.engine.choose.sensitivity.swing import Swing
from capacity_tui.engine.choose.sensitivity.unknowns import unknown_swings
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate, FigureValue, figure, figure_keys, open_length
from capacity_tui.engine.notebook import ShownInNotebooks
from capacity_tui.engine.plan import Plan

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class Sensitivity(ShownInNotebooks):
    """What moves a figure.

    Attributes:
        figure: the figure as the plan stands, with its range.
        swings: what moves it, the most first.
        measure_next: what would narrow its range most; None where nothing that this program measures does.
    """

    figure: FigureValue
    swings: tuple[Swing, ...]
    measure_next: Narrowing | None

    @property
    def value(self) -> float:
        """The figure as the plan stands."""
        return self.figure.number or 0.0


def sensitivity(plan: Plan, of: str, machine: Machine | None = None, catalog: Catalog | None = None) -> Sensitivity:
    """Return what moves a figure of a plan most, one thing at a time, and what would make it surer.

    Args:
        plan: the plan; fields that are ``auto`` get the balanced mode's values, and stay at them.
        of: result key of the figure, or a short word for it such as ``time``.

    Raises:
        CapacityError: no figure is called that, this plan has no such figure, or it cannot be estimated.
    """
    facts = catalog or load_catalog()
    filled = fill(plan, "balanced", machine, facts)
    case = EstimatedPlan.of(plan, filled, machine)
    value = _figure(case.estimate, of, str(case.plan.task))
    key = value.metric.key
    if value.number is None:
        raise PlanError(f"this plan has no {value.metric.label}", value.absence, "ask for another figure")
    unknowns = tuple(unknown_swings(case, key, value.number))
    swings = sorted((*knob_swings(case, key, value.number), *unknowns), key=lambda swing: swing.swing, reverse=True)
    return Sensitivity(value, tuple(swings), measure_next(case, key, value.number, unknowns))


def _figure(estimate: Estimate, of: str, task: str) -> FigureValue:
    """Return the first figure that a name may mean and the plan has; what a word means for any length is one."""
    keys = figure_keys(of, task)
    if of not in keys:
        keys = (*keys, *map(open_length, keys))
    figures = [figure(estimate, key) for key in keys]
    return next((value for value in figures if value.number is not None), figures[0])
