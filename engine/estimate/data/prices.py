"""What data costs: to leave a region, step by step of the month's gigabytes, and to be held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted, price_age
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH, Disk, Egress, PriceStep
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import GIGA, HOUR_SECONDS

Route = Literal["internet", "area", "elsewhere"]


# Price of the gigabytes of a month that fall into one step of a price list.
step_usd = formula(
    "usd = max(min(gigabytes, last) - first, 0) · usd_per_gb",
    unit="USD",
    source="price steps of profiles/egress.yaml",
    gigabytes="all that leave in the month, GB",
    first="gigabytes that the steps before take, GB",
    last="gigabytes up to which this step goes, GB",
    usd_per_gb=("price of a gigabyte of it, USD", "USD"),
)

held_usd = formula(
    "usd = gigabytes · months · usd_per_gb_month",
    unit="USD",
    source="price of profiles/disks.yaml",
    gigabytes="capacity that is rented, GB",
    months="for how long",
    usd_per_gb_month=("price of a gigabyte for a month, USD", "USD"),
)


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


@equation(
    "size = 2 if vocabulary <= 65536 else 4",
    unit="B",
    source="indexed data sets keep a token in the shortest whole number that its vocabulary needs",
    vocabulary="entries of the vocabulary",
)
def token_bytes(vocabulary: Number) -> Number:
    """Bytes of the number of a token on disk."""
    return np.where(np.less_equal(vocabulary, SHORT_VOCABULARY), 2.0, 2.0 * 2.0)


# Bytes a second that a node reads, the mean over all passes through the data.
mean_bandwidth = formula(
    "mean = epochs / (1 / first + (epochs - 1) / later)",
    unit="B/s",
    source="the first pass reads from the source, the others from the cache",
    epochs="passes, one at least",
    first=("bytes a second of the source, B/s", "B"),
    later=("bytes a second of the cache, B/s", "B"),
)

read_seconds = formula(
    "seconds = units · size / (nodes · bandwidth)",
    unit="s",
    source="every node reads its share of the step",
    units="tokens or samples of a step",
    size=("stored bytes of one, B", "", "token_bytes"),
    nodes="nodes that read side by side",
    bandwidth=("bytes a second that one reads, B/s", "B", "mean_bandwidth"),
)

decode_seconds = formula(
    "seconds = units / (devices · max(workers, 1) · rate)",
    unit="s",
    source="worker processes decode side by side, one to a core; without any the training process does",
    units="tokens or samples of a step",
    devices="devices whose workers share the step",
    workers="worker processes for each device",
    rate="tokens or samples a second that one core decodes",
)


@equation(
    "seconds = max(reading, decoding) if workers > 0 else reading + decoding",
    unit="s",
    source="workers read ahead while others decode; without any one follows the other",
    reading=("seconds in which they are read", "s", "read_seconds"),
    decoding=("seconds in which they are decoded", "s", "decode_seconds"),
    workers="worker processes for each device",
)
def arrival_seconds(reading: Number, decoding: Number, workers: Number) -> Number:
    """Seconds in which the data of a step arrive at the devices."""
    return np.where(np.greater(workers, 0.0), np.maximum(reading, decoding), reading + decoding)


input_seconds = formula(
    "waiting = max(arriving - hidden · working, 0)",
    unit="s",
    source="batches that workers prefetch arrive while devices work; what takes longer, devices wait for",
    part=Figure.INPUT,
    arriving=("seconds in which the data of the step arrive", "s", "arrival_seconds"),
    hidden="1 where they arrive beside the work of the step before, else 0",
    working=("seconds of the step without waiting for data", "s"),
)
