"""The best configurations so far, taken part by part, and what they are once each is estimated by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.search.answer import Answer, Rejected, SearchResult
from capacity_tui.engine.choose.search.front import Front, dominator
from capacity_tui.engine.choose.search.judge import MEMORY
from capacity_tui.engine.choose.search.part import BlockResult, Row
from capacity_tui.engine.choose.search.question import Goal, Question, better_of
from capacity_tui.engine.choose.space.grid import Floats, Values
from capacity_tui.engine.estimate import estimate_resolved, figures_of, resolve_plan
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import edited

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

Key: TypeAlias = tuple[tuple[str, str], ...]
# What a goal is weighed against where nobody asks for a front: money against time, everything else against money.
COSTS = (Figure.COST_USD, Figure.COST_USD_PER_MILLION_TOKENS)
TIMES = (Figure.ESTIMATED_TRAIN_TIME_SECONDS, Figure.TOKENS_PER_SECOND)
# Configurations of a front that an answer holds at most, spread evenly along it.
MOST_OF_FRONT = 100


class TopK:
    """The best so far.

    Args:
        goal: what it aims at, where the length of the job is open the figure that stands for it.
    """

    def __init__(self, question: Question, goal: Goal, catalog: Catalog, machine: Machine | None) -> None:
        self._question, self._goal, self._catalog, self._machine = question, goal, catalog, machine
        self.evaluated = self.valid = self.fitting = 0
        self.front = Front(len(question.pareto)) if question.pareto else None
        self._rows: list[Row] = []
        self._rejected: dict[str, Rejected] = {}
        self._missed: dict[str, Rejected] = {}
        self._varied: dict[str, dict[object, None]] = {}
        self._found: dict[Key, SearchResult] = {}

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
            points = np.array([rejected.point for rejected in part.front])
            self.front.join(points, [rejected.row for rejected in part.front])

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
        """Return the best so far, each estimated by itself."""
        changes = [row.change for row in self._rows]
        changes += [change for change in self._front_changes() if change not in changes]
        before, self._found = self._found, {}
        rows = [self._estimated(change, before) for change in changes]
        compared = self._compared(rows)
        points = _points(rows, compared)
        top = tuple(
            SearchResult(result.set, result.verdict, result.figures, dominator(points, place))
            for place, result in enumerate(rows)
        )
        return Answer(
            evaluated=self.evaluated,
            valid=self.valid,
            fitting=self.fitting,
            seconds=seconds,
            rejected=_most_first(self._rejected),
            missed=_most_first(self._missed),
            top=top,
            pareto=tuple(place for place, result in enumerate(top) if result.dominated_by is None),
            compared=compared,
            goal=self._goal.figure,
            varied=tuple((path, len(values)) for path, values in self._varied.items() if len(values) > 1),
            complete=complete,
            share_done=1.0 if complete else share,
        )

    def _front_changes(self) -> Iterator[Values]:
        owners = [] if self.front is None else self.front.owners
        step = max(1.0, len(owners) / MOST_OF_FRONT)
        for number in range(min(len(owners), MOST_OF_FRONT)):
            owner = owners[int(number * step)]
            if isinstance(owner, Row):
                yield owner.change

    def _compared(self, rows: list[SearchResult]) -> tuple[str, ...]:
        """Return the figures that tell which of two configurations dominates."""
        if self._question.pareto:
            return self._question.pareto
        goal = self._goal.figure
        others = TIMES if goal.startswith("cost.") else (*COSTS, MEMORY)
        known = (key for key in others if all(key in result.figures for result in rows))
        return tuple(dict.fromkeys((goal, next(known, MEMORY))))

    def _estimated(self, change: Values, before: Mapping[Key, SearchResult]) -> SearchResult:
        """Return a configuration estimated by itself, as it was before where it was."""
        key = tuple(sorted((path, str(value)) for path, value in change.items()))
        self._found[key] = before.get(key) or self._alone(change)
        return self._found[key]

    def _alone(self, change: Values) -> SearchResult:
        plan = edited(self._question.plan, change, self._catalog).plan
        resolved = resolve_plan(plan, self._catalog, self._machine)
        estimate = estimate_resolved(resolved, self._catalog)
        asked = tuple(limit.constraint(estimate) for limit in self._question.limits)
        judged = replace(estimate, limits=(*estimate.limits, *asked))
        return SearchResult(change, judged.verdict, figures_of(estimate))


def _count(reasons: dict[str, Rejected], more: Rejected) -> None:
    before = reasons.get(more.rule)
    reasons[more.rule] = more if before is None else Rejected(more.rule, before.count + more.count, before.example)


def _most_first(reasons: Mapping[str, Rejected]) -> tuple[Rejected, ...]:
    return tuple(sorted(reasons.values(), key=lambda rejected: -rejected.count))


def _points(rows: list[SearchResult], compared: tuple[str, ...]) -> Floats:
    """Return the compared figures of each configuration, less of each being better; what is not known is worst."""
    points = np.full((len(rows), len(compared)), np.inf)
    for place, result in enumerate(rows):
        for column, key in enumerate(compared):
            if key in result.figures:
                sign = 1.0 if better_of(key) == "less" else -1.0
                points[place, column] = sign * mean(result.figures[key].value)
    return points
