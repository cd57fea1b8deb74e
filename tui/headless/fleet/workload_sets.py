"""``fleet sets``: workloads that answer one question together."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.listings import (
    fields,
    listing_options,
    named_or_matching,
    write_data,
    write_details,
    write_table,
)
from capacity_tui.tui.headless.output import format_of, tell_problems


@click.command()
@listing_options
@click.option("--details", metavar="ID", help="All that is known about one.")
@config_option
def sets(
    listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None, config: Path | None
) -> None:
    """List the sets of workloads, with what each is for."""
    del listing
    from capacity_tui.engine.api import load_catalog

    table = load_catalog(fleet_files=config).workload_sets
    tell_problems(table.problems)
    form = wanted or format_of(output)
    if details is not None:
        write_details(table.find(details), form, output)
        return
    found = named_or_matching(table, text)
    if form in ("json", "yaml"):
        write_data([fields(row) for row in found], form, output)
        return
    heads = ("id", "purpose", "workloads", "for", "which")
    cells = [(row.id, row.purpose, f"{len(row.workloads)}", row.use_case, ", ".join(row.workloads)) for row in found]
    write_table(heads, cells, (2,), {0, 1, 2}, output, table.nearest(text))
