"""Searching a question: every configuration, block by block, with the best so far at any moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import open_length
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import LENGTHS, with_values
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.search.job_spaces import Refused
from capacity_tui.engine.solve.search.question import TIME, Goal, Question, better_of
from capacity_tui.engine.solve.search.results import Answer
from capacity_tui.engine.solve.search.scoring import Scorer, TopK, space_part
from capacity_tui.engine.solve.search.spaces import spaces_of

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

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
    if question.plan.task != "infer" or question.plan.inference.arrival_rate is None:
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
    is_open = question.plan.task != "fit" and not given and not varied
    return open_length(figure) if is_open else figure
