"""Names: rows of the catalogue and choices of a field, the most promising first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import LOSS, REQUESTS, learned
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import Plan, all_fields
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.candidate import MEMORY, Candidate, CheckedConstraint, Evaluator, is_better
from capacity_tui.engine.solve.need.bounds import (
    NAME,
    PARAMETERS,
    PRICED,
    RATE,
    TIME,
    USD,
    Bounds,
    can_beat,
    missed_at_best,
)
from capacity_tui.engine.solve.search.question import ANY, Goal, Limit, Question, hardware_ids, model_names
from capacity_tui.engine.solve.space.axes import choices_of
from capacity_tui.engine.units import PERCENT

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class Choice:
    """One name, with what else goes with it."""

    change: Mapping[str, object]
    best: Mapping[str, float]  # what it reaches at best, by result key


@dataclass(frozen=True, slots=True)
class Named:
    """What came of trying names."""

    best: Candidate | None  # the best that keeps the limits; None where none does
    neighbour: Candidate | None  # the next that would be better, and breaks a limit
    complete: bool = True  # whether all that could be better was tried


def best_name(
    choices: Sequence[Choice],
    trials: Evaluator,
    goal: Goal,
    stopped: Callable[[], bool],
    evaluate: Callable[[Choice, Evaluator], Candidate] = lambda choice, evaluator: evaluator.evaluate(choice.change),
) -> Named:
    """Return the best of the choices that keep the limits, and the next that would be better.

    Those that break a limit even at best are not estimated, nor those that cannot be better than what was found.
    """
    rate = trials.plan.inference.arrival_rate if trials.plan.is_inference else None
    load = () if rate is None else (Limit(REQUESTS, least=rate),)
    limits = (Limit(MEMORY, most=PERCENT), *load, *trials.limits)
    missed = [missed_at_best(choice.best, limits) for choice in choices]
    worth = [choice for choice, share in zip(choices, missed, strict=True) if share <= 0.0]
    left_out = [(share, choice) for choice, share in zip(choices, missed, strict=True) if share > 0.0]
    best: Candidate | None = None
    for place, choice in enumerate(sorted(worth, key=lambda choice: _promise(choice, goal))):
        trials.left = len(worth) - place
        if stopped():
            return Named(best, _beyond(best, left_out, trials, goal), False)
        if best is not None and not _may_beat(choice, best, goal):
            continue
        candidate = evaluate(choice, trials)
        if candidate.holds and (best is None or is_better(candidate, best, goal)):
            best = candidate
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


HARDWARE, DEVICES, INTERCONNECT = Key.HARDWARE_NAME, Key.HARDWARE_DEVICES, Key.HARDWARE_INTERCONNECT


def names_of(path: str, plan: Plan, catalog: Catalog) -> tuple[object, ...]:
    """Return what a field may name; nothing for numbers and texts, and for what is only reported.

    Args:
        path: the field, or the size of the model, which is that of a row.
    """
    if path in (NAME, PARAMETERS):
        names, rows = model_names((ANY,), plan, catalog), catalog.architectures
        own = rows.known(plan.model.name)
        is_of_text = plan.task == "train" and (own is None or own.is_of_text)  # what reads pictures is built on others
        return tuple(name for name in names if rows[name].is_of_text) if is_of_text else names
    if path == HARDWARE:
        return hardware_ids((ANY,), catalog)
    if path == INTERCONNECT:
        return tuple(catalog.links)
    known = all_fields().get(path)
    return () if known is not None and known.knob.role == "output" else choices_of(path, catalog)


def choices(path: str, question: Question, catalog: Catalog, machine: Machine | None = None) -> Iterator[Choice]:
    """Yield every name with every combination of what else may change.

    Args:
        path: the field that is asked for, or the size of the model.
        question: the plan, and what else may change.
    """
    bounds = Bounds(question.plan, catalog, machine)
    asked: Mapping[str, tuple[str, ...]] = {
        HARDWARE: question.hardware,
        NAME: question.models,
        PARAMETERS: question.models,
    }
    named = asked.get(path) or names_of(path, question.plan, catalog)
    for name, others in product(named, besides(path, question)):
        field = NAME if path == PARAMETERS else path
        change = {field: name, **others}
        yield Choice(change, bounds.at_best(change))


def besides(path: str, question: Question) -> tuple[Mapping[str, object], ...]:
    """Return what else a choice may change: combinations of hardware, devices and the fields that vary."""
    axes = [(axis.path, axis.values) for axis in question.vary]
    axes += [(NAME, question.models)] if question.models and path not in (NAME, PARAMETERS) else []
    axes += [(HARDWARE, question.hardware)] if question.hardware and path != HARDWARE else []
    axes += [(DEVICES, question.devices)] if question.devices else []
    names = [name for name, _ in axes]
    return tuple(dict(zip(names, values, strict=True)) for values in product(*(values for _, values in axes)))


def usual_goal(path: str, plan: Plan) -> Goal:
    """Return what decides between names that keep the limits where nobody says: size, price, or speed.

    Of formats of weights it is size too: the more bits fit, the less is lost.
    """
    if path in (NAME, PARAMETERS):
        return Goal(PARAMETERS, "more")
    if path == Key.INFERENCE_WEIGHTS:
        return Goal(MEMORY, "more")
    if path == HARDWARE and plan.is_inference:
        return Goal(Figure.COST_USD_PER_HOUR)
    if path == HARDWARE:
        has_length = any(getattr(plan.training, name) is not None for name in ("tokens", "steps", "epochs"))
        return Goal(Figure.COST_USD if has_length else Figure.COST_USD_PER_MILLION_TOKENS)
    return Goal(Figure.TOKENS_PER_SECOND, "more")


GROWING = (TIME, USD, Figure.COST_USD_SPOT, Figure.ENERGY_KWH, Figure.ENERGY_USD)
"""Figures of a job that grow in step with its tokens."""

_LESS = 0.995  # What is left of a limit where a last, partly filled step breaks it


def is_budget(path: str, plan: Plan, goal: Goal, limits: Iterable[Limit]) -> bool:
    """Whether a question is which size a budget is for: the tokens are open, and the loss decides."""
    named = path in (NAME, PARAMETERS) and goal.figure == LOSS
    return named and plan.training.tokens == AUTO and any(map(_pays, limits))


def affordable_choices(choices: Iterable[Choice], limits: Iterable[Limit], catalog: Catalog) -> Iterator[Choice]:
    """Yield the models that a scaling law is of, with the loss that the limits pay for at best.

    Args:
        choices: models, with the time and cost of their usual tokens at best.
    """
    paying = [limit for limit in limits if _pays(limit)]
    law = next(iter(catalog.scaling_laws.values()))
    usual = catalog.modes["balanced"].tokens_per_parameter
    for choice in choices:
        row = catalog.architectures.find(str(choice.change[NAME]))
        if row.kind != "decoder" or row.experts:
            continue
        shares = [(limit.most or 0.0) / choice.best[limit.figure] for limit in paying if limit.figure in choice.best]
        best = {key: value for key, value in choice.best.items() if key not in GROWING}
        size = choice.best.get(PARAMETERS, 0.0)
        if shares and size:
            best[LOSS] = float(learned(law, size, usual * size * min(shares))[LOSS])
        yield replace(choice, best=best)


def with_paid_tokens(choice: Choice, trials: Evaluator) -> Candidate:
    """Return a model with as many tokens as the limits pay for."""
    candidate = trials.evaluate(choice.change)
    for kept in (1.0, _LESS):
        shares = [
            constraint.most / constraint.bound_value
            for constraint in candidate.constraints
            if _grows(constraint) and constraint.bound_value and constraint.most
        ]
        if candidate.filled is None or not shares:
            return candidate
        tokens = kept * min(shares) * float(candidate.filled.plan.training.tokens or 0)
        change = {**choice.change, Key.TRAINING_TOKENS: _floor(tokens)}
        candidate = trials.evaluate(change)
        if candidate.holds:
            break
    return candidate


def budget_of(candidate: Candidate) -> str:
    """Return the result key of the limit that ends the tokens of an answer."""
    paid = [constraint for constraint in candidate.constraints if _grows(constraint)]
    return max(paid, key=lambda constraint: constraint.violation).key if paid else ""


def _grows(constraint: CheckedConstraint) -> bool:
    return constraint.surely and constraint.most is not None and constraint.key in GROWING


def _pays(limit: Limit) -> bool:
    return limit.most is not None and limit.figure in GROWING


def _floor(tokens: float) -> float:
    """Return a number of tokens cut to three digits."""
    power = 10.0 ** (len(f"{tokens:.0f}") - 3)
    return max(1.0, float(tokens // power) * power)
