"""Why a number is what it is: formula, the numbers put in, sources, assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import (
    Derivation,
    Estimate,
    FigureValue,
    ResolvedPlan,
    estimate_resolved,
    figure,
    named_figure,
    recording,
)
from capacity_tui.engine.explain.notes import remarks
from capacity_tui.engine.explain.terms import Sum, Term, sum_of
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.uncertainty import Interval

# Where every parameter is active, one formula gives both.
SAME_FORMULA: Mapping[str, str] = {Figure.MODEL_ACTIVE_PARAMETERS: Figure.MODEL_PARAMETERS}
# Figures of the model and of the datasheet: no measured constant goes into them.
WITHOUT_CONSTANTS = ("model.", "bottleneck.")
# A part that several phases evaluate shows no more of its equations than these.
MOST_DERIVATIONS = 4


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything behind one number.

    Attributes:
        figure: the number, with its name, unit and range.
        sum: what it, or the number its formula starts from, is the sum of.
        derivations: the equations evaluated for it, with the numbers put in; each opens into earlier ones.
        remarks: what no formula says: why it is zero or missing, where a given number comes from.
        interval_basis: where the interval comes from, empty where there is none.
        calibration: which measured constants went in.
        assumed: what was not given.
    """

    figure: FigureValue
    sum: Sum | None
    derivations: tuple[Derivation, ...]
    remarks: tuple[str, ...]
    interval_basis: str
    calibration: str
    assumed: tuple[str, ...]

    @property
    def key(self) -> str:
        """The result key."""
        return self.figure.metric.key

    @property
    def terms(self) -> tuple[Term, ...]:
        """The addends of the sum."""
        return () if self.sum is None else self.sum.terms


def explain_resolved(resolved: ResolvedPlan, name: str, catalog: Catalog) -> Explanation:
    """Estimate a resolved plan and explain one of its figures.

    Raises:
        PlanError: no result has that key, or the plan cannot be estimated.
    """
    return explain_estimate(resolved, estimate_resolved(resolved, catalog, recorded=True), name, catalog)


def explain_estimate(resolved: ResolvedPlan, estimate: Estimate, name: str, catalog: Catalog) -> Explanation:
    """Explain one figure from its estimate's own work and the equations it recorded; nothing is computed again.

    Args:
        resolved: the plan.
        estimate: its estimate, with its derivations.
        name: key of the result.
        catalog: facts.

    Raises:
        PlanError: no result has that key.
    """
    key = named_figure(name, estimate, str(resolved.plan.task))
    with recording(after=estimate.derivations) as record:
        found = figure(estimate, key)
        summed = sum_of(key, resolved, estimate, catalog)
    return Explanation(
        figure=found,
        sum=summed,
        derivations=_derivations(record, SAME_FORMULA.get(key, key), found.number),
        remarks=tuple(remarks(found, resolved, estimate, catalog)),
        interval_basis=_basis(key, found, estimate),
        calibration="" if key.startswith(WITHOUT_CONSTANTS) else estimate.basis.calibration,
        assumed=estimate.basis.assumed,
    )


def _basis(key: str, found: FigureValue, estimate: Estimate) -> str:
    """Return what the range of a figure rests on; empty where it has none."""
    return estimate.range_of(key).basis if isinstance(found.value, Interval) else ""


def _derivations(record: Iterable[Derivation], key: str, value: float | None) -> tuple[Derivation, ...]:
    """Return the equations evaluated for a key, each once: that which gave the result, else all that led to it."""
    found: list[Derivation] = []
    for derivation in record:
        if derivation.part == key and derivation not in found:
            found.append(derivation)
    exact = [each for each in found if value is not None and np.allclose(mean(each.result), value, rtol=1e-9, atol=0)]
    return tuple(exact[:1] or (found[:MOST_DERIVATIONS] if value else ()))
