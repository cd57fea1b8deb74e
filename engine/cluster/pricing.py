"""What devices cost an hour: instances are rented whole, by the fewest that hold the devices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from capacity_tui.engine.catalog import Catalog, Instance, SpotMarket
from capacity_tui.engine.cluster.cluster import Cluster, Interruptions, Price
from capacity_tui.engine.plan.plan import PricingSection

HOUR = 3600.0
_OTHER = "other"


def instances_for(row: Instance, devices: int, per_node: int | None = None) -> int:
    """Return how many instances hold so many devices, of each of which ``per_node`` at most are used."""
    return math.ceil(devices / min(row.sold_devices, per_node or row.sold_devices))


def instance_price(row: Instance, count: int, nodes: int, catalog: Catalog) -> Price:
    """Return the price of ``count`` whole instances of one kind, which fill so many nodes."""
    spot = row.spot_usd_per_hour
    return Price(
        usd_per_hour=None if row.on_demand_usd_per_hour is None else row.on_demand_usd_per_hour * count,
        source=_source(row, row.region),
        spot_usd_per_hour=None if spot is None else spot * count,
        spot_source="" if spot is None else _source(row, row.spot_region or row.region),
        interruptions=interruptions(row.provider, nodes, catalog),
    )


def device_price(accelerator: str, devices: int, nodes: int, catalog: Catalog) -> Price:
    """Return the lowest prices known for devices by their own name: on demand, and on spot capacity.

    Devices of several nodes need a network between them: instances that state one come before those that do not,
    and prices that were seen before those that were only recalled.

    Args:
        accelerator: id in the catalogue.
        devices: how many.
        nodes: nodes they fill.
        catalog: rows of instances.
    """
    rows = catalog.instances_with(accelerator)
    usd, row = min(_offers(rows, devices, nodes, is_spot=False), key=_usd, default=(0.0, None))
    spot_usd, spot_row = min(_offers(rows, devices, nodes, is_spot=True), key=_usd, default=(0.0, None))
    price = Price() if row is None else Price(usd, "cheapest on demand: " + _source(row, row.region))
    if spot_row is None:
        return price
    spot_source = "cheapest spot: " + _source(spot_row, spot_row.spot_region or spot_row.region)
    risk = interruptions(spot_row.provider, nodes, catalog)
    return Price(price.usd_per_hour, price.source, spot_usd, spot_source, risk)


def price_ends(cluster: Cluster, pricing: PricingSection, catalog: Catalog) -> tuple[float, float] | None:
    """Return the lowest and the highest price known for the devices of a cluster, the way the plan pays for them.

    None where the plan says the price, or names the instance that has it.
    """
    if pricing.usd_per_hour is not None or cluster.rented or cluster.mix or cluster.price.rate is None:
        return None
    rows = catalog.instances_with(cluster.device.id)
    nodes = math.ceil(float(cluster.devices) / float(cluster.direct_devices))
    offers = [usd for usd, _ in _offers(rows, int(cluster.devices), nodes, cluster.price.is_spot)]
    return (min(offers), max(offers)) if offers else None


def _offers(rows: Sequence[Instance], devices: int, nodes: int, is_spot: bool) -> list[tuple[float, Instance]]:
    """Return what an hour of devices costs on each of some instances that are priced."""
    priced = [
        (usd * instances_for(row, devices), row)
        for row in rows
        if (usd := row.spot_usd_per_hour if is_spot else row.on_demand_usd_per_hour) is not None
    ]
    if nodes > 1:
        priced = [pair for pair in priced if pair[1].network_link is not None] or priced
    return [pair for pair in priced if pair[1].verified] or priced


def _usd(offer: tuple[float, Instance]) -> float:
    return offer[0]


def total_price(prices: Sequence[Price]) -> Price:
    """Return the price of several groups of devices together; unknown where that of one is."""
    hours = [price.usd_per_hour for price in prices if price.usd_per_hour is not None]
    spots = [price.spot_usd_per_hour for price in prices if price.spot_usd_per_hour is not None]
    risks = [price.interruptions for price in prices if price.interruptions is not None]
    is_known, has_spot = len(hours) == len(prices), len(spots) == len(prices) == len(risks)
    return Price(
        usd_per_hour=sum(hours) if is_known else None,
        source="; ".join(price.source for price in prices) if is_known else "",
        spot_usd_per_hour=sum(spots) if has_spot else None,
        spot_source="; ".join(price.spot_source for price in prices) if has_spot else "",
        # Work stops as soon as one of them is taken back.
        interruptions=min(risks, key=lambda risk: risk.seconds_between) if has_spot else None,
    )


def chosen_price(known: Price, pricing: PricingSection, nodes: int, catalog: Catalog) -> Price:
    """Return the price a plan asks for: its own, or one of the catalogue, on demand or on spot capacity."""
    given = pricing.usd_per_hour
    if given is None:
        is_spot = pricing.spot and known.spot_usd_per_hour is not None
        return Price(known.usd_per_hour, known.source, known.spot_usd_per_hour, known.spot_source,
                     known.interruptions, is_spot)  # fmt: skip
    if not pricing.spot:
        return Price(given, "given in the plan")
    risk = known.interruptions or interruptions("", nodes, catalog)
    return Price(None, "", given, "given in the plan", risk, is_spot=True)


def price_assumptions(price: Price, pricing: PricingSection, by_device: bool) -> Iterable[str]:
    """Yield what was assumed about a price: whose it is, and how often spot capacity is taken back."""
    if pricing.usd_per_hour is None and by_device and price.rate is not None:
        yield f"price: {price.rate_source}"
    if pricing.spot and not price.is_spot and price.usd_per_hour is not None:
        yield "no spot price is known: on demand"
    if price.is_spot and price.interruptions is not None:
        yield price.interruptions.words


def interruptions(provider: str, nodes: int, catalog: Catalog) -> Interruptions:
    """Return how often a job on ``nodes`` nodes of a provider is interrupted: each of them stops all of it."""
    rows = catalog.spot_markets
    row = next((row for row in rows.values() if row.provider and row.provider == provider), rows[_OTHER])
    return Interruptions(
        seconds_between=row.hours_between * HOUR / nodes,
        spread=row.spread,
        restart_seconds=row.restart_seconds,
        checkpoint_seconds=row.checkpoint_seconds,
        checkpoint_bandwidth=row.checkpoint_gbs * 1e9,
        words=_words(row),
    )


def _words(row: SpotMarket) -> str:
    return (
        f"{row.name} takes an instance back every {row.hours_between:g} h, a device writes checkpoints at "
        f"{row.checkpoint_gbs:g} GB/s and a restart takes {row.restart_seconds / 60:g} min"
    )


def _source(row: Instance, region: str | None) -> str:
    return ", ".join(part for part in (row.provider, row.name, region, row.price_date) if part)
