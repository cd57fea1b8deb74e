"""Questions asked backwards: everything is fixed but one field, and that takes the value which keeps the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.plan import field_path
from capacity_tui.engine.solve.candidate import Candidate, Evaluator
from capacity_tui.engine.solve.need.bounds import NAME, PARAMETERS
from capacity_tui.engine.solve.need.names import (
    affordable_choices,
    besides,
    best_name,
    budget_of,
    choices,
    is_budget,
    names_of,
    usual_goal,
    with_paid_tokens,
)
from capacity_tui.engine.solve.need.outermost import Needed, outermost_value
from capacity_tui.engine.solve.search.question import Question, hardware_ids, model_names
from capacity_tui.engine.solve.search.search import goal_of

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


def solved_path(name: str) -> str:
    """Return the plan field that a question solves for, or the size of the model.

    Raises:
        PlanError: there is no such field.
    """
    return PARAMETERS if name in (PARAMETERS, PARAMETERS.rpartition(".")[2]) else field_path(name)


def need(
    question: Question,
    solve: str,
    machine: Machine | None = None,
    catalog: Catalog | None = None,
    callback: Callable[[Candidate], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Needed:
    """Return the value of one field with which a plan keeps its limits, everything else being as it is.

    A number goes as far as the limits let it, whichever way that is; of names the one that reaches the goal best is
    taken. What the plan leaves open is filled for each value as the balanced mode does. The answer is estimated, and
    so is the next value, which does not keep the limits.

    Args:
        question: the plan, the limits, the goal, and what else may change.
        solve: the field that is asked for; ``model.parameters`` is the size of the model.
        callback: is told every candidate as it is tried.

    Raises:
        PlanError: there is no such field, it is no number and names nothing, or nothing is known of what is limited.
        CapacityError: the plan makes no sense whatever the value.
    """
    facts = catalog or load_catalog()
    path, began = solved_path(solve), perf_counter()
    question = replace(
        question,
        hardware=hardware_ids(question.hardware, facts),
        models=model_names(question.models, question.plan, facts),
    )
    field = NAME if path == PARAMETERS else path
    if any(field in others for others in besides(path, question)):
        hint = "leave it out of what else may change"
        raise PlanError("is solved for", hint=hint, place=Place(field=field))
    trials = Evaluator(question.plan, question.limits, facts, machine, callback)
    if question.goal is not None:
        question = replace(question, goal=goal_of(question))
    if names_of(path, question.plan, facts):
        needed = _named(path, question, trials, stopped)
    else:
        needed = outermost_value(path, question, trials, stopped)
    if needed.best is None:
        if needed.complete:
            _refuse_unknown(trials)
        nearest = needed.nearest or min(trials.all, key=lambda candidate: candidate.violation, default=None)
        needed = replace(needed, neighbour=None, nearest=nearest)
    return replace(needed, tried=len(trials.all), seconds=perf_counter() - began)


def _named(path: str, question: Question, trials: Evaluator, stopped: Callable[[], bool]) -> Needed:
    """Return the name that keeps the limits and reaches the goal best."""
    plan, limits, facts = question.plan, question.limits, trials.catalog
    goal = question.goal or usual_goal(path, plan)
    names = tuple(choices(path, question, facts, trials.machine))
    if not is_budget(path, plan, goal, limits):
        named = best_name(names, trials, goal, stopped)
        return Needed(path, limits, goal, named.best, named.neighbour, complete=named.complete)
    named = best_name(tuple(affordable_choices(names, limits, facts)), trials, goal, stopped, with_paid_tokens)
    ended = "" if named.best is None else budget_of(named.best)
    return Needed(path, limits, goal, named.best, ended_by=ended, complete=named.complete)


def _refuse_unknown(trials: Evaluator) -> None:
    """Refuse a question whose every candidate is a fault, or lacks the same figure.

    Raises:
        PlanError: what is missing, and why.
    """
    tried = [candidate for candidate in trials.all if candidate.filled is not None]
    if not tried:
        first = next(iter(trials.all), None)
        raise PlanError("no value makes a plan", "" if first is None else first.fault)
    for limit in trials.limits:
        lacking = [
            reached
            for one in tried
            for reached in one.constraints
            if reached.key == limit.figure and reached.bound_value is None
        ]
        if len(lacking) == len(tried):
            why = lacking[0].constraint.why
            raise PlanError(f"nothing is known of {limit.figure}", why, "say more in the plan, or limit another figure")
