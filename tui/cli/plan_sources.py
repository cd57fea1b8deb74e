"""Options that several commands share, with completion of the names they take, and the plan that they make."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import machine as machines
from capacity_tui.engine import plan as plans
from capacity_tui.engine import solve
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.plan import imports as plan_imports
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.solve import search as searches
from capacity_tui.tui.cli.options import options
from capacity_tui.tui.cli.output import tell


def plan_flags(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the short flags of a plan, as its argument ``flags``."""

    @wraps(command)
    def with_flags(gpus: tuple[str, ...], **others: Any) -> object:
        if len(gpus) > 1:
            if "compare" not in others:
                raise click.UsageError("--gpu may be repeated with `plan` alone, which shows the plan on each")
            others["gpus"], others["compare"] = gpus, True
        given = {one.name: others.pop(one.name) for one in dataclass_fields(plan_lines.PlanFlags) if one.name in others}
        return command(flags=plan_lines.PlanFlags(gpu=next(iter(gpus), None), **given), **others)

    return options("plan flags")(with_flags)


class GivenPlan(NamedTuple):
    """The plan that a command is about."""

    plan: plans.Plan  # as flags and settings change it
    inputs: tuple[str, ...]  # the file it comes from, which results never replace
    asked: plan_lines.Asked | None = None  # what a line asks that its plan does not say
    name: str = ""  # what tells it from the others that its line compares
    # all plans that its line compares, this one among them; empty where it compares nothing
    compared: tuple[GivenPlan, ...] = ()


def plan_options(
    tried: tuple[str, ...] = (), *, compares: bool = False
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Give a command about one plan its argument PLAN, the short flags and ``--set``, together as ``given``.

    Args:
        tried: what the command tries where neither the plan nor its own ``--hardware`` names hardware.
        compares: whether it takes a line that compares plans, as ``A vs B``.
    """

    def decorated(command: Callable[..., object]) -> Callable[..., object]:
        @wraps(command)
        def with_plan(
            file: str | None, flags: plan_lines.PlanFlags, settings: tuple[str, ...], **others: object
        ) -> object:
            files = (file,) if file else ()
            (name,) = sources_of(files, flags)
            labels = compared_lines(name) if compares and name is not None else {}
            plans = []
            for line, label in labels.items() or ((name, ""),):
                source = source_of(line, flags, others.get("hardware") or tried)
                plans.append(GivenPlan(changed_plan(source.plan(), settings), files, source.asked, label))
            return command(given=plans[0]._replace(compared=tuple(plans) if labels else ()), **others)

        argument = click.argument("file", required=False, metavar="[PLAN]", type=click.Path())
        return argument(plan_flags(options("settings")(with_plan)))

    return decorated


def sources_of(files: tuple[str, ...], flags: plan_lines.PlanFlags) -> tuple[str | None, ...]:
    """Return the names of the plans that are meant; None stands for the flags alone; UsageError without either."""
    if files:
        return files
    if not flags.is_given and not flags.imports:
        raise click.UsageError("Missing argument 'FILE...'; or say a plan with --model, --task and --gpu")
    return (None,)


def compared_lines(name: str) -> Mapping[str, str]:
    """Return the lines that one line compares, each with what tells it apart; empty for what compares nothing."""
    if not plan_files.may_be_line(name):
        return {}

    return {line.text: line.name for line in plan_lines.alternatives(name)}


def source_of(name: str | None, flags: plan_lines.PlanFlags, hardware: object = None) -> plan_files.PlanSource:
    """Return the plan that a name stands for, before it is checked, changed by the flags.

    Args:
        name: a file, an example, a saved plan, a line in quotes, or ``-``; None for what the flags alone say.
        hardware: names that a command tries, with commas or one after another: a line without any is about the first,
            unless that stands for several.

    Raises:
        CapacityError: nothing is called that, or a word or flag makes no sense.
    """
    if name is None or flags.is_given or flags.imports or plan_files.may_be_line(name):
        return _with_words(name, flags, hardware)
    return _of_file(name)


def _with_words(name: str | None, flags: plan_lines.PlanFlags, hardware: object) -> plan_files.PlanSource:
    """Return the plan that words say: a line, or flags alone or with a plan; what reads them is loaded for these."""
    if name is None:
        return _imported(flags, {}, None) if flags.imports else _of_line(plan_lines.line_of_flags(flags), "the flags")
    line = plan_lines.read_line(name) if plan_files.may_be_line(name) else None
    if line is not None and not line.understood and len(line.faults) == len(line.unknown[:1]):
        line = None  # what says nothing at all is the name of a plan with a slip of the pen
    if flags.imports:
        if line is None:
            return _imported(flags, {}, plan_files.read_source(name, sys.stdin.buffer).plan())
        solve.refuse_faults(line)
        return _imported(flags, line.values, None)
    if line is not None:
        line = line.changed_by(plan_lines.line_of_flags(flags, line.task))
        tried = str(hardware[0]).partition(",")[0] if isinstance(hardware, tuple) and hardware else ""
        if tried and not line.has(Key.HARDWARE_NAME) and (one := _alone(tried)):
            line = line.changed_by(plan_lines.line_of_flags(plan_lines.PlanFlags(gpu=one), line.task))
        return _of_line(line, name, tries_hardware=bool(tried), leaves_out=flags.leave_out)
    source = _of_file(name)
    if not flags.is_given:
        return source
    plan = source.plan()
    return replace(source, made=solve.changed_by_line(plan, plan_lines.line_of_flags(flags, plan.task)))


def _alone(name: str) -> str | None:
    """Return hardware of a name, None where the name stands for several, such as those of a maker."""
    return name if len(searches.hardware_ids((name,), catalogs.load_catalog())) == 1 else None


def _of_file(name: str) -> plan_files.PlanSource:
    """Return the plan of a file, an example, a saved plan or standard input."""
    source = plan_files.read_source(name, sys.stdin.buffer)
    if not plan_files.names_model(source.document.data):
        plan_imports.refuse_files_of_tools(source.document)
    return source


def _of_line(
    line: plan_lines.OneLine, name: str, *, tries_hardware: bool = False, leaves_out: bool = False
) -> plan_files.PlanSource:
    """Return the plan that a line says; what was assumed is reported, hardware only where a command tries no other."""
    if leaves_out:
        line = line.without_meaningless()
    elif line.meaningless:
        tell(f"capacity-tui: `--leave-out` plans without {', '.join(line.meaningless)}")
    machine = None if line.has(Key.HARDWARE_NAME) else machines.detect()
    made = solve.plan_of_line(line, machine, tries_hardware=tries_hardware)
    if made.assumed:
        tell(f"capacity-tui: assumed: {'; '.join(made.assumed)}")
    return plan_files.PlanSource.of_plan(
        made.plan, name, assumed=made.assumptions, not_understood=made.remarks, asked=made.asked
    )


def imported_of(files: tuple[str, ...], flags: plan_lines.PlanFlags) -> plan_imports.Imported:
    """Return what files of other tools say, with what the flags add; they may name no model."""
    line = plan_lines.line_of_flags(flags)
    solve.refuse_faults(line)
    names = (*files, *flags.imports)
    return plan_imports.import_plan(names, line.values, allow_stand_in=flags.stand_in, allow_fragment=True)


def _imported(
    flags: plan_lines.PlanFlags, values: Mapping[str, object], base: plans.Plan | None
) -> plan_files.PlanSource:
    """Return the plan that files of other tools say, with what is typed beside them; remarks on them are reported."""
    line = plan_lines.line_of_flags(flags, base.task if base else None)
    solve.refuse_faults(line)
    imported = plan_imports.import_plan(flags.imports, {**values, **line.values}, base, allow_stand_in=flags.stand_in)
    for note in imported.notes():
        tell(f"capacity-tui: {note}")
    return plan_files.PlanSource.of_plan(
        imported.plan, ", ".join(flags.imports), imported.places, not_understood=tuple(imported.not_understood)
    )


def read_plan(name: str) -> plans.Plan:
    """Return the plan of a file, an example, a line or standard input; raises CapacityError for what is none."""
    return source_of(name, plan_lines.PlanFlags()).plan()


def changed_plan(plan: plans.Plan, settings: tuple[str, ...]) -> plans.Plan:
    """Return a plan with what settings change; raises PlanError for a setting that makes no sense."""
    if not settings:
        return plan
    changed = plan_files.apply_settings(plan, settings)
    for follower in changed.followed:
        tell(f"capacity-tui: also changed: {follower.words}")
    return changed.plan


def machine_for(plan: plans.Plan) -> machines.Machine | None:
    if plan.hardware.name != "detected":
        return None

    return machines.detect()
