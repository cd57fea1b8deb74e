"""Open formats of serving, and the runs of one replica laid out in several ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.numeric import Number, where
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.layout_rules import Layout, with_following

# Formats of weights to try, the least quantized first.
FORMATS = ("bf16", "int8", "nf4")
WEIGHTS, CACHE = "inference.weights", "inference.kv_cache"


def formats(resolved: ResolvedPlan, wanted: Sequence[str], catalog: Catalog) -> list[ResolvedPlan]:
    """Return the plan in each format of weights and cache that may be chosen, what rounds least first."""
    engines = catalog.engine_rows(resolved.plan.inference.engine)
    weights: tuple[str, ...] = (resolved.plan.inference.weights_format,)
    caches: tuple[str, ...] = (resolved.plan.inference.kv_cache,)
    if WEIGHTS in wanted:
        weights = next((row.tried_weights for row in engines if row.tried_weights), FORMATS)
    if CACHE in wanted:
        caches = (*caches, *(row.lighter_cache for row in engines[:1] if row.lighter_cache))
    pairs = [(weight, cache) for weight in weights for cache in caches]
    if len(pairs) == 1:
        return [resolved]
    plans = (with_values(resolved.plan, {WEIGHTS: weight, CACHE: cache}) for weight, cache in pairs)
    return [resolve_plan(plan, catalog, like=resolved) for plan in plans]


def chosen_formats(resolved: ResolvedPlan, wanted: Sequence[str]) -> dict[str, object]:
    """Return the formats of a plan that were open."""
    return {path: resolved.plan.value(path) for path in (WEIGHTS, CACHE) if path in wanted}


def spread(layout: Layout, sizes: Mapping[str, Number], replicas: int | None) -> Layout:
    """Return a layout in other sizes, with as many replicas as the plan gives or the devices hold."""
    given = {"dp"} if replicas is not None else set[str]()
    return with_following(replace(layout, dp=float(replicas or 1), **sizes), given)


def laid_out(run: ServingRun, layout: Layout) -> ServingRun:
    """Return a run in a layout; its replicas share the load."""
    expert = where(run.ep > 1, run.etp, layout.tp)
    return replace(run, tp=layout.tp, pp=layout.pp, dp=layout.dp, etp=expert)
