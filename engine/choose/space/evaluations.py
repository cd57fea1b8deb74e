"""Spaces that were evaluated once, and serve others as far as they hold the same runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from capacity_tui.engine.choose.space.excluded import held
from capacity_tui.engine.choose.space.grid import Grid
from capacity_tui.engine.choose.space.space import BLOCK
from capacity_tui.engine.choose.space.training import Evaluated, TrainingSpace
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Evaluations:
    """Small spaces that were evaluated for one mode, and serve the others of the same comparison."""

    kept: list[tuple[TrainingSpace, Evaluated]] = field(default_factory=list)

    def blocks(self, space: TrainingSpace) -> Iterator[Evaluated]:
        """Yield a space's blocks, evaluated unless they already were.

        Args:
            space: of a plan on the hardware that all plans of this comparison have.
        """
        for other, evaluated in self.kept:
            found = _found_in(evaluated, other, space)
            if found is not None:
                yield found
                return
        for evaluated in space.blocks():
            if space.grid.size <= BLOCK:
                self.kept.append((space, evaluated))
            yield evaluated


def _found_in(evaluated: Evaluated, other: TrainingSpace, space: TrainingSpace) -> Evaluated | None:
    """Return what became of a space, as far as another one of the comparison holds its very runs; None where not.

    Plans may differ in the batch of a step, as long as it comes to the same in each run.
    """
    alike = (
        [rule.id for rule in space.rules] == [rule.id for rule in other.rules]
        and space.plan.parallelism == other.plan.parallelism
        and _without_batch(space.resolved.plan) == _without_batch(other.resolved.plan)
    )
    if not alike:
        return None
    if (space.grid, *_of_batch(space)) == (other.grid, *_of_batch(other)):
        return evaluated
    if not _is_corner(space.grid, other.grid):
        return None
    ours, theirs = (np.broadcast_to(each.batches(space.grid), space.grid.shape) for each in (space, other))
    return _corner(evaluated, space) if np.array_equal(ours, theirs) else None


def _of_batch(space: TrainingSpace) -> tuple[object, ...]:
    return space.resolved.plan.training.global_batch, space.plan.training.global_batch, space.replica_batch


def _is_corner(grid: Grid, other: Grid) -> bool:
    """Whether a grid has the first values of each axis of another."""
    return len(grid.axes) == len(other.axes) and all(
        (axis.path, axis.values) == (whole.path, whole.values[: len(axis.values)])
        for axis, whole in zip(grid.axes, other.axes, strict=True)
    )


def _without_batch(plan: Plan) -> Plan:
    return plan.model_copy(update={"training": plan.training.model_copy(update={"global_batch": None})})


def _corner(evaluated: Evaluated, space: TrainingSpace) -> Evaluated:
    """Return the part of an evaluated space that a smaller one is."""
    lengths = space.grid.shape

    def of(value: Number) -> Number:
        if not isinstance(value, np.ndarray) or not value.ndim:
            return value
        # What does not depend on an axis has length 1 there.
        return value[tuple(slice(0, length) for length in lengths[-value.ndim :])]

    return Evaluated(
        grid=space.grid,
        possible=held(space.layout(space.grid), space.rules),
        allocated_bytes=of(evaluated.allocated_bytes),
        reserved_bytes=of(evaluated.reserved_bytes),
        host_bytes=of(evaluated.host_bytes),
        step_seconds=of(evaluated.step_seconds),
        units_per_second=of(evaluated.units_per_second),
    )
