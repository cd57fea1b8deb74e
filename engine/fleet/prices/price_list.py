"""Every instance with its prices, as a list that people and programs read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog, Instance
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH
from capacity_tui.engine.cluster import ON_DEMAND, SPOT, Payment, Quote, chosen_quote, quotes, region_id
from capacity_tui.engine.printable import csv_table


@dataclass(frozen=True, slots=True)
class ListedPrices:
    """An instance with what it costs.

    Attributes:
        row: the instance.
        on_demand: its price in the region that is asked for, or in its own; None where none is known.
        spot: the same on capacity that may be taken back.
        one_year: the same for a commitment of a year.
        three_years: the same for three years.
        every: all prices that are known, of the part of the world that is asked for.
        device_memory_bytes: memory of all accelerators together; None without any, or where it is not known.
    """

    row: Instance
    on_demand: Quote | None
    spot: Quote | None
    one_year: Quote | None
    three_years: Quote | None
    every: tuple[Quote, ...]
    device_memory_bytes: float | None = None

    @property
    def first(self) -> Quote | None:
        """The price that tells region, day and source of the instance: on demand, else on spot capacity."""
        return self.on_demand or self.spot or self.one_year or self.three_years


def price_list(rows: Sequence[Instance], region: str | None, catalog: Catalog) -> tuple[ListedPrices, ...]:
    """Return instances with their prices; where a region or an area is asked for, those alone that have one there.

    Args:
        rows: the instances.
        region: id of a region or an area; None for all, each in its own.
        catalog: prices, regions and commitments.

    Raises:
        PlanError: no region is called that.
    """
    wanted = None if region is None else region_id(region, catalog, "--region")
    listed = (_listed(row, wanted, catalog) for row in rows)
    return tuple(each for each in listed if wanted is None or each.every)


def _listed(row: Instance, wanted: str | None, catalog: Catalog) -> ListedPrices:
    def there(payment: Payment) -> Quote | None:
        found = chosen_quote(row, payment, wanted, catalog)
        return None if found is None or found.remark else found

    every = tuple(quotes(row, catalog))
    if wanted is not None:
        every = tuple(quote for quote in every if _is_in(quote, wanted, catalog))
    return ListedPrices(
        row, there(ON_DEMAND), there(SPOT), there("1y"), there("3y"), every, _device_memory(row, catalog)
    )


def _device_memory(row: Instance, catalog: Catalog) -> float | None:
    if row.accelerator is None:
        return None
    return catalog.accelerators[row.accelerator].memory_bytes * float(row.accelerator_count or 0)


def _is_in(quote: Quote, wanted: str, catalog: Catalog) -> bool:
    found = catalog.regions.find_id(quote.region or "")
    if found is None or wanted in (found, quote.region):
        return wanted in (found, quote.region)
    area = catalog.regions[wanted]
    return area.provider is None and bool(set(area.areas) & set(catalog.regions[found].areas))


def price_rows(listed: Sequence[ListedPrices]) -> list[dict[str, object]]:
    """Return the list as plain data."""
    return [dict(_data(each)) for each in listed]


def _data(each: ListedPrices) -> Iterator[tuple[str, object]]:
    row, first = each.row, each.first
    yield from (("instance", row.id), ("name", row.name), ("provider", row.provider))
    yield from (("accelerator", row.accelerator), ("accelerator_count", row.accelerator_count))
    yield from (("processor", row.processor), ("cores", row.cores), ("memory_gb", row.memory_gb))
    plain = each.on_demand
    yield "usd_per_hour", plain and plain.usd_per_hour
    yield "usd_per_device_hour", plain and plain.usd_per_device_hour
    yield "usd_per_hour_spot", each.spot and each.spot.usd_per_hour
    yield "usd_per_device_hour_spot", each.spot and each.spot.usd_per_device_hour
    yield "usd_per_hour_1y", each.one_year and each.one_year.usd_per_hour
    yield "usd_per_hour_3y", each.three_years and each.three_years.usd_per_hour
    yield "usd_per_month", plain and plain.usd_per_hour * HOURS_OF_A_MONTH
    yield "usd_per_month_spot", each.spot and each.spot.usd_per_hour * HOURS_OF_A_MONTH
    yield "device_memory_bytes", each.device_memory_bytes
    yield "region", first and first.region
    yield "spot_region", each.spot and each.spot.region
    yield "price_date", first and first.price_date
    yield "price_age_days", first and first.age.days
    yield "price_is_old", None if first is None else first.age.is_old
    yield "source", first and first.source
    yield "confidence", first and first.confidence
    yield "prices", [quote_data(quote) for quote in each.every]


def quote_data(quote: Quote) -> Mapping[str, object]:
    """Return one price as plain data."""
    return {
        "payment": quote.payment.replace(" ", "_"),
        "region": quote.region,
        "usd_per_hour": quote.usd_per_hour,
        "usd_per_device_hour": quote.usd_per_device_hour,
        "price_date": quote.price_date,
        "price_age_days": quote.age.days,
        "price_is_old": quote.age.is_old,
        "source": quote.source,
        "confidence": quote.confidence,
    }


def prices_as_csv(listed: Sequence[ListedPrices]) -> str:
    """Return every price as one line of a table, with what it is of."""
    lines = [
        {"instance": each.row.id, "provider": each.row.provider, "name": each.row.name}
        | {"accelerator": each.row.accelerator, "accelerator_count": each.row.accelerator_count}
        | dict(quote_data(quote))
        for each in listed
        for quote in each.every
    ]
    heads = ("instance", "provider", "name", "accelerator", "accelerator_count", *_QUOTED)
    return csv_table(heads, lines)


_QUOTED = (
    "payment", "region", "usd_per_hour", "usd_per_device_hour", "price_date", "price_age_days", "price_is_old",
    "source", "confidence",
)  # fmt: skip
