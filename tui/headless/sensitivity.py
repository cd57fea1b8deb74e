"""``sensitivity``: what moves a figure of a plan most, and what to measure to be surer of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import changed_plan, machine_for

if TYPE_CHECKING:
    from capacity_tui.engine.plan.line import PlanFlags
    from capacity_tui.engine.solve import Sensitivity

_MOST_ROWS = 12


@click.command()
@click.argument("file", nargs=-1, metavar="PLAN", type=click.Path())
@plan_flags
@click.option("--of", default="time", metavar="FIGURE", show_default=True,
              help="Result key or short word of the figure: time, usd, memory, ttft, computation.mfu.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value first; may be repeated.")  # fmt: skip
@click.option("--top", type=click.IntRange(min=1), default=_MOST_ROWS, show_default=True,
              help="Rows of each table; JSON has all.")  # fmt: skip
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
@format_option("table", "markdown", "json")
@output_option
def sensitivity(
    file: tuple[str, ...],
    flags: PlanFlags,
    of: str,
    settings: tuple[str, ...],
    top: int,
    ascii_only: bool,
    wanted: str | None,
    output: Path | None,
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
        found = sensitivity_of(plan, of, machine_for(plan))
    except CapacityError as error:
        raise source.placed(error) from None
    form = wanted or format_of(output) or "table"
    ascii_only = ascii_only or (output is None and "utf" not in (sys.stdout.encoding or "").lower())
    write(_written(found, form, shlex.quote(name) if name else "PLAN", top, ascii_only, output), output, file)


def _written(found: Sensitivity, form: str, name: str, top: int, ascii_only: bool, output: Path | None) -> str:
    from capacity_tui.engine.present import sensitivity_as_data, sensitivity_as_markdown, to_json

    if form == "json":
        return to_json(sensitivity_as_data(found, name))
    if form == "markdown":
        return sensitivity_as_markdown(found, name, top)
    from capacity_tui.tui.headless.tables.sensitivity import sensitivity_tables

    return as_text(sensitivity_tables(found, name, top, ascii_only), output is not None)
