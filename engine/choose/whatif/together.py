"""Variants of a plan, those that differ in numbers alone estimated in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.space.grid import Floats
from capacity_tui.engine.choose.space.stacking import alike, select, stacked
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import (
    Estimate,
    ResolvedPlan,
    assemble,
    central,
    estimate_resolved,
    estimate_run,
    evidence_before,
    figure,
    resolve_plan,
    run_splits,
    with_numbers,
)
from capacity_tui.engine.estimate.serving import ServingRun, serving_run
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.plan import Values, edited
from capacity_tui.engine.uncertainty import Evidence

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.plan import Plan

Run: TypeAlias = TransformerRun | ServingRun
# What these fields say is looked up anew.
_ELSEWHERE = ("model.", "hardware.", "pricing.")


@dataclass(frozen=True, slots=True)
class StackedEstimate:
    """Variants that one estimate of arrays covers.

    Attributes:
        indices: which of the variants asked for these are, in the order of the arrays.
        estimate: their estimate.
    """

    indices: tuple[int, ...]
    estimate: Estimate

    def numbers(self, key: str) -> Floats | None:
        """Return a figure of each of them; None where they have none of this key."""
        value = central(figure(self.estimate, key).value)
        if value is None:
            return None
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (len(self.indices),))


def estimate_stacked(
    variants: Sequence[ResolvedPlan], catalog: Catalog, *, with_ranges: bool = False
) -> list[StackedEstimate]:
    """Estimate variants of a plan in as few calls as there are kinds of them; what cannot run is left out.

    Args:
        with_ranges: whether figures have ranges, for which the variants have to name the same things.
    """
    groups: list[tuple[list[int], list[Run]]] = []
    estimates: list[StackedEstimate] = []
    for place, resolved in enumerate(variants):
        try:
            run = _run(resolved, catalog)
            if run is None:
                estimates.append(StackedEstimate((place,), estimate_resolved(resolved, catalog)))
        except CapacityError:
            continue
        if run is None:
            continue
        for places, runs in groups:
            if _same_job(resolved, variants[places[0]]) and alike(run, runs[0]):
                places.append(place)
                runs.append(run)
                break
        else:
            groups.append(([place], [run]))
    for places, runs in groups:
        like = variants[places[0]]
        evidence = evidence_before(like, catalog) if with_ranges else None
        estimates.append(_together(places, runs, like, evidence))
    return estimates


def estimate_changes(
    plan: Plan, changes: Sequence[Values], machine: Machine | None = None, catalog: Catalog | None = None
) -> tuple[Estimate | CapacityError, ...]:
    """Estimate a plan with each of several changes; what cannot be is told by its error.

    Args:
        changes: new values by path, as a file or a person writes them.
    """
    facts = catalog or load_catalog()
    base = resolve_plan(plan, facts, machine)
    estimates: dict[int, Estimate | CapacityError] = {}
    variants: list[tuple[int, ResolvedPlan]] = []
    for number, change in enumerate(changes):
        same = None if any(path.startswith(_ELSEWHERE) for path in change) else base
        try:
            changed = edited(plan, change, facts).plan
            variants.append((number, resolve_plan(changed, facts, machine, same)))
        except CapacityError as error:
            estimates[number] = error
    for together in estimate_stacked([resolved for _, resolved in variants], facts, with_ranges=True):
        shape = (len(together.indices),)
        for at, place in enumerate(together.indices):
            estimates[variants[place][0]] = select(together.estimate, (at,), shape)
    for number, resolved in variants:
        if number not in estimates:
            estimates[number] = _alone(resolved, facts)
    return tuple(estimates[number] for number in range(len(changes)))


def _alone(resolved: ResolvedPlan, catalog: Catalog) -> Estimate | CapacityError:
    try:
        return estimate_resolved(resolved, catalog)
    except CapacityError as error:
        return error


def _run(resolved: ResolvedPlan, catalog: Catalog) -> Run | None:
    """Return the run of a transformer; None for other kinds of models."""
    if resolved.shape is None:
        return None
    if resolved.plan.task == "infer":
        return serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
    return transformer_run(resolved.plan, resolved.shape, resolved.cluster, catalog)


def _same_job(one: ResolvedPlan, other: ResolvedPlan) -> bool:
    """Whether two plans ask for as much work, at the same prices, in the type whose measured rates they share."""
    a, b = one.plan.training, other.plan.training
    measured = bool(one.cluster.device.efficiency.curves)
    return (
        (a.steps, a.tokens, a.epochs, a.samples) == (b.steps, b.tokens, b.epochs, b.samples)
        and one.plan.pricing == other.plan.pricing
        and not (measured and a.precision != b.precision)
    )


def _together(
    places: Sequence[int], runs: Sequence[Run], like: ResolvedPlan, evidence: Evidence | None
) -> StackedEstimate:
    run = stacked(runs, (len(runs),)) if len(runs) > 1 else runs[0]
    estimate = estimate_run(run, like.plan)
    if evidence is not None:
        cp, zero = (run.cp, run.zero) if isinstance(run, TransformerRun) else (1.0, 0.0)
        splits = run_splits(run.tp, run.pp, cp, run.ep, zero)
        work = replace(estimate.work, evidence=with_numbers(evidence, estimate.work, run.cluster.devices, splits))
        estimate = assemble(work, run.cluster, like.plan.pricing, estimate.computation.iteration)
    return StackedEstimate(tuple(places), estimate)
