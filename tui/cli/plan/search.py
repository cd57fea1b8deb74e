"""``search`` and ``need``: the best configurations of a plan, and the value of one field that keeps the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple

import click

from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import machine as machines
from capacity_tui.engine import nodes, present, solve
from capacity_tui.engine import plan as plans
from capacity_tui.engine.keys import Key
from capacity_tui.engine.solve import need as needs
from capacity_tui.engine.solve import search as searches
from capacity_tui.engine.solve import space as spaces
from capacity_tui.tui.cli.options import options, output_options
from capacity_tui.tui.cli.output import Output, interrupted, progress, tell
from capacity_tui.tui.cli.plan_sources import GivenPlan, machine_for, plan_options

MODEL, HARDWARE, DEVICES = Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES


class QuestionOptions(NamedTuple):
    """What options ask of a plan, as they were given."""

    vary: tuple[str, ...]
    hardware: tuple[str, ...]
    devices: str | None
    limits: tuple[str, ...]
    goal: str | None

    def question(self, plan: plans.Plan) -> searches.Question:
        """Return what is asked of a plan; raises CapacityError where an axis, a limit or a goal makes no sense."""
        task = plan.task or "train"
        axes: list[spaces.Axis] = [searches.parse_axis(text) for text in self.vary]
        return searches.Question(
            plan,
            tuple(axis for axis in axes if axis.path not in (MODEL, HARDWARE, DEVICES)),
            hardware=(*names_of(self.hardware), *map(str, _values(axes, HARDWARE))),
            devices=device_counts(self.devices) or tuple(int(str(count)) for count in _values(axes, DEVICES)),
            models=tuple(map(str, _values(axes, MODEL))),
            limits=tuple(searches.parse_limit(text, task) for text in self.limits),
            goal=searches.parse_goal(self.goal, task) if self.goal else None,
        )


def question_options(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the options of a question over plans, together as ``asked``."""

    @wraps(command)
    def with_question(**others: Any) -> object:
        given = {name: others.pop(name) for name in QuestionOptions._fields}
        return command(asked=QuestionOptions(**given), **others)

    return options("questions")(with_question)


def device_counts(text: str | None) -> tuple[int, ...]:
    """Return numbers of devices that an option says."""
    return tuple(int(str(count)) for count in searches.parse_axis(f"{DEVICES}={text}").values) if text else ()


def names_of(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that were given with commas, or one after another."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def _values(axes: list[spaces.Axis], path: str) -> tuple[object, ...]:
    return tuple(value for axis in axes if axis.path == path for value in axis.values)


@click.command()
@plan_options()
@question_options
@options("search")
@output_options("table", "json")
def search(
    given: GivenPlan,
    asked: QuestionOptions,
    top: int,
    per_kind: int | None,
    pareto: str | None,
    address: str | None,
    output: Output,
) -> None:
    """Find the best configurations of a plan: layouts, settings, devices, device types, models.

    PLAN is a plan, an example, a saved plan, - for standard input, or a line in quotes such as
    "llama-3.1-70b lora 8xh100 4k 50M"; without one the flags say the plan. What fits is counted as estimated; limits
    hold at the far end of each figure's range. Ctrl-C stops and shows the best so far.
    """
    plan = given.plan
    figures = searches.parse_figures(pareto, plan.task or "train") if pareto else ()
    question = replace(asked.question(plan), pareto=figures, top=top, per_kind=per_kind)
    answer = _searched(question, plan, address)
    if output.form == "json":
        output.data(present.search_as_dict(answer))
    else:
        output.parts(present.search_parts(answer))


def _searched(question: searches.Question, plan: plans.Plan, address: str | None) -> searches.Answer:
    """Return what a search finds; it is shown meanwhile on a terminal, and Ctrl-C ends it with the best so far."""
    machine = machine_for(plan)
    with interrupted() as stopped, progress("searching") as shown:
        show = shown.telling(present.progress_text)
        if address is None:
            return searches.search(question, None, machine, show, stopped)
        shared = nodes.search_on_ray(address, question, machine, show, stopped)
    if shared.resumed:
        tell(f"resumed an earlier search:  {shared.resumed} of its chunks were done")
    if shared.lost:
        tell(f"workers lost: {shared.lost} chunks were done again")
    if not shared.answer.complete:
        tell("stopped; what is done is kept, the same command resumes there")
    return shared.answer


NO_ANSWER = 1


@click.command()
@plan_options(compares=True)
@options("need")
@question_options
@output_options("table", "json", "yaml")
def need(given: GivenPlan, solve: str, asked: QuestionOptions, output: Output) -> int:
    """Solve a plan for one of its fields: everything else is as the plan says, and the limits decide.

    Which GPUs, how many of them, how long a sequence, how large a model: a number goes as far as the limits let it,
    of names the best by the goal is taken. What the plan leaves open is chosen anew for each value. Exit code 1 where
    no value keeps the limits; then the nearest is shown, and what to relax. Ctrl-C stops and shows the best so far.
    A line such as "h100 vs a100 llama 8b lora" is solved for each.
    """
    if given.compared:
        solutions = {plan.name: _solved(plan, solve, asked) for plan in given.compared}
        output.write(_compared_text(solutions, output), given.inputs)
        return NO_ANSWER if all(needed.best is None for needed, _ in solutions.values()) else 0
    needed, machine = _solved(given, solve, asked)
    output.write(needed_text(needed, machine, output), given.inputs)
    return NO_ANSWER if needed.best is None else 0


def _solved(given: GivenPlan, solve: str, asked: QuestionOptions) -> tuple[needs.Needed, machines.Machine | None]:
    """Return what solving a plan comes to, and the machine that it was estimated for."""
    plan = given.plan
    question = asked.question(plan)
    if given.asked is not None:
        of_line = tuple(searches.parse_limit(text, plan.task or "train") for text in given.asked.limits)
        question = replace(question, limits=(*question.limits, *of_line))
    machine = machine_for(plan)
    needed = shown_while_solved(
        lambda show, stopped: needs.need(question, solve, machine, callback=show, stopped=stopped)
    )
    return needed, machine


def _compared_text(solutions: Mapping[str, tuple[needs.Needed, machines.Machine | None]], output: Output) -> str:
    """Return what solving each of some plans comes to, and those with an answer side by side."""
    answers = {
        name: solve.answer(needed.best.plan, machine)
        for name, (needed, machine) in solutions.items()
        if needed.best is not None and needed.best.plan is not None
    }
    if output.is_data:
        data = [
            {"name": name, **present.needed_as_dict(needed, answers.get(name))}
            for name, (needed, _) in solutions.items()
        ]
        return output.data_text(data)
    parts: list[present.Part] = []
    for name, (needed, _) in solutions.items():
        parts += (present.TextPart(name, "strong"), *present.needed_parts(needed), present.TextPart())
    if len(answers) > 1:
        parts += present.comparison_parts(
            present.side_by_side(present.Named(name, answer) for name, answer in answers.items())
        )
    return output.parts_text(parts)


def shown_while_solved(
    find: Callable[[Callable[[solve.Candidate, int], None], Callable[[], bool]], needs.Needed],
) -> needs.Needed:
    """Return what solving a plan comes to; what is tried is shown, and Ctrl-C ends it with the best so far."""
    with interrupted() as stopped, progress("solving the plan") as shown:
        tried: list[solve.Candidate] = []

        def show(candidate: solve.Candidate, left: int) -> None:
            tried.append(candidate)
            state = "holds" if candidate.holds else "does not hold"
            value = ", ".join(map(str, candidate.change.values()))
            shown.show(lambda: f"tried {len(tried)} of at most {len(tried) + left}: {value} {state}; ctrl-c stops")

        return find(show, stopped)


def needed_text(needed: needs.Needed, machine: machines.Machine | None, output: Output) -> str:
    """Return the value of a field that keeps the limits, and the plan that has it, in the form that is wanted."""
    best = needed.best.plan if needed.best is not None else None
    answer = None if best is None else solve.answer(best, machine)
    if output.is_data:
        return output.data_text(present.needed_as_dict(needed, answer))
    return output.parts_text(_parts(needed, answer))


def _parts(needed: needs.Needed, answer: estimates.Answer | None) -> Iterator[present.Part]:
    yield from present.needed_parts(needed)
    if answer is not None:
        yield present.TextPart()
        yield from present.answer_parts(answer.plan, answer.estimate)
