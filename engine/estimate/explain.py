"""Why a number is what it is: formula, the numbers put in, sources, assumptions, strongest lever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.estimate.equation import Derivation, recording
from capacity_tui.engine.estimate.estimate import estimate_settled, work_of
from capacity_tui.engine.estimate.figures import Figure, central, figure, result_key
from capacity_tui.engine.estimate.intervals import GENERAL
from capacity_tui.engine.estimate.lever import Lever, strongest_lever
from capacity_tui.engine.estimate.remarks import remarks
from capacity_tui.engine.estimate.resolve import Settled, settle
from capacity_tui.engine.estimate.result import Interval
from capacity_tui.engine.estimate.terms import Sum, Term, mean, sum_of
from capacity_tui.engine.workload.plan import Plan

if TYPE_CHECKING:
    from capacity_tui.engine.hardware.machine import Machine

# Where every parameter is active, one formula gives both.
SAME_FORMULA = {"model.active_parameters": "model.parameters"}
# A part that several phases evaluate shows no more of its equations than these.
MOST_DERIVATIONS = 4


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything behind one number.

    Attributes:
        key: result key.
        title: what it is called.
        unit: its unit.
        value: the number, with its interval where it has one.
        sum: what it, or the number its formula starts from, is the sum of.
        derivations: the equations evaluated for it, with the numbers put in; each opens into earlier ones.
        remarks: what no formula says: why it is zero or missing, where a given number comes from.
        interval_basis: where the interval comes from, empty where there is none.
        calibration: which measured constants went in.
        assumed: what was not given.
        lever: the strongest knob.
    """

    key: str
    title: str
    unit: str
    value: Figure
    sum: Sum | None
    derivations: tuple[Derivation, ...]
    remarks: tuple[str, ...]
    interval_basis: str
    calibration: str
    assumed: tuple[str, ...]
    lever: Lever | None

    @property
    def terms(self) -> tuple[Term, ...]:
        """The addends of the sum."""
        return () if self.sum is None else self.sum.terms


def explain(plan: Plan, key: str, machine: Machine | None = None, catalog: Catalog | None = None) -> Explanation:
    """Explain one figure of a plan whose fields are not ``auto``.

    Raises:
        PlanError: no result has that key, or the plan cannot be estimated.
    """
    facts, key = catalog or load_catalog(), result_key(key)
    settled = settle(plan, facts, machine)
    with recording() as record:
        estimate = estimate_settled(settled, facts)
        title, unit, value = figure(estimate, key)
        summed = sum_of(key, settled, estimate, facts)
    center = central(value)
    number = None if center is None else mean(center)
    return Explanation(
        key=key,
        title=title,
        unit=unit,
        value=value,
        sum=summed,
        derivations=_derivations(record, SAME_FORMULA.get(key, key), number),
        remarks=tuple(remarks(key, value, settled, estimate, facts)),
        interval_basis=_interval_basis(key, settled, facts) if isinstance(value, Interval) else "",
        calibration=estimate.basis.calibration,
        assumed=estimate.basis.assumed,
        lever=None if number is None else strongest_lever(settled, key, number, facts, machine),
    )


def _derivations(record: Iterable[Derivation], key: str, value: float | None) -> tuple[Derivation, ...]:
    """Return the equations evaluated for a key, each once: that which gave the result, else all that led to it."""
    found: list[Derivation] = []
    for derivation in record:
        if derivation.part == key and derivation not in found:
            found.append(derivation)
    exact = [each for each in found if value is not None and np.allclose(mean(each.result), value, rtol=1e-9, atol=0)]
    return tuple(exact[:1] or (found[:MOST_DERIVATIONS] if value else ()))


def _interval_basis(key: str, settled: Settled, catalog: Catalog) -> str:
    work = work_of(settled, catalog)
    if work is None:
        return GENERAL
    return work.memory_basis if key.startswith("memory.") else work.step_basis


def interval_text(value: Figure) -> str:
    """Return the range of a figure in percent of its value, empty where it has none."""
    if not isinstance(value, Interval):
        return ""
    center = mean(value.value) or 1.0
    low, high = mean(value.low) / center - 1.0, mean(value.high) / center - 1.0
    return f"{low:+.0%} to {high:+.0%}"
