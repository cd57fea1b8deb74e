"""The space of a question about serving: what varies beside what was asked, and what stays as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.modes.modes import fill, open_fields
from capacity_tui.engine.choose.modes.serving_settings import MOST_REQUESTS
from capacity_tui.engine.choose.space.grid import Axis, Values, powers_of_two
from capacity_tui.engine.choose.space.layouts import LAYOUT_SIZES, layout_axes
from capacity_tui.engine.choose.space.serving import CHOSEN, ServingSpace, serving_space
from capacity_tui.engine.estimate import ResolvedPlan, resolve_plan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import AUTO, FOLLOWING, Plan, placeholders, plan_layout, with_values

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

BATCH, REPLICAS = Key.INFERENCE_BATCH, Key.PARALLELISM_DP


def served_space(
    plan: Plan, axes: tuple[Axis, ...], everything: bool, catalog: Catalog, machine: Machine | None
) -> tuple[ServingSpace, Values]:
    """Return the configurations of a plan that serves, and what was filled in for all of them.

    What the plan leaves open of layout and batch varies too; where one size of a layout is asked for, the other is 1.

    Args:
        axes: fields that were asked for.
        everything: whether layout and batch vary even where the plan gives them.

    Raises:
        CapacityError: nothing of it can be estimated.
    """
    paths = {axis.path for axis in axes}
    filled: Values = {}
    if not paths.isdisjoint(CHOSEN):
        filled = {path: 1 for path in CHOSEN if path not in paths and plan.value(path) is None}
    wanted = set(_wanted(with_values(plan, filled), paths, everything))
    lacking = [path for path in open_fields(with_values(plan, filled)) if path not in paths | wanted]
    if lacking:
        chosen = fill(plan, "balanced", machine, catalog).plan
        filled |= {path: chosen.value(path) for path in lacking}
    whole = with_values(plan, filled)
    resolved = _resolved(whole, paths | wanted, catalog, machine)
    usual = tuple(_usual_axes(resolved, wanted, catalog))
    assert resolved.shape is not None  # noqa: S101 - only transformers come here
    return serving_space(whole, resolved, resolved.shape, catalog, (*axes, *usual)), filled


def _wanted(plan: Plan, given: Collection[str], everything: bool) -> Iterator[str]:
    """Yield the fields that vary though nobody gave values for them."""
    loaded = plan.inference.request_rate is not None or plan.inference.concurrency is not None
    for path in CHOSEN if loaded else (*CHOSEN, BATCH):
        if path not in given and (everything or plan.value(path) in (None, AUTO)):
            yield path


def _resolved(plan: Plan, varied: Collection[str], catalog: Catalog, machine: Machine | None) -> ResolvedPlan:
    """Return the plan resolved with placeholders in what varies."""
    held = placeholders()
    values: Values = {path: held[path] for path in varied if path in held}
    sizes = [path for path in varied if path in LAYOUT_SIZES]
    follow = {f"parallelism.{name}" for name in FOLLOWING}
    values |= {path: None if path in follow else 1 for path in sizes}
    if sizes:
        values[REPLICAS] = None
    return resolve_plan(with_values(plan, values), catalog, machine)


def _usual_axes(resolved: ResolvedPlan, wanted: Collection[str], catalog: Catalog) -> Iterator[Axis]:
    """Yield the axes of fields whose values nobody gave."""
    assert resolved.shape is not None  # noqa: S101 - only transformers come here
    layout = plan_layout(resolved.plan, resolved.shape, catalog)
    yield from layout_axes(layout, int(resolved.cluster.per_node), wanted)
    if BATCH in wanted:
        yield Axis(BATCH, powers_of_two(MOST_REQUESTS))
