"""``sensitivity``: what moves a figure of a plan most, and what to measure to be surer of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.cli.output import Output, output_options
from capacity_tui.tui.cli.plan_sources import (
    changed_plan,
    machine_for,
    plan_flags,
    settings_option,
    source_of,
    sources_of,
)
from capacity_tui.tui.cli.progress import working

if TYPE_CHECKING:
    from capacity_tui.engine.plan.line import PlanFlags
    from capacity_tui.engine.solve import Sensitivity

_MOST_ROWS = 12


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
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
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
        with working("changing each field of the plan"):
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
