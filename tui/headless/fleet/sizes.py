"""``fleet sizes``: what models of the known sizes take in each precision."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import click

from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.listings import write_data, write_table
from capacity_tui.tui.headless.output import format_of, format_option, output_option, tell_problems


@click.command()
@click.argument("names", nargs=-1, metavar="[SIZE]...")
@click.option("--precision", "precisions", multiple=True, metavar="P", help="Only this precision; may be repeated.")
@format_option("table", "json", "yaml")
@output_option
@config_option
def sizes(
    names: tuple[str, ...], precisions: tuple[str, ...], wanted: str | None, output: Path | None, config: Path | None
) -> None:
    """Tell what the weights of models of known sizes take in each precision, in GB (billions of bytes)."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.fleet import sizes_in_precisions
    from capacity_tui.engine.units import format_number

    catalog = load_catalog(fleet_files=config)
    tell_problems(catalog.model_sizes.problems)
    found = sizes_in_precisions(catalog, precisions, names)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        rows = [
            {
                "id": each.size.id,
                "name": each.size.name,
                "parameter_count_billion": each.size.parameter_count_billion,
                "precision": each.precision.id,
                "weights_bytes": each.weights_bytes,
                "weights_gb": each.weights_gb,
            }
            for each in found
        ]
        write_data(rows, form, output)
        return
    by_size = [(size, list(each)) for size, each in groupby(found, key=lambda each: each.size)]
    of_one = [each.precision.id for each in by_size[0][1]] if by_size else []
    heads = ("id", "parameters", *(f"{precision} GB" for precision in of_one), "stands for", "examples", "uses")
    cells = [
        (
            size.id,
            f"{size.parameter_count_billion:g} B",
            *(format_number(each.weights_gb, decimals=1) for each in row),
            size.description,
            ", ".join(size.examples),
            ", ".join(size.typical_use_cases),
        )
        for size, row in by_size
    ]
    numbers = range(1, 2 + len(of_one))
    write_table(heads, cells, numbers, {0, *numbers}, output, ())
