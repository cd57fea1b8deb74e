"""The best configurations so far, taken block by block, and what they are once each is estimated by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.search.answer import Answer, Found, Rejected
from capacity_tui.engine.choose.search.front import Front, Positions, dominator
from capacity_tui.engine.choose.search.question import Goal, Limit, Question, better_of
from capacity_tui.engine.choose.search.spaces import Prepared, Refused
from capacity_tui.engine.choose.space.grid import Axis, Floats, Values
from capacity_tui.engine.choose.space.space import Block
from capacity_tui.engine.estimate.estimate import estimate_resolved
from capacity_tui.engine.estimate.figures import figures_of
from capacity_tui.engine.estimate.resolve import resolve_plan
from capacity_tui.engine.numeric import Flags, Number, mean
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.plan.field_values import short_name

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

Key: TypeAlias = tuple[tuple[str, str], ...]
MEMORY = "memory.reserved_bytes"
NOT_HELD = "does not fit into memory"
# Fields by which rows are of one kind, where a question wants few of each.
EACH = ("model.name", "hardware.name", "hardware.devices")
# What a goal is weighed against where nobody asks for a front: money against time, everything else against money.
COSTS = ("cost.usd", "cost.usd_per_million_tokens")
TIMES = ("computation.estimated_train_time_seconds", "computation.tokens_per_second")
# Settles ties between configurations that the goal does not tell apart.
TIE = Goal("computation.tokens_per_second", "more")
# Configurations of a front that an answer holds at most, spread evenly along it.
MOST_OF_FRONT = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration that may be among the best.

    Attributes:
        order: the goal's figure and what settles ties; less is better, and what has the same is the same to a user.
        change: what makes it of the plan that was asked about.
    """

    order: tuple[float, ...]
    change: Values

    @property
    def score(self) -> float:
        """The goal's figure; less is better."""
        return self.order[0]

    @property
    def kind(self) -> tuple[str, ...]:
        """What runs on what."""
        return tuple(str(self.change.get(path)) for path in EACH)


class Best:
    """The best so far.

    Args:
        question: what is asked.
        goal: what it aims at, where the length of the job is open the figure that stands for it.
        catalog: facts.
        machine: the detected machine.
    """

    def __init__(self, question: Question, goal: Goal, catalog: Catalog, machine: Machine | None) -> None:
        self._question, self._goal, self._catalog, self._machine = question, goal, catalog, machine
        self.evaluated = self.valid = self.fitting = 0
        self._rows: list[Row] = []
        self._front = Front(len(question.pareto)) if question.pareto else None
        self._signs = [1.0 if better_of(key) == "less" else -1.0 for key in question.pareto]
        self._rejected: dict[str, Rejected] = {}
        self._missed: dict[str, Rejected] = {}
        self._varied: dict[str, dict[object, None]] = {}
        self._found: dict[Key, Found] = {}

    def refuse(self, refused: Refused) -> None:
        """Count a space that cannot be."""
        self.evaluated += refused.count
        error = refused.error
        example = ": ".join(filter(None, (_said(refused.change), error.detail or error.hint)))
        _count(self._rejected, error.title, refused.count, example)

    def begin(self, prepared: Prepared) -> None:
        """Count what rules exclude from a space."""
        for each in prepared.space.excluded:
            self.evaluated += each.count
            _count(self._rejected, each.rule.broken, each.count, f"{_said(each.example)}: {each.figures}")
        for axis in (*prepared.space.grid.axes, *(Axis(path, (value,)) for path, value in prepared.apart.items())):
            self._varied.setdefault(axis.path, {}).update(dict.fromkeys(axis.values))

    def take(self, prepared: Prepared, block: Block) -> None:
        """Take the best of a block."""
        shape, grid = block.grid.shape, block.grid
        self.evaluated += grid.count(np.asarray(block.possible))
        self.valid += grid.count(np.asarray(block.possible))
        kept = self._kept(prepared, block)
        goal = block.value(self._goal.figure)
        if goal is None:
            kept = self._without(np.zeros_like(kept), kept, f"{self._goal.figure} is not known", prepared, block)
        self.fitting += grid.count(kept)
        if goal is None or not kept.any():
            return
        whole = np.broadcast_to(kept, shape).ravel()
        scores = self._goal.sign * _over(goal, shape)
        tie = block.value(TIE.figure)
        ties = TIE.sign * _over(0.0 if tie is None else tie, shape)
        self._take_top(prepared, block, np.where(whole, scores, np.inf), ties)
        if self._front is not None:
            self._join(self._front, prepared, block, np.flatnonzero(whole), scores, ties)

    def _take_top(self, prepared: Prepared, block: Block, scores: Floats, ties: Floats) -> None:
        count = self._question.top
        worst = self._rows[-1].score if len(self._rows) >= count else np.inf
        if float(scores.min()) > worst:
            return
        places = np.flatnonzero((scores <= worst) & np.isfinite(scores))
        memory = block.value(MEMORY)
        needs = _over(0.0 if memory is None else memory, block.grid.shape)
        most = count if self._question.each is None else min(count, self._question.each)
        places = best_of(np.stack([scores, ties, needs], axis=1), places, most)
        rows = [self._row(prepared, block, int(place), scores, ties, needs) for place in places]
        ordered = sorted([*self._rows, *rows], key=lambda row: row.order)
        unlike = list({(row.order, row.kind): row for row in reversed(ordered)}.values())[::-1]
        self._rows = list(self._few_of_each(unlike))[:count]

    def _few_of_each(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows without those that follow as many as wanted of the same model, hardware and number of devices."""
        before: Counter[tuple[str, ...]] = Counter()
        for row in rows:
            before[row.kind] += 1
            if self._question.each is None or before[row.kind] <= self._question.each:
                yield row

    def _join(
        self, front: Front, prepared: Prepared, block: Block, places: Positions, scores: Floats, ties: Floats
    ) -> None:
        """Let rows of a block join the front."""
        columns = []
        for key, sign in zip(self._question.pareto, self._signs, strict=True):
            value = block.value(key)
            if value is None:
                return
            columns.append(sign * _over(value, block.grid.shape)[places])
        points = np.stack(columns, axis=1)
        joining = front.improving(points)
        if joining.size:
            rows = [self._row(prepared, block, int(places[place]), scores, ties, scores) for place in joining]
            front.join(points[joining], list(rows))

    def _row(self, prepared: Prepared, block: Block, place: int, *order: Floats) -> Row:
        values = prepared.space.settled(block.grid.at(place))
        return Row(tuple(float(figures[place]) for figures in order), {**prepared.change, **values})

    def _kept(self, prepared: Prepared, block: Block) -> Flags:
        """Return what no rule excludes, memory holds as estimated, and keeps every limit at its far end."""
        kept = np.asarray(block.possible)
        if block.held is not None:
            kept = self._without(kept & block.held, kept, NOT_HELD, prepared, block)
        for limit in self._question.limits:
            value = block.value(limit.figure)
            held = np.zeros_like(kept) if value is None else kept & _within(limit, value, value)
            kept = self._without(held, kept, limit.words, prepared, block)
        # Ranges take as long as everything else: none where the values themselves are beyond.
        for limit in self._question.limits if kept.any() else ():
            found = block.interval(limit.figure)
            held = np.zeros_like(kept) if found is None else kept & _within(limit, found.low, found.high)
            kept = self._without(held, kept, limit.words, prepared, block)
        return kept

    def _without(self, after: Flags, before: Flags, why: str, prepared: Prepared, block: Block) -> Flags:
        """Return what is left of a block, and count what went."""
        lost = block.grid.count(before) - block.grid.count(after)
        if lost:
            if why not in self._missed:
                gone = np.broadcast_to(before & ~after, block.grid.shape)
                example = {**prepared.apart, **block.grid.at(int(np.argmax(gone)))}
                self._missed[why] = Rejected(why, 0, _said(example))
            _count(self._missed, why, lost, "")
        return after

    def answer(self, seconds: float, share: float, *, complete: bool) -> Answer:
        """Return the best so far, each estimated by itself."""
        changes = [row.change for row in self._rows]
        changes += [change for change in self._front_changes() if change not in changes]
        before, self._found = self._found, {}
        rows = [self._estimated(change, before) for change in changes]
        compared = self._compared(rows)
        points = _points(rows, compared)
        top = tuple(
            Found(found.set, found.fits, found.figures, dominator(points, place)) for place, found in enumerate(rows)
        )
        return Answer(
            evaluated=self.evaluated,
            valid=self.valid,
            fitting=self.fitting,
            seconds=seconds,
            rejected=_most_first(self._rejected),
            missed=_most_first(self._missed),
            top=top,
            pareto=tuple(place for place, found in enumerate(top) if found.dominated_by is None),
            compared=compared,
            goal=self._goal.figure,
            varied=tuple((path, len(values)) for path, values in self._varied.items() if len(values) > 1),
            complete=complete,
            share_done=1.0 if complete else share,
        )

    def _front_changes(self) -> Iterator[Values]:
        owners = [] if self._front is None else self._front.owners
        step = max(1.0, len(owners) / MOST_OF_FRONT)
        for number in range(min(len(owners), MOST_OF_FRONT)):
            owner = owners[int(number * step)]
            if isinstance(owner, Row):
                yield owner.change

    def _compared(self, rows: list[Found]) -> tuple[str, ...]:
        """Return the figures that tell which of two configurations dominates."""
        if self._question.pareto:
            return self._question.pareto
        goal = self._goal.figure
        others = TIMES if goal.startswith("cost.") else (*COSTS, MEMORY)
        known = (key for key in others if all(key in found.figures for found in rows))
        return tuple(dict.fromkeys((goal, next(known, MEMORY))))

    def _estimated(self, change: Values, before: Mapping[Key, Found]) -> Found:
        """Return a configuration estimated by itself, as it was before where it was."""
        key = tuple(sorted((path, str(value)) for path, value in change.items()))
        self._found[key] = before.get(key) or self._alone(change)
        return self._found[key]

    def _alone(self, change: Values) -> Found:
        plan = edited(self._question.plan, change, self._catalog).plan
        resolved = resolve_plan(plan, self._catalog, self._machine)
        estimate = estimate_resolved(resolved, self._catalog)
        return Found(change, estimate.fits, figures_of(estimate))


def best_of(points: Floats, places: Positions, count: int) -> Positions:
    """Return the places of the best points, column by column, the first of equal ones.

    Args:
        points: a row for each point, less of every column being better.
        places: rows to look at.
        count: how many points.
    """
    window = 16 * count
    while True:
        some = places
        if places.size > window:
            first = points[places, 0]
            some = places[first <= np.partition(first, window)[window]]
        ordered = some[np.lexsort((some, *points[some].T[::-1]))]
        own = points[ordered]
        new = np.ones(len(ordered), dtype=np.bool_)
        new[1:] = np.any(own[1:] != own[:-1], axis=1)
        found = ordered[new]
        if found.size >= count or some.size == places.size:
            return np.asarray(found[:count], dtype=np.intp)
        window *= 16


def _count(reasons: dict[str, Rejected], rule: str, count: int, example: str) -> None:
    before = reasons.get(rule, Rejected(rule, 0, example))
    reasons[rule] = Rejected(rule, before.count + count, before.example)


def _most_first(reasons: Mapping[str, Rejected]) -> tuple[Rejected, ...]:
    return tuple(sorted(reasons.values(), key=lambda each: -each.count))


def _within(limit: Limit, low: Number, high: Number) -> Flags:
    held = np.asarray(True)
    if limit.most is not None:
        held = held & np.less_equal(high, limit.most)
    return held if limit.least is None else held & np.greater_equal(low, limit.least)


def _over(value: Number, shape: tuple[int, ...]) -> Floats:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), shape).ravel()


def _points(rows: list[Found], compared: tuple[str, ...]) -> Floats:
    """Return the compared figures of each configuration, less of each being better; what is not known is worst."""
    points = np.full((len(rows), len(compared)), np.inf)
    for place, found in enumerate(rows):
        for column, key in enumerate(compared):
            if key in found.figures:
                sign = 1.0 if better_of(key) == "less" else -1.0
                points[place, column] = sign * mean(found.figures[key].value)
    return points


def _said(change: Mapping[str, object]) -> str:
    return ", ".join(f"{short_name(path)} {value}" for path, value in change.items())
