"""Names: rows of the catalogue and choices of a field, the most promising first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from capacity_tui.engine.choose.candidates.candidate import Candidate, is_better
from capacity_tui.engine.choose.candidates.reached import MEMORY
from capacity_tui.engine.choose.need.bounds import PARAMETERS, PRICED, RATE, can_beat, missed_at_best
from capacity_tui.engine.choose.need.trials import Evaluator
from capacity_tui.engine.choose.search.question import Goal, Limit
from capacity_tui.engine.estimate import REQUESTS
from capacity_tui.engine.units import PERCENT


@dataclass(frozen=True, slots=True)
class Choice:
    """One name, with what else goes with it.

    Attributes:
        change: the plan fields that make it.
        best: what it reaches at best, by result key.
    """

    change: Mapping[str, object]
    best: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Named:
    """What came of trying names.

    Attributes:
        best: the best that keeps the limits; None where none does.
        neighbour: the next that would be better, and breaks a limit.
        complete: whether all that could be better was tried.
    """

    best: Candidate | None
    neighbour: Candidate | None
    complete: bool = True


Trial: TypeAlias = Callable[[Choice, Evaluator], Candidate]


def as_it_is(choice: Choice, trials: Evaluator) -> Candidate:
    """Return what becomes of a choice."""
    return trials.evaluate(choice.change)


def best_name(
    choices: Sequence[Choice],
    trials: Evaluator,
    goal: Goal,
    stopped: Callable[[], bool],
    trial: Trial = as_it_is,
) -> Named:
    """Return the best of the choices that keep the limits, and the next that would be better.

    Those that break a limit even at best are not estimated, nor those that cannot be better than what was found.
    """
    rate = trials.plan.inference.request_rate if trials.plan.task == "infer" else None
    load = () if rate is None else (Limit(REQUESTS, least=rate),)
    limits = (Limit(MEMORY, most=PERCENT), *load, *trials.limits)
    missed = [missed_at_best(choice.best, limits) for choice in choices]
    worth = [choice for choice, share in zip(choices, missed, strict=True) if share <= 0.0]
    left_out = [(share, choice) for choice, share in zip(choices, missed, strict=True) if share > 0.0]
    best: Candidate | None = None
    for choice in sorted(worth, key=lambda choice: _promise(choice, goal)):
        if stopped():
            return Named(best, _beyond(best, left_out, trials, goal), False)
        if best is not None and not _may_beat(choice, best, goal):
            continue
        tried = trial(choice, trials)
        if tried.holds and (best is None or is_better(tried, best, goal)):
            best = tried
    beyond = _beyond(best, left_out, trials, goal)
    if beyond is not None and beyond.holds:
        return Named(beyond, None)
    return Named(best, beyond)


def _may_beat(choice: Choice, leader: Candidate, goal: Goal) -> bool:
    """Whether a choice may be better than what was found."""
    if goal.figure in PRICED and RATE not in choice.best:
        return False
    best = choice.best.get(goal.figure)
    return best is None or can_beat(best, leader.number(goal.figure), goal)


def _promise(choice: Choice, goal: Goal) -> float:
    """Return what choices are ordered by: the goal at best; those of which nothing is known come last."""
    best = choice.best.get(goal.figure)
    return float("inf") if best is None else goal.sign * best


def _beyond(
    best: Candidate | None, left_out: Sequence[tuple[float, Choice]], trials: Evaluator, goal: Goal
) -> Candidate | None:
    """Return what breaks a limit and would else be the next better answer; estimated, if it was not yet.

    Sizes have a next one; of prices and speeds, the one that comes nearest to holding tells more. Without an answer it
    is what misses the limits by least.

    Args:
        left_out: what breaks a limit even at best, with the share by which it does.
    """
    by_size = goal.figure == PARAMETERS
    nearest = sorted(left_out, key=lambda choice: -_promise(choice[1], goal) if by_size else choice[0])
    reached = None if best is None else best.number(goal.figure)
    better = [
        choice
        for _, choice in nearest
        if best is None or (goal.figure in choice.best and can_beat(choice.best[goal.figure], reached, goal))
    ]
    for choice in better[:1]:
        trials.evaluate(choice.change)
    if best is None:
        return min(trials.all, key=lambda choice: choice.violation, default=None)
    failed = [candidate for candidate in trials.all if not candidate.holds and is_better(candidate, best, goal)]
    known = [candidate for candidate in failed if by_size or np.isfinite(candidate.violation)]
    return min(
        known,
        key=lambda candidate: (candidate.number(PARAMETERS) or 0.0) if by_size else candidate.violation,
        default=None,
    )
