"""What data costs: to leave a region, step by step of the month's gigabytes, and to be held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted, price_age
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH, Disk, Egress, PriceStep
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import GIGA, HOUR_SECONDS

Route = Literal["internet", "area", "elsewhere"]


step_usd = formula()  # Price of the gigabytes of a month that fall into one step of a price list
held_usd = formula()


@dataclass(frozen=True, slots=True)
class DataPrice:
    """What a price of data rests on."""

    usd: Number  # the price
    words: str  # whose price it is, of which day, marked where it is old or was not verified
    verified: bool  # whether the source was seen, not only recalled


@dataclass(frozen=True, slots=True)
class DataLocation:
    """Where data is: at a provider, in one of its regions where that is known."""

    provider: str
    region: str | None = None


def transfer_price(gigabytes: Number, source: DataLocation, target: DataLocation, catalog: Catalog) -> DataPrice | None:
    """Return what it costs to move data from one place to another; None where no price is known.

    Inside a region nothing is paid. Another provider is reached over the internet.

    Args:
        gigabytes: what moves within a month, GB.
        source: where the data is, which is where it is paid for.
    """
    route = _route(source, target, catalog)
    if route is None:
        return DataPrice(0.0, f"{source.provider}: nothing inside a region", True)
    areas = _areas(source.region, catalog)
    rows = [row for row in catalog.egress.values() if row.provider == source.provider and row.route == route]
    fitting = [row for row in rows if areas & set(row.areas)] or rows
    if not fitting:
        return None
    row = fitting[0]
    return DataPrice(_leaving_usd(gigabytes, row.steps), _words(row), row.verified)


def _leaving_usd(gigabytes: Number, steps: Sequence[PriceStep]) -> Number:
    first, usd = 0.0, np.zeros_like(np.asarray(gigabytes, float))
    for step in steps:
        last = np.inf if step.to_gb is None else step.to_gb
        usd = usd + step_usd(gigabytes, first, last, step.usd_per_gb)
        first = last
    return usd


def holding_price(gigabytes: Number, months: Number, disk: Disk) -> DataPrice:
    """Return what storage costs."""
    return DataPrice(held_usd(gigabytes, months, disk.usd_per_gb_month), _words(disk), disk.verified)


def block_storage_usd(provider: str, held_bytes: float, seconds: float, catalog: Catalog) -> float | None:
    """Return what disk space costs while a job runs, at a provider's cheapest blocks; None where no price is known."""
    own = (disk for disk in catalog.disks.values() if disk.provider == provider and disk.kind == "block")
    disk = min(own, key=lambda disk: disk.usd_per_gb_month, default=None)
    if disk is None:
        return None
    return mean(holding_price(held_bytes / GIGA, seconds / HOUR_SECONDS / HOURS_OF_A_MONTH, disk).usd)


def _route(source: DataLocation, target: DataLocation, catalog: Catalog) -> Route | None:
    if source.provider != target.provider:
        return "internet"
    if source.region == target.region:
        return None
    return "area" if _areas(source.region, catalog) & _areas(target.region, catalog) else "elsewhere"


def _areas(region: str | None, catalog: Catalog) -> set[str]:
    row = catalog.regions.known(region)
    return set() if row is None else set(row.areas)


def _words(row: Egress | Disk) -> str:
    day = row.price_date or ""
    age = price_age(row.price_date).words
    doubts = ("" if row.verified else "unverified", "" if age in day else age)
    return ", ".join(filter(None, (row.name, day, *doubts)))


SHORT_VOCABULARY = counted("short-vocabulary")


@equation
def token_bytes(vocabulary: Number) -> Number:
    """Bytes of the number of a token on disk."""
    return np.where(np.less_equal(vocabulary, SHORT_VOCABULARY), 2.0, 2.0 * 2.0)


mean_bandwidth = formula()  # Bytes a second that a node reads, the mean over all passes through the data
read_seconds = formula()
decode_seconds = formula()


@equation
def arrival_seconds(reading: Number, decoding: Number, workers: Number) -> Number:
    """Seconds in which the data of a step arrive at the devices."""
    return np.where(np.greater(workers, 0.0), np.maximum(reading, decoding), reading + decoding)


input_seconds = formula()
