"""Questions about a plan: the best configurations, the value that keeps limits, those of modes, what moves a figure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import files, nodes, present, schema, solve, storage
from capacity_tui.engine import machine as machines
from capacity_tui.engine import plan as plans
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.present import frameworks
from capacity_tui.engine.solve import advice as advising
from capacity_tui.engine.solve import modes
from capacity_tui.engine.solve import need as needs
from capacity_tui.engine.solve import search as searches
from capacity_tui.engine.solve import space as spaces
from capacity_tui.tui.cli.options import options, output_options
from capacity_tui.tui.cli.output import Output, interrupted, progress, tell
from capacity_tui.tui.cli.plan_sources import (
    GivenPlan,
    changed_plan,
    machine_for,
    plan_flags,
    plan_options,
    source_of,
    sources_of,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

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


@click.command()
@click.argument("file", required=False, metavar="[FILE]", type=click.Path())
@plan_flags
@options("configs")
@output_options("table", "json", "yaml", to_file=False)
def configs(
    file: str | None,
    flags: plan_lines.PlanFlags,
    mode: str | None,
    folder: Path | None,
    force: bool,
    phases: bool,
    output: Output,
) -> None:
    """Propose conservative, balanced and extreme configurations, as plan files; of a plan, or of what the flags say."""
    plan = _open_plan(file, flags)
    if phases:
        plan = plans.edited(plan, {Key.DATA_PHASES: schema.AUTO}).plan
    machine = machines.detect() if plan.hardware.name == "detected" else None
    with progress("filling the plan by three modes"):
        comparison = modes.compare(plan, machine)
    chosen = [entry for entry in mode_plans(comparison) if mode in (None, entry.mode.id)]
    if folder is not None:
        _write_plans(chosen, folder, force, machine)
        return
    if output.form == "yaml":
        texts = [plan_files.dump_plan(entry.plan, _comment(entry, machine)) for entry in chosen]
        output.write("---\n".join(texts))
    elif output.is_data:
        results: dict[str, object] = {
            entry.mode.id: {
                **present.result_as_dict(entry.plan, entry.annotated_estimate),
                "settings": [asdict(setting) for setting in settings_of(entry.plan, machine)],
            }
            for entry in chosen
        }
        output.data(results)
    else:
        remarks = () if mode else comparison.remarks
        settings = settings_comment(chosen[0], machine)
        output.show([*mode_table(chosen), *remarks, *mode_notes(chosen), *settings])


def _open_plan(file: str | None, flags: plan_lines.PlanFlags) -> plans.Plan:
    """Return a plan, or what the flags say; what they leave open each mode chooses, the model too."""
    if file is not None:
        return source_of(file, flags).plan()
    line = plan_lines.line_of_flags(flags)
    return solve.changed_by_line(solve.open_plan(line.task), line)


def mode_plans(comparison: modes.Comparison) -> tuple[modes.ModePlan, ...]:
    return (comparison.conservative, comparison.balanced, comparison.extreme)


def mode_table(entries: Sequence[modes.ModePlan]) -> Iterator[RenderableType]:
    from capacity_tui.tui.cli.rich_tables import rich_parts

    yield from rich_parts([present.settings_part([(entry.mode.id, entry.plan, entry.estimate) for entry in entries])])


def mode_notes(entries: Sequence[modes.ModePlan]) -> Iterator[str]:
    """Yield what each mode is, what its configuration uses of its shares, and what it warns of."""
    for entry in entries:
        if (summary := entry.filled_by) is not None:
            yield summary.line
            details = (*(share.words for share in summary.shares), summary.reserve, *summary.outside)
            yield from (f"  {text}" for text in details if text)
    for entry in entries:
        yield from (f"{entry.mode.id}: {text}" for text in _warning_lines(entry))


def _warning_lines(entry: modes.ModePlan) -> list[str]:
    return [
        present.note_text(note) for note in (*entry.annotated_estimate.warnings, *advising.dear_spot(entry.estimate))
    ]


def _comment(entry: modes.ModePlan, machine: machines.Machine | None) -> str:
    reasons = [f"{field}: {reason}" for field, reason in {**entry.reasons, **entry.running}.items()]
    warnings = [f"Warning: {text}" for text in _warning_lines(entry)]
    return "\n".join([f"Configuration {entry.mode.id}.", *reasons, *warnings, *settings_comment(entry, machine)])


def _write_plans(entries: list[modes.ModePlan], folder: Path, force: bool, machine: machines.Machine | None) -> None:
    files.make_folder(folder)
    for entry in entries:
        path = folder / f"{entry.mode.id}.yaml"
        files.write_atomically(path, plan_files.dump_plan(entry.plan, _comment(entry, machine)), overwrite=force)
        tell(f"wrote {path}")
        write_framework_files(entry.plan, folder / entry.mode.id, force, machine)


def settings_of(plan: plans.Plan, machine: machines.Machine | None) -> tuple[machines.Setting, ...]:
    """Return what suits a plan's hardware; what the plan decides otherwise is left out."""
    return solve.settings_for_plan(plan, machine, catalogs.load_catalog())


def settings_comment(entry: modes.ModePlan, machine: machines.Machine | None) -> list[str]:
    """Return the settings that suit a configuration's hardware as lines, none if there are none."""
    settings = settings_of(entry.plan, machine)
    lines = [f"  {setting.name}={setting.value}: {setting.reason}" for setting in settings]
    return ["", "Settings for this hardware:", *lines] if lines else []


def write_framework_files(plan: plans.Plan, folder: Path, force: bool, machine: machines.Machine | None) -> None:
    """Write the files that run a plan, and those of each phase of its data in a folder of its own."""
    catalog = catalogs.load_catalog()
    resolved = estimates.resolve_plan(plan, catalog, machine)
    files.make_folder(folder)
    for name, text in frameworks.framework_files(resolved, catalog, settings_of(plan, machine)).items():
        path = folder / name
        files.write_atomically(path, text, overwrite=force)
        tell(f"wrote {path}")
    for phase, phase_plan in storage.phase_plans(plan) if plan.data.phases else ():
        write_framework_files(phase_plan, folder / phase.name, force, machine)


@click.command()
@click.argument("file", nargs=-1, metavar="PLAN", type=click.Path())
@plan_flags
@options("sensitivity")
@output_options("table", "markdown", "json")
def sensitivity(
    file: tuple[str, ...],
    flags: plan_lines.PlanFlags,
    of: str,
    settings: tuple[str, ...],
    top: int,
    ascii_only: bool,
    output: Output,
) -> None:
    """Show what moves a figure most: each field of the plan by one step, and what nobody knows exactly.

    PLAN is as of the command plan. What is unknown goes from the low to the high end of its spread. One measurement
    is named that would narrow the range of the figure most, with the command that takes it.
    """
    if len(file) > 1:
        raise click.UsageError("one plan at a time: name one PLAN")
    (name,) = sources_of(file, flags)
    source = source_of(name, flags)
    try:
        plan = changed_plan(source.plan(), settings)
        with progress("changing each field of the plan"):
            result = solve.sensitivity(plan, of, machine_for(plan))
    except CapacityError as error:
        raise source.placed(error) from None
    form = output.form or "table"
    ascii_only = ascii_only or not output.takes_unicode
    output.write(_written(result, form, shlex.quote(name) if name else "PLAN", top, ascii_only, output), file)


def _written(result: solve.Sensitivity, form: str, name: str, top: int, ascii_only: bool, output: Output) -> str:
    if form == "json":
        return present.to_json(present.sensitivity_as_data(result, name))
    if form == "markdown":
        return present.sensitivity_as_markdown(result, name, top)
    return output.parts_text(present.sensitivity_parts(result, name, top, ascii_only))
