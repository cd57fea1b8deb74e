"""The spaces of a training plan: axes in the order that is fastest, cut where runs differ in more than numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.space.grid import Axis, Grid, Values
from capacity_tui.engine.choose.space.layouts import LAYOUT_SIZES
from capacity_tui.engine.choose.space.space import Space
from capacity_tui.engine.choose.space.stacking import alike
from capacity_tui.engine.choose.space.training import NUMBERS, training_space
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import ResolvedPlan
from capacity_tui.engine.estimate.transformer import transformer_run
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.plan import AUTO, Plan, with_values

BATCH, SEQUENCE = Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_SEQ_LEN
# What rules of layouts look at, and how many combinations of it they judge at once.
_JUDGED = frozenset({*LAYOUT_SIZES, BATCH, SEQUENCE})
MOST_LAYOUTS = 2**20


@dataclass(frozen=True, slots=True)
class Unusable:
    """Configurations that cannot be.

    Attributes:
        values: what they have in common.
        error: why they cannot be.
        count: how many they are.
    """

    values: Values
    error: CapacityError
    count: int


def trained_spaces(
    plan: Plan, resolved: ResolvedPlan, shape: TransformerShape, catalog: Catalog, axes: tuple[Axis, ...]
) -> Iterator[Space | Unusable]:
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
        parts, unusable = _alike_parts(resolved, shape, catalog, axis)
        others = Grid(tuple(axes)).size // len(axis.values)
        yield from (Unusable({axis.path: value}, error, others) for value, error in unusable)
        cuts.append(parts)
    replica_batch = None
    if plan.training.global_batch == AUTO and not any(axis.path == BATCH for axis in axes):
        replica_batch = catalog.modes["balanced"].replica_batch
    for stackable in product(*cuts):
        for part in _judged_at_once(stackable):
            yield training_space(plan, resolved, shape, catalog, part, replica_batch=replica_batch)


def _alike_parts(
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
            if alike(run, like):
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
