"""``configs``: three configurations of a plan as files; ``sensitivity``: what moves a figure of a plan most."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.cli.output import Output, output_options, progress, tell
from capacity_tui.tui.cli.plan_sources import (
    changed_plan,
    machine_for,
    plan_flags,
    settings_option,
    source_of,
    sources_of,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.machine import Machine, Setting
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.plan.line import PlanFlags
    from capacity_tui.engine.solve import Sensitivity
    from capacity_tui.engine.solve.modes import Comparison, ModePlan


MODE_NAMES = ("conservative", "balanced", "extreme")
_MOST_ROWS = 12


@click.command()
@click.argument("file", required=False, metavar="[FILE]", type=click.Path())
@plan_flags
@click.option("--mode", type=click.Choice(MODE_NAMES), help="Only this mode.")
@click.option(
    "-o", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Write plan files and framework files."
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--phases", is_flag=True, help="Train in two phases, short sequences first; each has files of its own.")
@output_options("table", "json", "yaml", to_file=False)
def configs(
    file: str | None, flags: PlanFlags, mode: str | None, folder: Path | None, force: bool, phases: bool, output: Output
) -> None:
    """Propose conservative, balanced and extreme configurations, as plan files; of a plan, or of what the flags say."""
    from capacity_tui.engine.keys import Key
    from capacity_tui.engine.machine import detect as look
    from capacity_tui.engine.plan import edited
    from capacity_tui.engine.schema import AUTO
    from capacity_tui.engine.solve.modes import compare

    plan = _open_plan(file, flags)
    if phases:
        plan = edited(plan, {Key.DATA_PHASES: AUTO}).plan
    machine = look() if plan.hardware.name == "detected" else None
    with progress("filling the plan by three modes"):
        comparison = compare(plan, machine)
    chosen = [entry for entry in mode_plans(comparison) if mode in (None, entry.mode.id)]
    if folder is not None:
        _write_plans(chosen, folder, force, machine)
        return
    if output.form == "yaml":
        from capacity_tui.engine.plan.files import dump_plan

        texts = [dump_plan(entry.plan, _comment(entry, machine)) for entry in chosen]
        output.write("---\n".join(texts))
    elif output.is_data:
        from capacity_tui.engine.present import result_as_dict

        results: dict[str, object] = {
            entry.mode.id: {
                **result_as_dict(entry.plan, entry.annotated_estimate),
                "settings": settings_data(entry, machine),
            }
            for entry in chosen
        }
        output.data(results)
    else:
        remarks = () if mode else comparison.remarks
        settings = settings_comment(chosen[0], machine)
        output.show([*mode_table(chosen), *remarks, *mode_notes(chosen), *settings])


def _open_plan(file: str | None, flags: PlanFlags) -> Plan:
    """Return a plan, or what the flags say; what they leave open each mode chooses, the model too."""
    from capacity_tui.engine.plan.line import line_of_flags
    from capacity_tui.engine.solve import changed_by_line, open_plan

    if file is not None:
        return source_of(file, flags).plan()
    line = line_of_flags(flags)
    return changed_by_line(open_plan(line.task), line)


def mode_plans(comparison: Comparison) -> tuple[ModePlan, ...]:
    """Return the plans of the three modes."""
    return (comparison.conservative, comparison.balanced, comparison.extreme)


def mode_table(entries: Sequence[ModePlan]) -> Iterator[RenderableType]:
    """Yield the configurations side by side."""
    from capacity_tui.engine.present import settings_part
    from capacity_tui.tui.cli.rich_tables import rich_parts

    yield from rich_parts([settings_part([(entry.mode.id, entry.plan, entry.estimate) for entry in entries])])


def mode_notes(entries: Sequence[ModePlan]) -> Iterator[str]:
    """Yield what each mode is, what its configuration uses of its shares, and what it warns of."""
    for entry in entries:
        yield from _mode_lines(entry)
    for entry in entries:
        yield from (f"{entry.mode.id}: {text}" for text in _warning_lines(entry))


def _mode_lines(entry: ModePlan) -> list[str]:
    """Return what a mode is, and how much of its shares its configuration uses."""
    summary = entry.filled_by
    if summary is None:
        return []
    details = (*(share.words for share in summary.shares), summary.reserve, *summary.outside)
    return [summary.line, *(f"  {text}" for text in details if text)]


def _warning_lines(entry: ModePlan) -> list[str]:
    from capacity_tui.engine.present import note_text
    from capacity_tui.engine.solve.advice import dear_spot

    return [note_text(note) for note in (*entry.annotated_estimate.warnings, *dear_spot(entry.estimate))]


def _comment(entry: ModePlan, machine: Machine | None) -> str:

    reasons = [f"{field}: {reason}" for field, reason in {**entry.reasons, **entry.running}.items()]
    warnings = [f"Warning: {text}" for text in _warning_lines(entry)]
    return "\n".join([f"Configuration {entry.mode.id}.", *reasons, *warnings, *settings_comment(entry, machine)])


def _write_plans(entries: list[ModePlan], folder: Path, force: bool, machine: Machine | None) -> None:
    from capacity_tui.engine.files import make_folder, write_atomically
    from capacity_tui.engine.plan.files import dump_plan

    make_folder(folder)
    for entry in entries:
        path = folder / f"{entry.mode.id}.yaml"
        write_atomically(path, dump_plan(entry.plan, _comment(entry, machine)), overwrite=force)
        tell(f"wrote {path}")
        write_framework_files(entry.plan, folder / entry.mode.id, force, machine)


def settings_of(plan: Plan, machine: Machine | None) -> tuple[Setting, ...]:
    """Return what suits a plan's hardware; what the plan decides otherwise is left out."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.solve import settings_for_plan

    return settings_for_plan(plan, machine, load_catalog())


def settings_data(entry: ModePlan, machine: Machine | None) -> list[dict[str, object]]:
    """Return the settings that suit a configuration's hardware as plain data."""
    return [asdict(setting) for setting in settings_of(entry.plan, machine)]


def settings_comment(entry: ModePlan, machine: Machine | None) -> list[str]:
    """Return the settings that suit a configuration's hardware as lines, none if there are none."""
    settings = settings_of(entry.plan, machine)
    lines = [f"  {setting.name}={setting.value}: {setting.reason}" for setting in settings]
    return ["", "Settings for this hardware:", *lines] if lines else []


def write_framework_files(plan: Plan, folder: Path, force: bool, machine: Machine | None) -> None:
    """Write the files that run a plan, and those of each phase of its data in a folder of its own.

    Args:
        plan: every default filled in.
        folder: where they go; made if it is not there.
        force: whether files that are there may be replaced.
        machine: the detected machine, for plans that run on it.

    Raises:
        CapacityError: a file is there already, or cannot be written.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.estimate import resolve_plan
    from capacity_tui.engine.files import make_folder, write_atomically
    from capacity_tui.engine.present.frameworks import framework_files
    from capacity_tui.engine.storage import phase_plans

    catalog = load_catalog()
    files = framework_files(resolve_plan(plan, catalog, machine), catalog, settings_of(plan, machine))
    make_folder(folder)
    for name, text in files.items():
        path = folder / name
        write_atomically(path, text, overwrite=force)
        tell(f"wrote {path}")
    for phase, phase_plan in phase_plans(plan) if plan.data.phases else ():
        write_framework_files(phase_plan, folder / phase.name, force, machine)


@click.command()
@click.argument("file", nargs=-1, metavar="PLAN", type=click.Path())
@plan_flags
@click.option(
    "--of",
    default="time",
    metavar="FIGURE",
    show_default=True,
    help="Result key or short word of the figure: time, usd, memory, ttft, computation.mfu.",
)
@settings_option
@click.option(
    "--top", type=click.IntRange(min=1), default=_MOST_ROWS, show_default=True, help="Rows of each table; JSON has all."
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
@output_options("table", "markdown", "json")
def sensitivity(
    file: tuple[str, ...],
    flags: PlanFlags,
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
    from capacity_tui.engine.solve import sensitivity as sensitivity_of

    if len(file) > 1:
        raise click.UsageError("one plan at a time: name one PLAN")
    (name,) = sources_of(file, flags)
    source = source_of(name, flags)
    try:
        plan = changed_plan(source.plan(), settings)
        with progress("changing each field of the plan"):
            result = sensitivity_of(plan, of, machine_for(plan))
    except CapacityError as error:
        raise source.placed(error) from None
    form = output.form or "table"
    ascii_only = ascii_only or not output.takes_unicode
    output.write(_written(result, form, shlex.quote(name) if name else "PLAN", top, ascii_only, output), file)


def _written(result: Sensitivity, form: str, name: str, top: int, ascii_only: bool, output: Output) -> str:
    from capacity_tui.engine.present import sensitivity_as_data, sensitivity_as_markdown, sensitivity_parts, to_json

    if form == "json":
        return to_json(sensitivity_as_data(result, name))
    if form == "markdown":
        return sensitivity_as_markdown(result, name, top)
    return output.parts_text(sensitivity_parts(result, name, top, ascii_only))
