"""``configs``: three configurations of a plan as files; ``sensitivity``: what moves a figure of a plan most."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import files, present, schema, solve, storage
from capacity_tui.engine import machine as machines
from capacity_tui.engine import plan as plans
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.present import frameworks
from capacity_tui.engine.solve import advice as advising
from capacity_tui.engine.solve import modes
from capacity_tui.tui.cli.options import options, output_options
from capacity_tui.tui.cli.output import Output, progress, tell
from capacity_tui.tui.cli.plan_sources import changed_plan, machine_for, plan_flags, source_of, sources_of

if TYPE_CHECKING:
    from rich.console import RenderableType


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
        yield from _mode_lines(entry)
    for entry in entries:
        yield from (f"{entry.mode.id}: {text}" for text in _warning_lines(entry))


def _mode_lines(entry: modes.ModePlan) -> list[str]:
    """Return what a mode is, and how much of its shares its configuration uses."""
    summary = entry.filled_by
    if summary is None:
        return []
    details = (*(share.words for share in summary.shares), summary.reserve, *summary.outside)
    return [summary.line, *(f"  {text}" for text in details if text)]


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
