"""Judging the configurations of a space: what excludes some, and which of the others may be among the best."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from capacity_tui.engine.choose.search.answer import Rejected
from capacity_tui.engine.choose.search.front import Front, Positions
from capacity_tui.engine.choose.search.part import BlockResult, FrontRow, Row
from capacity_tui.engine.choose.search.question import Goal, Question, better_of
from capacity_tui.engine.choose.search.spaces import Prepared, Refused
from capacity_tui.engine.choose.space.grid import Axis, Floats
from capacity_tui.engine.choose.space.ranking import best_of, over
from capacity_tui.engine.choose.space.space import Block
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Flags
from capacity_tui.engine.plan import short_name

MEMORY = Figure.MEMORY_RESERVED_BYTES
NOT_HELD = "does not fit into memory"
# Settles ties between configurations that the goal does not tell apart.
TIE = Goal(Figure.TOKENS_PER_SECOND, "more")


def refused_part(refused: Refused) -> BlockResult:
    """Return what a space that cannot be comes to."""
    error = refused.error
    example = ": ".join(filter(None, (_setting_words(refused.change), error.detail or error.hint)))
    return BlockResult(evaluated=refused.count, rejected=(Rejected(error.title, refused.count, example),))


def space_part(prepared: Prepared) -> BlockResult:
    """Return what rules exclude from a space, and what varies in it."""
    rejected = tuple(
        Rejected(excluded.rule.broken, excluded.count, f"{_setting_words(excluded.example)}: {excluded.figures}")
        for excluded in prepared.space.excluded
    )
    apart = (Axis(path, (value,)) for path, value in prepared.apart.items())
    evaluated = sum(excluded.count for excluded in rejected)
    return BlockResult(evaluated=evaluated, rejected=rejected, varied=(*prepared.space.grid.axes, *apart))


class Scorer:
    """Judges blocks of spaces by a question.

    Args:
        goal: what it aims at, where the length of the job is open the figure that stands for it.
    """

    def __init__(self, question: Question, goal: Goal) -> None:
        self._question, self._goal = question, goal
        self._signs = [1.0 if better_of(key) == "less" else -1.0 for key in question.pareto]

    def block_part(self, prepared: Prepared, block: Block, worst: float, front: Front | None) -> BlockResult:
        """Return what a block comes to.

        Args:
            worst: the goal's figure that the worst of enough configurations before it has; what is worse is left out.
            front: the front of those before it; what it dominates is left out.
        """
        shape, grid = block.grid.shape, block.grid
        count = grid.count(np.asarray(block.feasible))
        kept, missed = self._kept(prepared, block)
        goal = block.value(self._goal.figure)
        if goal is None:
            why = f"{self._goal.figure} is not known"
            kept = _without(np.zeros_like(kept), kept, why, prepared, block, missed)
        fitting = grid.count(kept)
        if goal is None or not kept.any():
            return BlockResult(count, count, fitting, missed=tuple(missed))
        whole = np.broadcast_to(kept, shape).ravel()
        scores = self._goal.sign * over(goal, grid)
        tie = block.value(TIE.figure)
        ties = TIE.sign * over(0.0 if tie is None else tie, grid)
        return BlockResult(
            count,
            count,
            fitting,
            missed=tuple(missed),
            rows=self._top(prepared, block, np.where(whole, scores, np.inf), ties, worst),
            front=() if front is None else self._joining(front, prepared, block, np.flatnonzero(whole), scores, ties),
        )

    def _top(self, prepared: Prepared, block: Block, scores: Floats, ties: Floats, worst: float) -> tuple[Row, ...]:
        if float(scores.min()) > worst:
            return ()
        places = np.flatnonzero((scores <= worst) & np.isfinite(scores))
        memory = block.value(MEMORY)
        needs = over(0.0 if memory is None else memory, block.grid)
        most = min(self._question.top, self._question.per_kind or self._question.top)
        places = best_of(np.stack([scores, ties, needs], axis=1), places, most)
        return tuple(_row(prepared, block, int(place), scores, ties, needs) for place in places)

    def _joining(
        self, front: Front, prepared: Prepared, block: Block, places: Positions, scores: Floats, ties: Floats
    ) -> tuple[FrontRow, ...]:
        """Return the rows of a block that join the front."""
        columns = []
        for key, sign in zip(self._question.pareto, self._signs, strict=True):
            value = block.value(key)
            if value is None:
                return ()
            columns.append(sign * over(value, block.grid)[places])
        points = np.stack(columns, axis=1)
        return tuple(
            FrontRow(tuple(points[place].tolist()), _row(prepared, block, int(places[place]), scores, ties, scores))
            for place in front.improving(points)
        )

    def _kept(self, prepared: Prepared, block: Block) -> tuple[Flags, list[Rejected]]:
        """Return what no rule excludes, memory holds and keeps every limit; and what the others miss.

        Limits of the question hold at the far end of their figure's range, those of the plan by its estimate.
        """
        kept = np.asarray(block.feasible)
        missed: list[Rejected] = []
        if block.held is not None:
            kept = _without(kept & block.held, kept, NOT_HELD, prepared, block, missed)
        for constraint in block.limits:
            kept = _without(
                kept & constraint.kept, kept, f"{constraint.label} ({constraint.why})", prepared, block, missed
            )
        for limit in self._question.limits:
            held = kept & block.constraint(limit.figure, limit.most, limit.least).kept
            kept = _without(held, kept, limit.words, prepared, block, missed)
        # Ranges take as long as everything else: none where the values themselves are beyond.
        for limit in self._question.limits if kept.any() else ():
            held = kept & block.constraint(limit.figure, limit.most, limit.least, with_range=True).kept_surely
            kept = _without(held, kept, limit.words, prepared, block, missed)
        return kept, missed


def _row(prepared: Prepared, block: Block, place: int, *order: Floats) -> Row:
    values = prepared.space.settled(block.grid.at(place))
    return Row(tuple(float(figures[place]) for figures in order), {**prepared.change, **values})


def _without(after: Flags, before: Flags, why: str, prepared: Prepared, block: Block, missed: list[Rejected]) -> Flags:
    """Return what is left of a block, and note how many went, with the first of them."""
    lost = block.grid.count(before) - block.grid.count(after)
    if lost:
        gone = np.broadcast_to(before & ~after, block.grid.shape)
        example = {**prepared.apart, **block.grid.at(int(np.argmax(gone)))}
        missed.append(Rejected(why, lost, _setting_words(example)))
    return after


def _setting_words(change: Mapping[str, object]) -> str:
    return ", ".join(f"{short_name(path)} {value}" for path, value in change.items())
