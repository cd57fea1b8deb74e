"""Searches: every configuration of a question's spaces, scored block by block; what fits, keeps limits and is best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import Estimate, open_length
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import Flags, mean
from capacity_tui.engine.plan import LENGTHS, short_name, with_values
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.changes import estimate_changes
from capacity_tui.engine.solve.search.question import TIME, Goal, Question, better_of
from capacity_tui.engine.solve.search.results import (
    Answer,
    BlockResult,
    Front,
    Positions,
    Rejected,
    Row,
    SearchResult,
    dominator,
)
from capacity_tui.engine.solve.search.spaces import Prepared, Refused, spaces_of
from capacity_tui.engine.solve.space.axes import Axis, Floats, Values
from capacity_tui.engine.solve.space.space import Block, best_of, over

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


MEMORY = Figure.MEMORY_RESERVED_BYTES
NOT_HELD = "does not fit into memory"
TIE = Goal(Figure.TOKENS_PER_SECOND, "more")  # Settles ties between configurations that the goal does not tell apart


def space_part(space: Prepared | Refused) -> BlockResult:
    """Return what rules exclude from a space and what varies in it, or what a space comes to that cannot be."""
    if isinstance(space, Refused):
        error = space.error
        example = ": ".join(filter(None, (_setting_words(space.change), error.detail or error.hint)))
        return BlockResult(evaluated=space.count, rejected=(Rejected(error.title, space.count, example),))
    rejected = tuple(
        Rejected(excluded.rule.broken, excluded.count, f"{_setting_words(excluded.example)}: {excluded.figures}")
        for excluded in space.space.excluded
    )
    apart = (Axis(path, (value,)) for path, value in space.apart.items())
    evaluated = sum(excluded.count for excluded in rejected)
    return BlockResult(evaluated=evaluated, rejected=rejected, varied=(*space.space.grid.axes, *apart))


class Scorer:
    """Judges blocks of spaces by a question."""

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
        indices = np.flatnonzero((scores <= worst) & np.isfinite(scores))
        memory = block.value(MEMORY)
        needs = over(0.0 if memory is None else memory, block.grid)
        most = min(self._question.top, self._question.per_kind or self._question.top)
        indices = best_of(np.stack([scores, ties, needs], axis=1), indices, most)
        return tuple(_row(prepared, block, int(index), scores, ties, needs) for index in indices)

    def _joining(
        self, front: Front, prepared: Prepared, block: Block, chosen_rows: Positions, scores: Floats, ties: Floats
    ) -> tuple[Row, ...]:
        columns = []
        for key, sign in zip(self._question.pareto, self._signs, strict=True):
            value = block.value(key)
            if value is None:
                return ()
            columns.append(sign * over(value, block.grid)[chosen_rows])
        points = np.stack(columns, axis=1)
        return tuple(
            _row(prepared, block, int(chosen_rows[index]), scores, ties, scores, point=tuple(points[index].tolist()))
            for index in front.improving(points)
        )

    def _kept(self, prepared: Prepared, block: Block) -> tuple[Flags, list[Rejected]]:
        """Return what no rule excludes, memory holds and keeps every limit; and what the others miss.

        Limits of the question hold at the far end of their figure's range, those of the plan by its estimate.
        """
        kept = np.asarray(block.feasible)
        missed: list[Rejected] = []
        if block.fits is not None:
            kept = _without(kept & block.fits, kept, NOT_HELD, prepared, block, missed)
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


def _row(prepared: Prepared, block: Block, position: int, *order: Floats, point: tuple[float, ...] = ()) -> Row:
    values = prepared.space.settled(block.grid.at(position))
    return Row(tuple(float(figures[position]) for figures in order), {**prepared.change, **values}, point)


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


RowKey: TypeAlias = tuple[tuple[str, str], ...]

# What a goal is weighed against where nobody asks for a front: money against time, everything else against money.
COSTS = (Figure.COST_USD, Figure.COST_USD_PER_MILLION_TOKENS)

TIMES = (Figure.ESTIMATED_TRAIN_TIME_SECONDS, Figure.TOKENS_PER_SECOND)
MOST_OF_FRONT = 100  # Configurations of a front that an answer holds at most, spread evenly along it


class TopK:
    """The best so far."""

    def __init__(self, question: Question, goal: Goal, catalog: Catalog, machine: Machine | None) -> None:
        self._question, self._goal, self._catalog, self._machine = question, goal, catalog, machine
        self.evaluated = self.valid = self.fitting = 0
        self.front = Front(len(question.pareto)) if question.pareto else None
        self._rows: list[Row] = []
        self._rejected: dict[str, Rejected] = {}
        self._missed: dict[str, Rejected] = {}
        self._varied: dict[str, dict[object, None]] = {}
        self._results: dict[RowKey, SearchResult] = {}

    @property
    def worst(self) -> float:
        """The goal's figure of the worst of the best, less being better; infinite while there are not enough."""
        return self._rows[-1].score if len(self._rows) >= self._question.top else np.inf

    def add(self, part: BlockResult) -> None:
        """Take the best of a part. They come in the order of the question: of equal configurations the first stays."""
        self.evaluated += part.evaluated
        self.valid += part.valid
        self.fitting += part.fitting
        for rejected in part.rejected:
            _count(self._rejected, rejected)
        for rejected in part.missed:
            _count(self._missed, rejected)
        for axis in part.varied:
            self._varied.setdefault(axis.path, {}).update(dict.fromkeys(axis.values))
        if part.rows:
            self._take_top(part.rows)
        if self.front is not None and part.front:
            self.front.join(np.array([row.point for row in part.front]), [*part.front])

    def _take_top(self, rows: tuple[Row, ...]) -> None:
        ordered = sorted([*self._rows, *rows], key=lambda row: row.order)
        unlike = list({(row.order, row.kind): row for row in reversed(ordered)}.values())[::-1]
        self._rows = list(self._few_of_a_kind(unlike))[: self._question.top]

    def _few_of_a_kind(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows without those that follow as many as wanted of the same model, hardware and number of devices."""
        before: Counter[tuple[str, ...]] = Counter()
        for row in rows:
            before[row.kind] += 1
            if self._question.per_kind is None or before[row.kind] <= self._question.per_kind:
                yield row

    def answer(self, seconds: float, share: float, *, complete: bool) -> Answer:
        """Return the best so far, with the ranges of each."""
        changes = [row.change for row in self._rows]
        changes += [change for change in self._front_changes() if change not in changes]
        rows = self._estimated(changes)
        compared = self._compared(rows)
        points = _points(rows, compared)
        top = tuple(replace(result, dominated_by=dominator(points, index)) for index, result in enumerate(rows))
        return Answer(
            evaluated=self.evaluated,
            valid=self.valid,
            fitting=self.fitting,
            seconds=seconds,
            rejected=_most_first(self._rejected),
            missed=_most_first(self._missed),
            top=top,
            pareto=tuple(index for index, result in enumerate(top) if result.dominated_by is None),
            compared=compared,
            goal=self._goal.figure,
            varied=tuple((path, len(values)) for path, values in self._varied.items() if len(values) > 1),
            complete=complete,
            share_done=1.0 if complete else share,
        )

    def _front_changes(self) -> Iterator[Values]:
        owners = [] if self.front is None else self.front.owners
        step = max(1.0, len(owners) / MOST_OF_FRONT)
        spread = [owners[int(number * step)] for number in range(min(len(owners), MOST_OF_FRONT))]
        yield from (row.change for row in sorted(spread, key=lambda row: row.order))

    def _compared(self, rows: list[SearchResult]) -> tuple[str, ...]:
        """Return the figures that tell which of two configurations dominates."""
        if self._question.pareto:
            return self._question.pareto
        goal = self._goal.figure
        others = TIMES if goal.startswith("cost.") else (*COSTS, MEMORY)
        known = (key for key in others if all(key in result.figures for result in rows))
        return tuple(dict.fromkeys((goal, next(known, MEMORY))))

    def _estimated(self, changes: Sequence[Values]) -> list[SearchResult]:
        """Return configurations with their estimates: as they were before, or those that are new all together."""
        by_key = {tuple(sorted((path, str(value)) for path, value in change.items())): change for change in changes}
        new = {key: change for key, change in by_key.items() if key not in self._results}
        estimates = estimate_changes(self._question.plan, tuple(new.values()), self._machine, self._catalog)
        made = {key: self._result(change, one) for (key, change), one in zip(new.items(), estimates, strict=True)}
        self._results = {key: made.get(key) or self._results[key] for key in by_key}
        return list(self._results.values())

    def _result(self, change: Values, estimate: Estimate | CapacityError) -> SearchResult:
        if isinstance(estimate, CapacityError):
            raise estimate
        limits = tuple(limit.constraint(estimate) for limit in self._question.limits)
        judged = replace(estimate, limits=(*estimate.limits, *limits))
        return SearchResult.of(change, estimate, judged.verdict)


def _count(reasons: dict[str, Rejected], more: Rejected) -> None:
    before = reasons.get(more.rule)
    reasons[more.rule] = more if before is None else Rejected(more.rule, before.count + more.count, before.example)


def _most_first(reasons: Mapping[str, Rejected]) -> tuple[Rejected, ...]:
    return tuple(sorted(reasons.values(), key=lambda rejected: -rejected.count))


def _points(rows: list[SearchResult], compared: tuple[str, ...]) -> Floats:
    """Return the compared figures of each configuration, less of each being better; what is not known is worst."""
    points = np.full((len(rows), len(compared)), np.inf)
    for index, result in enumerate(rows):
        for column, key in enumerate(compared):
            if key in result.figures:
                sign = 1.0 if better_of(key) == "less" else -1.0
                points[index, column] = sign * mean(result.figures[key].value)
    return points


# The best so far is reported so often at most, and takes this share of the time at most.
REPORT_SECONDS = 0.1
REPORT_SHARE = 0.2


def search(
    question: Question,
    catalog: Catalog | None = None,
    machine: Machine | None = None,
    callback: Callable[[Answer], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Answer:
    """Return the best configurations of a question; the best so far where it is stopped.

    Raises:
        CapacityError: the question makes no sense, or nothing of it can be estimated.
    """
    facts = catalog or load_catalog()
    started = monotonic()
    question = answerable(question)
    spaces = spaces_of(question, facts, machine)
    goal = goal_of(question)
    best, judge = TopK(question, goal, facts, machine), Scorer(question, goal)
    refused: list[Refused] = []
    due, share = started + REPORT_SECONDS, 0.0
    for number, prepared in spaces.all():
        if stopped():
            return best.answer(monotonic() - started, share, complete=False)
        best.add(space_part(prepared))
        if isinstance(prepared, Refused):
            refused.append(prepared)
            continue
        done = 0
        for piece in prepared.space.lazy_blocks():
            block = piece()
            best.add(judge.block_part(prepared, block, best.worst, best.front))
            done += block.grid.size
            share = (number + done / max(1, prepared.space.grid.size)) / spaces.count
            now = monotonic()
            if callback is not None and now >= due:
                callback(best.answer(now - started, share, complete=False))
                after = monotonic()
                due = after + max(REPORT_SECONDS, (after - now) / REPORT_SHARE)
            if stopped():
                return best.answer(monotonic() - started, share, complete=False)
    if refused and spaces.count == 1 and not best.evaluated - sum(space.count for space in refused):
        raise refused[0].error
    return best.answer(monotonic() - started, 1.0, complete=True)


def goal_of(question: Question) -> Goal:
    """Return what a question aims at: where the length of the job is open, the figure that stands for its goal."""
    goal = question.goal or _usual_goal(question)
    figure = _of_length(question, goal.figure)
    return goal if figure == goal.figure else Goal(figure, better_of(figure))


def _usual_goal(question: Question) -> Goal:
    """Return what is aimed at where nobody says: of a load that arrives, which all that hold it serve, the money."""
    if question.models:
        return Goal(Figure.MODEL_PARAMETERS, "more")
    if not question.plan.is_inference or question.plan.inference.arrival_rate is None:
        return TIME
    varies = question.hardware or question.devices
    return Goal(Figure.COST_USD_PER_MILLION_TOKENS if varies else Figure.TIME_TO_FIRST_TOKEN_SECONDS)


def answerable(question: Question) -> Question:
    """Return a question that can be answered where the length of the job is open, or the number of replicas.

    Replicas follow from the devices and how the model is split, as if the plan did not name them.

    Raises:
        PlanError: a limit is one of the whole job.
    """
    for limit in question.limits:
        if _of_length(question, limit.figure) != limit.figure:
            hint = f"give one of {', '.join(f'training.{name}' for name in LENGTHS)}"
            raise PlanError("the length of the job is open", f"no limit of {limit.figure}", hint)
    plan = question.plan
    if plan.parallelism.dp == AUTO:
        plan = with_values(plan, {Key.PARALLELISM_DP: None})
    return replace(question, plan=plan, pareto=tuple(_of_length(question, key) for key in question.pareto))


def _of_length(question: Question, figure: str) -> str:
    """Return a figure, or the one that stands for it where the length of the job is open."""
    training = question.plan.training
    given = training.steps or training.tokens or (training.epochs and training.samples)
    varied = any(axis.path in {f"training.{name}" for name in LENGTHS} for axis in question.vary)
    is_open = not question.plan.is_fit and not given and not varied
    return open_length(figure) if is_open else figure
