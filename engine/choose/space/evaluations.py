"""Spaces that were evaluated once, and serve others of the same runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from capacity_tui.engine.choose.space.space import BLOCK, Block
from capacity_tui.engine.choose.space.training import TrainingSpace
from capacity_tui.engine.plan import Plan


@dataclass(frozen=True, slots=True)
class Evaluations:
    """Small spaces that were evaluated for one mode, and serve the others of the same comparison."""

    kept: list[tuple[TrainingSpace, tuple[Block, ...]]] = field(default_factory=list)

    def blocks(self, space: TrainingSpace) -> Iterator[Block]:
        """Yield a space's blocks, evaluated unless they already were.

        Args:
            space: of a plan on the hardware that all plans of this comparison have.
        """
        for other, blocks in self.kept:
            if _same_runs(space, other):
                yield from blocks
                return
            if _same_but_open_batch(space, other):
                yield from (_of_batch(block, space, other) for block in blocks)
                return
        pieces = space.lazy_blocks()
        if space.grid.size > BLOCK:
            yield from (piece() for piece in pieces)
            return
        self.kept.append((space, tuple(piece() for piece in pieces)))
        yield from self.kept[-1][1]


def _same_runs(space: TrainingSpace, other: TrainingSpace) -> bool:
    return _same_but_batch(space, other) and _batch_of(space) == _batch_of(other)


def _same_but_open_batch(space: TrainingSpace, other: TrainingSpace) -> bool:
    """Whether a space takes a batch as given that the other has wherever a micro-batch asks for no more."""
    given = space.plan.training.global_batch
    return (
        _same_but_batch(space, other)
        and space.batch is None
        and other.batch is not None
        and isinstance(given, int)
        and given == other.batch.usual
    )


def _same_but_batch(space: TrainingSpace, other: TrainingSpace) -> bool:
    return (
        space.grid == other.grid
        and [rule.id for rule in space.rules] == [rule.id for rule in other.rules]
        and space.plan.parallelism == other.plan.parallelism
        and _without_batch(space.resolved.plan) == _without_batch(other.resolved.plan)
    )


def _batch_of(space: TrainingSpace) -> tuple[object, ...]:
    return space.resolved.plan.training.global_batch, space.plan.training.global_batch, space.batch


def _without_batch(plan: Plan) -> Plan:
    return plan.model_copy(update={"training": plan.training.model_copy(update={"global_batch": None})})


def _of_batch(block: Block, space: TrainingSpace, other: TrainingSpace) -> Block:
    """Return a block of an open batch with what has exactly the batch that a space is given."""
    return block.where(np.equal(other.global_batch(block.grid), float(str(space.plan.training.global_batch))))
