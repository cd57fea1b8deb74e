"""``fleet regions``: the same job region by region."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import changed_plan, machine_for

if TYPE_CHECKING:
    from capacity_tui.engine.plan.line import PlanFlags


@click.command()
@click.argument("file", required=False, metavar="[PLAN]")
@plan_flags
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value of the plan first; may be repeated.")  # fmt: skip
@click.option("--data", metavar="SIZE", default="0", help="Data that has to be where the job runs, such as 2TB.")
@click.option("--home", metavar="REGION", help="Where the data is; by default the plan's region.")
@config_option
@format_option("table", "json", "yaml")
@output_option
def regions(
    file: str | None,
    flags: PlanFlags,
    settings: tuple[str, ...],
    data: str,
    home: str | None,
    config: Path | None,
    wanted: str | None,
    output: Path | None,
) -> None:
    """Compare regions for one job: the price of its machines there, and of its data's way there.

    The plan names an instance, or a device whose instances are compared, of which each region has the cheapest.
    Prices are as the plan pays: on demand, with its commitment, or on spot capacity. A plan whose length is open is
    compared by the month.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.fleet import by_region
    from capacity_tui.engine.present.fleet import regions_as_dict, regions_parts
    from capacity_tui.engine.units import parse_quantity
    from capacity_tui.tui.headless.tables.layout import rich_parts

    (name,) = sources_of((file,) if file else (), flags)
    plan = changed_plan(source_of(name, flags).plan(), settings)
    found = by_region(plan, parse_quantity(data, "B"), home, load_catalog(fleet_files=config), machine_for(plan))
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(regions_as_dict(found), form, output)
    else:
        write(as_text(rich_parts(regions_parts(found)), output is not None), output)
