"""``fleet check``, ``prices``, ``sizes`` and ``sets``: what is known of instances, model sizes and workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import cluster as clusters
from capacity_tui.engine import files, fleet, present
from capacity_tui.engine.printable import printable
from capacity_tui.engine.units import format_bytes, format_money, format_number
from capacity_tui.tui.cli.options import (
    listing_options,
    named_or_matching,
    options,
    output_options,
    write_listing,
    write_table,
)
from capacity_tui.tui.cli.output import Output, fault_data, location_as_dict, tell, tell_problems

_LISTED_BY = {"instances": "instances", "sizes": "fleet sizes", "workloads": "workloads", "sets": "fleet sets"}


@click.command()
@options("fleet check")
@output_options("text", "json", "yaml")
def check(config: Path | None, output: Output) -> int:
    """Tell what is known, and name every fault of your own catalogues and JSON files; whatever has none is used."""
    checked = fleet.check_fleet_files(config)
    if output.is_data:
        data = {
            "valid": not checked.faults,
            "files": [str(path) for path in checked.files],
            "faults": [fault_data(fault) for fault in checked.faults],
            "remarks": [{**location_as_dict(remark.place), "detail": remark.words} for remark in checked.remarks],
            "known": {kind: len(names) for kind, names in checked.known.items()},
            "names": {kind: list(names) for kind, names in checked.known.items()},
        }
        output.data(data)
    else:
        lines = [f"fault: {fault.one_line()}" for fault in checked.faults]
        lines += [f"note: {remark.one_line()}" for remark in checked.remarks]
        lines += [] if checked.faults else ["your own catalogues: no faults"]
        lines += [_known_line(kind, names) for kind, names in checked.known.items()]
        lines += [f"files of your own lie in {files.config_folder() / 'catalog'}, or where --config says"]
        output.write("".join(f"{printable(line)}\n" for line in lines))
    return max((fault.exit_code for fault in checked.faults), default=0)


_NAMED = 12  # names that a line still holds


def _known_line(kind: str, names: Sequence[str]) -> str:
    """Return how many there are, which, and what tells all of them."""
    which = f" ({', '.join(names)})" if len(names) <= _NAMED else ""
    return f"{len(names)} {kind} known{which}: capacity-tui {_LISTED_BY[kind]}"


_OLD, _DOUBT = "*", "?"
_LEGEND = {_OLD: "seen over 90 days ago, or on an unknown day", _DOUBT: "from memory, no source"}
"""What a mark behind a price says."""


@click.command()
@options("fleet prices")
@output_options("table", "json", "csv", "yaml")
def prices(text: str, region: str | None, refresh: bool, config: Path | None, output: Output) -> None:
    """List what every instance costs: whole and by accelerator, on demand, on spot capacity, committed to.

    A month has 720 hours, memory is that of all accelerators together. A star stands behind a price over 90 days old,
    or of no known day. JSON and CSV hold the prices of all regions.
    """
    catalog = catalogs.load_catalog(fleet_files=config)
    if refresh:
        catalog = _refreshed(catalog)
    tell_problems(catalog.problems)
    form = output.form
    listed = fleet.price_list(named_or_matching(catalog.instances, text), region, catalog)
    if form == "csv":
        output.write(fleet.prices_as_csv(listed))
    elif output.is_data:
        output.data(fleet.price_rows(listed))
    else:
        table = present.columns_part(_PRICES, listed, is_list=True)
        write_table(table, output, catalog.instances.nearest(text))
        marks = {mark for row in table.rows for at in table.right for mark in _LEGEND if mark in row[at]}
        if marks:
            tell("behind a price: " + "; ".join(f"{mark} {words}" for mark, words in _LEGEND.items() if mark in marks))


def _refreshed(catalog: catalogs.Catalog) -> catalogs.Catalog:
    refreshed = fleet.refresh_prices(catalog)
    left_out = f", {refreshed.dropped} that cannot be left out" if refreshed.dropped else ""
    tell(
        f"{format_number(refreshed.prices)} prices of {refreshed.instances} instances from {refreshed.source}"
        f"{left_out}; {refreshed.missing} instances keep what was known; kept in {refreshed.path}"
    )
    for words in fleet.failure_words(refreshed.failures):
        tell(f"capacity-tui: {words}; the prices that were known stay")
    return refreshed.catalog


def _size(size: float | None) -> str:
    return format_bytes(size) if size else ""


def _region(quote: clusters.Quote | None) -> str:
    return "" if quote is None else quote.region or ""


def _spot_region(prices: fleet.ListedPrices) -> str:
    """Return where spot capacity is cheapest; empty where that is the region of the other prices."""
    region = _region(prices.spot)
    return region if region != _region(prices.first) else ""


def _month(quote: clusters.Quote | None) -> str:
    from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH

    return "" if quote is None else format_money(quote.usd_per_hour * HOURS_OF_A_MONTH, 0)


def _usd(quote: clusters.Quote | None, by_device: bool = False) -> str:
    usd = None if quote is None else quote.usd_per_device_hour if by_device else quote.usd_per_hour
    if quote is None or usd is None:
        return ""
    return format_money(usd) + (_OLD if quote.age.is_old else "") + ("" if quote.verified else _DOUBT)


_PRICES: Sequence[present.Column[fleet.ListedPrices]] = (
    present.Column("id", lambda one: one.row.id, is_kept=True),
    present.Column("$/h", lambda one: _usd(one.on_demand), is_right=True, is_kept=True),
    present.Column("spot/h", lambda one: _usd(one.spot), is_right=True, is_kept=True),
    present.Column("month", lambda one: _month(one.on_demand), is_right=True, is_kept=True),
    present.Column("spot month", lambda one: _month(one.spot), is_right=True),
    present.Column("memory", lambda one: _size(one.device_memory_bytes), is_right=True),
    present.Column("$/h a device", lambda one: _usd(one.on_demand, by_device=True), is_right=True),
    present.Column("1 year/h", lambda one: _usd(one.one_year), is_right=True),
    present.Column("3 years/h", lambda one: _usd(one.three_years), is_right=True),
    present.Column("region", lambda one: f"{one.row.provider} {_region(one.first)}".rstrip()),
    present.Column("price of", lambda one: catalogs.marked_day(one.first.price_date) if one.first else ""),
    present.Column("devices", lambda one: one.row.devices_words),
    present.Column("spot region", _spot_region),
)


@click.command()
@click.argument("names", nargs=-1, metavar="[SIZE]...")
@options("fleet sizes")
@output_options("table", "json", "yaml")
@options("config")
def sizes(names: tuple[str, ...], precisions: tuple[str, ...], output: Output, config: Path | None) -> None:
    """Tell what the weights of models of known sizes take in each precision, in GB (billions of bytes)."""
    catalog = catalogs.load_catalog(fleet_files=config)
    tell_problems(catalog.model_sizes.problems)
    weights = fleet.sizes_in_precisions(catalog, precisions, names)
    if output.is_data:
        rows = [
            {
                "id": weight.size.id,
                "name": weight.size.name,
                "parameter_count_billion": weight.size.parameter_count_billion,
                "precision": weight.precision.id,
                "weights_bytes": weight.weights_bytes,
                "weights_gb": weight.weights_gb,
            }
            for weight in weights
        ]
        output.data(rows)
        return
    by_size = [(size, list(weight)) for size, weight in groupby(weights, key=lambda weight: weight.size)]
    of_one = [weight.precision.id for weight in by_size[0][1]] if by_size else []
    heads = ("id", "parameters", *(f"{precision} GB" for precision in of_one), "stands for", "examples", "uses")
    cells = [
        (
            size.id,
            f"{size.parameter_count_billion:g} B",
            *(format_number(weight.weights_gb, decimals=1) for weight in row),
            size.description,
            ", ".join(size.examples),
            ", ".join(size.typical_use_cases),
        )
        for size, row in by_size
    ]
    numbers = range(1, 2 + len(of_one))
    table = present.table_part(heads, cells, numbers, (0, *numbers))
    write_table(replace(table, is_list=True), output, ())


@click.command()
@listing_options
@options("fleet sets")
def sets(details: str | None, text: str, output: Output, config: Path | None) -> None:
    """List the sets of workloads, with what each is for."""
    write_listing(catalogs.load_catalog(fleet_files=config).workload_sets, _SETS, details, text, output)


_SETS: Sequence[present.Column[catalogs.WorkloadSet]] = (
    present.Column("id", lambda row: row.id, is_kept=True),
    present.Column("purpose", lambda row: row.purpose, is_kept=True),
    present.Column("workloads", lambda row: f"{len(row.workloads)}", is_right=True, is_kept=True),
    present.Column("for", lambda row: row.use_case),
    present.Column("which", lambda row: ", ".join(row.workloads)),
)
