"""``fleet sets``: workloads that answer one question together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.listings import Columns, listing_options, write_listing
from capacity_tui.tui.headless.output import format_of

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import WorkloadSet as WorkloadSetRow


@click.command()
@listing_options
@click.option("--details", metavar="ID", help="All that is known about one.")
@config_option
def sets(
    listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None, config: Path | None
) -> None:
    """List the sets of workloads, with what each is for."""
    del listing
    from capacity_tui.engine.catalog import load_catalog

    columns = Columns(("id", "purpose", "workloads", "for", "which"), _cells, (2,), (0, 1, 2))
    rows = load_catalog(fleet_files=config).workload_sets
    write_listing(rows, columns, details, text, wanted or format_of(output), output)


def _cells(row: WorkloadSetRow) -> Sequence[str]:
    return (row.id, row.purpose, f"{len(row.workloads)}", row.use_case, ", ".join(row.workloads))
