"""The prices of instances: those of the catalogue by day and region, and today's, fetched when asked for."""

from __future__ import annotations

import logging
import math
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from operator import attrgetter
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Literal, NamedTuple

from capacity_tui.engine.catalog import FILE, Catalog, Instance, fetched_prices, key_of
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH, RegionPrice
from capacity_tui.engine.cluster import ON_DEMAND, SPOT, Payment, Quote, chosen_quote, quotes, region_id
from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.extras import importing
from capacity_tui.engine.files import make_folder, write_atomically
from capacity_tui.engine.printable import csv_table
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class ListedPrices:
    """An instance with what it costs."""

    row: Instance
    on_demand: Quote | None  # its price in the region that is asked for, or in its own; None where none is known
    spot: Quote | None  # the same on capacity that may be taken back
    one_year: Quote | None  # the same for a commitment of a year
    three_years: Quote | None  # the same for three years
    every: tuple[Quote, ...]  # all prices that are known, of the part of the world that is asked for
    # memory of all accelerators together; None without any, or where it is not known
    device_memory_bytes: float | None = None

    @property
    def first(self) -> Quote | None:
        """The price that tells region, day and source of the instance: on demand, else on spot capacity."""
        return self.on_demand or self.spot or self.one_year or self.three_years


def price_list(rows: Sequence[Instance], region: str | None, catalog: Catalog) -> tuple[ListedPrices, ...]:
    """Return instances with their prices, those alone that have one in a region or an area where that is asked for."""
    wanted = None if region is None else region_id(region, catalog, "--region")
    listed = (_listed(row, wanted, catalog) for row in rows)
    return tuple(entry for entry in listed if wanted is None or entry.every)


def _listed(row: Instance, wanted: str | None, catalog: Catalog) -> ListedPrices:
    def there(payment: Payment) -> Quote | None:
        result = chosen_quote(row, payment, wanted, catalog)
        return None if result is None or result.remark else result

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
    match = catalog.regions.find_id(quote.region or "")
    if match is None or wanted in (match, quote.region):
        return wanted in (match, quote.region)
    area = catalog.regions[wanted]
    return area.provider is None and bool(set(area.areas) & set(catalog.regions[match].areas))


def price_rows(listed: Sequence[ListedPrices]) -> list[dict[str, object]]:
    return [dict(_data(entry)) for entry in listed]


def _data(listed_prices: ListedPrices) -> Iterator[tuple[str, object]]:
    row, first = listed_prices.row, listed_prices.first
    yield from (("instance", row.id), ("name", row.name), ("provider", row.provider))
    yield from (("accelerator", row.accelerator), ("accelerator_count", row.accelerator_count))
    yield from (("processor", row.processor), ("cores", row.cores), ("memory_gb", row.memory_gb))
    plain = listed_prices.on_demand
    yield "usd_per_hour", plain and plain.usd_per_hour
    yield "usd_per_device_hour", plain and plain.usd_per_device_hour
    yield "usd_per_hour_spot", listed_prices.spot and listed_prices.spot.usd_per_hour
    yield "usd_per_device_hour_spot", listed_prices.spot and listed_prices.spot.usd_per_device_hour
    yield "usd_per_hour_1y", listed_prices.one_year and listed_prices.one_year.usd_per_hour
    yield "usd_per_hour_3y", listed_prices.three_years and listed_prices.three_years.usd_per_hour
    yield "usd_per_month", plain and plain.usd_per_hour * HOURS_OF_A_MONTH
    yield "usd_per_month_spot", listed_prices.spot and listed_prices.spot.usd_per_hour * HOURS_OF_A_MONTH
    yield "device_memory_bytes", listed_prices.device_memory_bytes
    yield "region", first and first.region
    yield "spot_region", listed_prices.spot and listed_prices.spot.region
    yield "price_date", first and first.price_date
    yield "price_age_days", first and first.age.days
    yield "price_is_old", None if first is None else first.age.is_old
    yield "source", first and first.source
    yield "confidence", first and first.confidence
    yield "prices", [quote_data(quote) for quote in listed_prices.every]


def quote_data(quote: Quote) -> Mapping[str, object]:
    return {name: read(quote) for name, read in _OF_QUOTES.items()}


def prices_as_csv(listed: Sequence[ListedPrices]) -> str:
    """Return every price as one line of a table, with what it is of."""
    lines = [
        {"instance": entry.row.id, "provider": entry.row.provider, "name": entry.row.name}
        | {"accelerator": entry.row.accelerator, "accelerator_count": entry.row.accelerator_count}
        | dict(quote_data(quote))
        for entry in listed
        for quote in entry.every
    ]
    heads = ("instance", "provider", "name", "accelerator", "accelerator_count", *_OF_QUOTES)
    return csv_table(heads, lines)


_OF_QUOTES: Mapping[str, Callable[[Quote], object]] = {
    "payment": lambda quote: quote.payment.replace(" ", "_"),
    **{name: attrgetter(name) for name in ("region", "usd_per_hour", "usd_per_device_hour", "price_date")},
    "price_age_days": attrgetter("age.days"),
    "price_is_old": attrgetter("age.is_old"),
    **{name: attrgetter(name) for name in ("source", "confidence")},
}

EXTRA = "prices"
ANSWER_SECONDS = 30.0  # How long a server may be silent
RECORDED = "GPUHUNT_CATALOG_DIR"
"""Environment variable of gpuhunt that names a folder with its catalogue: then nothing is fetched."""

_PROVIDERS = {"lambdalabs": "Lambda"}
"""What gpuhunt calls providers otherwise than the rows of instances do, but for case."""

_PREFIX = "Standard_"
_DEAREST = 10_000.0  # US dollars an hour above which a price of one instance is none


@dataclass(frozen=True, slots=True)
class Offered:
    """One price as a feed tells it."""

    provider: str  # who rents it out
    name: str  # what the provider calls the instance
    location: str  # region, or zone of one
    usd_per_hour: float
    is_spot: bool  # whether the capacity may be taken back
    devices: int  # whole accelerators of it


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh brought."""

    path: Path
    prices: int  # prices that were taken over
    instances: int  # instances that these are of
    missing: int  # instances of the catalogue that the feed does not have
    dropped: int  # prices that cannot be, and were left out
    source: str
    catalog: Catalog
    failures: Mapping[str, str]  # providers that gave nothing, each with the reason


class Fetched(NamedTuple):
    """What a feed brought."""

    source: str  # its name
    offered: Iterable[Offered]
    failures: Mapping[str, str] = MappingProxyType({})  # providers that gave nothing, each with the reason


Feed = Callable[[], Fetched]


def refresh_prices(catalog: Catalog, feed: Feed | None = None, on: date | None = None) -> Refreshed:
    """Fetch today's prices of the catalogue's instances, and keep them in the folder of the user's own rows.

    What is kept is replaced whole, or stays as it was.

    Args:
        feed: returns prices; gpuhunt by default.
        on: the day of the prices; the present one by default.

    Raises:
        MissingPartError: gpuhunt is not installed.
        StorageError: no prices could be fetched, or they cannot be kept.
    """
    source, offered, failures = (feed or gpuhunt_feed)()
    result, dropped = _by_instance(offered, catalog)
    if not result:
        lacking = "; ".join([f"{source} has none of the known instances", *failure_words(failures)])
        raise StorageError("no price was fetched", lacking, "try again later; the prices that were known stay")
    kept = fetched_prices(source, result, on)
    path = catalog.user_directory / FILE
    make_folder(path.parent)
    write_atomically(path, kept.model_dump_json(indent=1, exclude_defaults=True) + "\n", overwrite=True)
    blocks = [block for regions in result.values() for block in regions.values()]
    prices = sum((block.on_demand_usd_per_hour is not None) + (block.spot_usd_per_hour is not None) for block in blocks)
    fresh = Catalog(catalog.user_directory, catalog.fleet_files)
    return Refreshed(path, prices, len(result), len(catalog.instances) - len(result), dropped, source, fresh, failures)


def failure_words(failures: Mapping[str, str]) -> Iterator[str]:
    """Yield in words which providers gave nothing, those of one reason together."""
    for reason in dict.fromkeys(failures.values()):
        names = [name for name, of_name in failures.items() if of_name == reason]
        yield f"no prices of {', '.join(names)}: {reason}"


def gpuhunt_feed() -> Fetched:
    """Return the prices of gpuhunt's catalogue, which it downloads; raises StorageError if nothing could be fetched."""
    with importing(EXTRA, "fetching prices needs gpuhunt"):
        import gpuhunt  # noqa: PLC0415 - an optional extra
        from gpuhunt.version import __version__  # noqa: PLC0415
    with _quiet() as failures:
        try:
            feed = gpuhunt.Catalog(balance_resources=False, auto_reload=False)
            if RECORDED not in os.environ:
                feed.load()
            items = feed.query()
        except Exception as error:  # whatever the network and its answers bring about
            hint = "check the network and try again; the prices that were known stay"
            raise StorageError("no price could be fetched", _cause(error), hint) from error
    loaded = getattr(feed, "catalog", {})
    failures |= {provider: "its list is empty" for provider, listed in loaded.items() if not listed.items}
    return Fetched(f"gpuhunt {__version__}", [_offered(item) for item in items], failures)


class _Failures(logging.Handler):
    """Takes from a log which providers could not be fetched, and why: gpuhunt tells it nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.reasons: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason of one failure."""
        if isinstance(record.args, tuple) and record.args and record.exc_info and record.exc_info[1] is not None:
            self.reasons[str(record.args[0])] = _cause(record.exc_info[1])


@contextmanager
def _quiet() -> Iterator[dict[str, str]]:
    """Let gpuhunt write no log but what is read here, and wait for silent servers so long at most."""
    logger, silence, failures = logging.getLogger("gpuhunt"), socket.getdefaulttimeout(), _Failures()
    propagates, handlers = logger.propagate, logger.handlers
    logger.propagate, logger.handlers = False, [failures]
    socket.setdefaulttimeout(ANSWER_SECONDS)
    try:
        yield failures.reasons
    finally:
        socket.setdefaulttimeout(silence)
        logger.propagate, logger.handlers = propagates, handlers


def _cause(error: BaseException) -> str:
    """Return what began a chain of errors, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[:120] or type(error).__name__


def _offered(item: object) -> Offered:
    return Offered(
        provider=str(getattr(item, "provider", "")),
        name=str(getattr(item, "instance_name", "")),
        location=str(getattr(item, "location", "")),
        usd_per_hour=_number(getattr(item, "price", None)),
        is_spot=bool(getattr(item, "spot", False)),
        devices=int(_number(getattr(item, "gpu_count", None)) or 0),
    )


def _number(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and isinstance(value, int | float) else 0.0


def _by_instance(offered: Iterable[Offered], catalog: Catalog) -> tuple[dict[str, dict[str, RegionPrice]], int]:
    """Return prices by instance and region, and how many cannot be; of several zones the one in the middle counts."""
    known = {(key_of(row.provider), key_of(row.name)): row for row in catalog.instances.values()}
    seen: dict[tuple[str, str], dict[Literal["plain", "spot"], list[float]]] = {}
    dropped = 0
    for price in offered:
        provider = key_of(_PROVIDERS.get(price.provider.lower(), price.provider))
        row = known.get((provider, key_of(price.name.removeprefix(_PREFIX))))
        if row is None or not _has_as_many(row, price.devices):
            continue
        if not 0 < price.usd_per_hour <= _DEAREST:
            dropped += 1
            continue
        kinds = seen.setdefault((row.id, _region(price.location, catalog)), {})
        kinds.setdefault("spot" if price.is_spot else "plain", []).append(price.usd_per_hour)
    data: dict[str, dict[str, RegionPrice]] = {}
    for (row_id, region), kinds in seen.items():
        plain = median(kinds["plain"]) if "plain" in kinds else None
        spot = median(kinds["spot"]) if "spot" in kinds else None
        if plain is not None and spot is not None and spot > plain:
            # Nobody pays more for capacity that may be taken back.
            spot, dropped = None, dropped + 1
        data.setdefault(row_id, {})[region] = RegionPrice(on_demand_usd_per_hour=plain, spot_usd_per_hour=spot)
    return data, dropped


def _has_as_many(row: Instance, devices: int) -> bool:
    """Whether an offer is of the row's accelerators: hosts are sold with other ones, or none, under the same name."""
    return devices <= 1 if 0 < row.accelerator_count < 1 else devices == row.accelerator_count


def _region(location: str, catalog: Catalog) -> str:
    """Return the region of a location, which may be one of its zones: ``us-central1-a``."""
    whole, _, zone = location.rpartition("-")
    is_zone = len(zone) == 1 and zone.isalpha() and location not in catalog.regions
    return whole if is_zone and whole in catalog.regions else location
