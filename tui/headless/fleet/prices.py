"""``fleet prices``: what every instance costs, by region and terms, and how old each price is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.listings import named_or_matching, write_data, write_table
from capacity_tui.tui.headless.output import format_of, format_option, output_option, tell, tell_problems, write

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.cluster import Quote
    from capacity_tui.engine.fleet.prices import ListedPrices


_HEADS = (
    "id", "$/h", "spot/h", "month", "spot month", "memory", "$/h a device", "1 year/h", "3 years/h", "region",
    "price of", "devices", "spot region",
)  # fmt: skip
_OLD, _DOUBT = "*", "?"
_LEGEND = {_OLD: "seen over 90 days ago, or on no known day", _DOUBT: "recalled, no source was seen"}
"""What a mark behind a price says."""


@click.command()
@click.option("--filter", "text", metavar="TEXT", default="", help="Only instances that contain every word of it.")
@click.option("--region", metavar="R", help="Prices of this region, or of this part of the world: us, europe, asia ...")
@click.option("--refresh", is_flag=True, help="Fetch today's prices first, over the network (extra: prices).")
@config_option
@format_option("table", "json", "csv", "yaml")
@output_option
def prices(
    text: str, region: str | None, refresh: bool, config: Path | None, wanted: str | None, output: Path | None
) -> None:
    """List what every instance costs: whole and by accelerator, on demand, on spot capacity, committed to.

    A month has 720 hours, memory is that of all accelerators together. A star stands behind a price over 90 days old,
    or of no known day. JSON and CSV hold the prices of all regions.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.fleet.prices import price_list, price_rows, prices_as_csv

    catalog = load_catalog(fleet_files=config)
    if refresh:
        catalog = _refreshed(catalog)
    tell_problems(catalog.problems)
    form = wanted or format_of(output) or ("csv" if output is not None and output.suffix == ".csv" else None)
    listed = price_list(named_or_matching(catalog.instances, text), region, catalog)
    if form == "csv":
        write(prices_as_csv(listed), output)
    elif form in ("json", "yaml"):
        write_data(price_rows(listed), form, output)
    else:
        cells = [_cells(each) for each in listed]
        write_table(_HEADS, cells, range(1, 9), {0, 1, 2, 3}, output, catalog.instances.nearest(text))
        marks = {mark for row in cells for cell in row[1:9] for mark in _LEGEND if mark in cell}
        if marks:
            tell("behind a price: " + "; ".join(f"{mark} {words}" for mark, words in _LEGEND.items() if mark in marks))


def _refreshed(catalog: Catalog) -> Catalog:
    from capacity_tui.engine.fleet.prices import refresh_prices
    from capacity_tui.engine.units import format_number

    found = refresh_prices(catalog)
    left_out = f", {found.dropped} that cannot be left out" if found.dropped else ""
    tell(
        f"{format_number(found.prices)} prices of {found.instances} instances from {found.source}{left_out}; "
        f"{found.missing} instances keep what was known; kept in {found.path}"
    )
    return found.catalog


def _cells(each: ListedPrices) -> Sequence[str]:
    from capacity_tui.engine.catalog import marked_day
    from capacity_tui.engine.units import format_bytes

    first, spot = each.first, each.spot
    region = "" if first is None else first.region or ""
    spot_region = "" if spot is None else spot.region or ""
    return (
        each.row.id,
        _usd(each.on_demand),
        _usd(spot),
        _month(each.on_demand),
        _month(spot),
        format_bytes(each.device_memory_bytes) if each.device_memory_bytes else "",
        _usd(each.on_demand, by_device=True),
        _usd(each.one_year),
        _usd(each.three_years),
        f"{each.row.provider} {region}".rstrip(),
        marked_day(first.price_date) if first else "",
        each.row.devices_words,
        spot_region if spot_region != region else "",
    )


def _month(quote: Quote | None) -> str:
    from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH
    from capacity_tui.engine.units import format_money

    return "" if quote is None else format_money(quote.usd_per_hour * HOURS_OF_A_MONTH, 0)


def _usd(quote: Quote | None, by_device: bool = False) -> str:
    from capacity_tui.engine.units import format_money

    usd = None if quote is None else quote.usd_per_device_hour if by_device else quote.usd_per_hour
    if quote is None or usd is None:
        return ""
    return format_money(usd) + (_OLD if quote.age.is_old else "") + ("" if quote.verified else _DOUBT)
