"""Variants of a plan that differ in numbers alone, estimated in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.space.grid import Floats
from capacity_tui.engine.choose.space.stacking import alike, stacked
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.estimate import estimate_resolved, estimate_run
from capacity_tui.engine.estimate.figures import central, figure
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.estimate.serving.resolve import serving_run
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.run import TransformerRun

Run: TypeAlias = TransformerRun | ServingRun


@dataclass(frozen=True, slots=True)
class Together:
    """Variants that one estimate of arrays covers.

    Attributes:
        places: which of the variants asked for these are, in the order of the arrays.
        estimate: their estimate.
    """

    places: tuple[int, ...]
    estimate: Estimate

    def numbers(self, key: str) -> Floats | None:
        """Return a figure of each of them; None where they have none of this key."""
        value = central(figure(self.estimate, key).value)
        if value is None:
            return None
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (len(self.places),))


def estimated_together(variants: Sequence[ResolvedPlan], catalog: Catalog) -> list[Together]:
    """Estimate variants of a plan in as few calls as there are kinds of them; what cannot run is left out.

    Args:
        variants: resolved plans.
        catalog: facts.
    """
    groups: list[tuple[list[int], list[Run]]] = []
    found: list[Together] = []
    for place, resolved in enumerate(variants):
        try:
            run = _run(resolved, catalog)
            if run is None:
                found.append(Together((place,), estimate_resolved(resolved, catalog)))
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
    return [*found, *(_together(places, runs, variants[places[0]]) for places, runs in groups)]


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


def _together(places: Sequence[int], runs: Sequence[Run], like: ResolvedPlan) -> Together:
    run = stacked(runs, (len(runs),)) if len(runs) > 1 else runs[0]
    return Together(tuple(places), estimate_run(run, like.plan))
