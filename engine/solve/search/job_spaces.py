"""The spaces of one training or serving plan: what varies besides what was asked, cut where runs cannot be stacked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.transformer import transformer_run
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.plan import FOLLOWING, Plan, placeholders, plan_layout, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes.modes import fill, open_fields
from capacity_tui.engine.solve.modes.serving_settings import MOST_REQUESTS
from capacity_tui.engine.solve.space.axes import LAYOUT_SIZES, Axis, Grid, Values, layout_axes, powers_of_two
from capacity_tui.engine.solve.space.serving import CHOSEN, ServingSpace, serving_space
from capacity_tui.engine.solve.space.space import Space
from capacity_tui.engine.solve.space.stacking import can_stack
from capacity_tui.engine.solve.space.training import NUMBERS, training_space

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

BATCH, SEQUENCE = Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_SEQ_LEN

# What rules of layouts look at, and how many combinations of it they judge at once.
_JUDGED = frozenset({*LAYOUT_SIZES, BATCH, SEQUENCE})

MOST_LAYOUTS = 2**20


@dataclass(frozen=True, slots=True)
class Refused:
    """A space, or combinations of one, that cannot be: ``change`` is what they have in common."""

    change: Values
    error: CapacityError
    count: int


def trained_spaces(
    plan: Plan, resolved: ResolvedPlan, shape: TransformerShape, catalog: Catalog, axes: tuple[Axis, ...]
) -> Iterator[Space | Refused]:
    """Yield the spaces of a training plan, and values that no run can have.

    Args:
        plan: the plan as the user gave it: sizes that it leaves out follow from the others.
        resolved: the same with placeholders where it is open, and in what varies.
    """
    # The sequence of a model over images follows from the image.
    axes = tuple(axis for axis in axes if shape.vision is None or axis.path != SEQUENCE)
    # Settings change first and few values before many: the inner loops of arrays are long, and small arrays stay small.
    ordered = sorted(axes, key=lambda axis: (axis.path in NUMBERS, len(axis.values)))
    cuts: list[list[Axis]] = []
    for axis in ordered:
        parts, unusable = _stackable_axis(resolved, shape, catalog, axis)
        others = Grid(tuple(axes)).size // len(axis.values)
        yield from (Refused({axis.path: value}, error, others) for value, error in unusable)
        cuts.append(parts)
    replica_batch = None
    if plan.training.global_batch == AUTO and not any(axis.path == BATCH for axis in axes):
        replica_batch = catalog.modes["balanced"].replica_batch
    for stackable in product(*cuts):
        for part in _judged_at_once(stackable):
            yield training_space(plan, resolved, shape, catalog, part, replica_batch=replica_batch)


def _stackable_axis(
    resolved: ResolvedPlan, shape: TransformerShape, catalog: Catalog, axis: Axis
) -> tuple[list[Axis], list[tuple[object, CapacityError]]]:
    """Return an axis in parts whose values differ in numbers alone, and the values that no run can have."""
    if axis.path in NUMBERS:
        return [axis], []
    groups: list[tuple[object, list[object]]] = []
    unusable: list[tuple[object, CapacityError]] = []
    for value in axis.values:
        try:
            run = transformer_run(with_values(resolved.plan, {axis.path: value}), shape, resolved.cluster, catalog)
        except CapacityError as error:
            unusable.append((value, error))
            continue
        for like, values in groups:
            if can_stack(run, like):
                values.append(value)
                break
        else:
            groups.append((run, [value]))
    return [Axis(axis.path, tuple(values)) for _, values in groups], unusable


def _judged_at_once(axes: tuple[Axis, ...]) -> Iterator[tuple[Axis, ...]]:
    """Yield axes in parts of which rules judge all layouts at once: many sizes would take all memory."""
    judged = Grid(tuple(axis for axis in axes if axis.path in _JUDGED))
    for block in judged.blocks(MOST_LAYOUTS):
        part = {axis.path: axis for axis in judged.part(block).axes}
        yield tuple(part.get(axis.path, axis) for axis in axes)


REQUESTS, REPLICAS = Key.INFERENCE_BATCH, Key.PARALLELISM_DP


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
    loaded = plan.inference.is_load
    for path in CHOSEN if loaded else (*CHOSEN, REQUESTS):
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
    if REQUESTS in wanted:
        yield Axis(REQUESTS, powers_of_two(MOST_REQUESTS))
