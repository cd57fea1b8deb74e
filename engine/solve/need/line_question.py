"""What a line asks of its plan, as a question of ``need``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.solve.answers import usual_models
from capacity_tui.engine.solve.candidate import Candidate
from capacity_tui.engine.solve.need.names import HARDWARE
from capacity_tui.engine.solve.need.need import Needed, need
from capacity_tui.engine.solve.search.question import INSTANCES, TRAINED, Question, parse_goal, parse_limit

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.plan.line import Asked

_ONE, _FEW, _MANY = (1,), (1, 2, 4, 8), (16, 32, 64, 128, 256, 512, 1024)
"""Numbers of devices that machines are compared with: of a node, then of several where none keeps the limits."""


def answer_line_question(
    plan: Plan,
    asked: Asked,
    machine: Machine | None = None,
    catalog: Catalog | None = None,
    callback: Callable[[Candidate, int], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Needed:
    """Return what a line asks of its plan: a field of it, or which machine is rented, by one node or by several."""
    question = question_of_line(plan, asked, catalog or load_catalog())
    needed = need(question, asked.solve, machine, catalog, callback, stopped)
    if needed.best is None and needed.complete and question.devices:
        more = replace(question, devices=_MANY)
        needed = need(more, asked.solve, machine, catalog, callback, stopped)
    return needed


def question_of_line(plan: Plan, asked: Asked, catalog: Catalog) -> Question:
    """Return the question that a line asks of its plan; models are those that people know."""
    task = plan.task or TRAINED
    is_open = asked.solve == HARDWARE
    few = _ONE if asked.goal == Figure.MEMORY_CAPACITY_BYTES else _FEW  # the smallest gpu, not several smaller ones
    return Question(
        plan,
        hardware=(asked.clouds or (INSTANCES,)) if is_open else (),
        devices=few if is_open and plan.hardware.devices is None else (),
        models=(asked.models or tuple(usual_models(catalog))) if asked.solve == Key.MODEL_NAME else (),
        limits=tuple(parse_limit(text, task) for text in asked.limits),
        goal=parse_goal(asked.goal, task) if asked.goal else None,
    )
