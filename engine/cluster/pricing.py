"""What devices cost an hour, rented by whole instances, and what the electricity that they draw emits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from pydantic import BaseModel, ConfigDict, Field, RootModel

from capacity_tui.engine.catalog import Catalog, Instance, parse_shipped
from capacity_tui.engine.catalog.rows import Confidence
from capacity_tui.engine.cluster.cluster import Cluster, Interruptions, Price
from capacity_tui.engine.cluster.quotes import ON_DEMAND, SPOT, Payment, Quote, chosen_quote, has_commitment, quotes
from capacity_tui.engine.plan import PricingSection

HOUR = 3600.0
_OTHER = "other"


def instances_for(row: Instance, devices: int, per_node: int | None = None) -> int:
    """Return how many instances hold some devices, where ``per_node`` of each are used at most."""
    return math.ceil(devices / min(row.sold_devices, per_node or row.sold_devices))


def instance_price(row: Instance, count: int, nodes: int, pricing: PricingSection, catalog: Catalog) -> Price:
    """Return the price of ``count`` whole instances of one kind, which fill some nodes."""
    plain = chosen_quote(row, _payment(pricing), pricing.region, catalog)
    plain = plain or chosen_quote(row, ON_DEMAND, pricing.region, catalog)
    spot = chosen_quote(row, SPOT, pricing.region, catalog)
    price = Price(
        usd_per_hour=plain.usd_per_hour * count if plain else None,
        source=plain.words if plain else "",
        spot_usd_per_hour=spot.usd_per_hour * count if spot else None,
        spot_source=spot.words if spot else "",
        interruptions=interruptions(row.provider, nodes, catalog),
    )
    return _quoted(price, [row], plain, spot, pricing, catalog)


def device_price(accelerator: str, devices: int, nodes: int, pricing: PricingSection, catalog: Catalog) -> Price:
    """Return the lowest prices known for devices by their own name: on demand or committed to, and on spot capacity.

    Offers in the region that is asked for come before others. Devices of several nodes need a network between them:
    instances that state one come before those that do not, and prices that were seen before those only recalled.
    """
    rows = catalog.instances_with(accelerator)
    offers = _offers(rows, devices, nodes, _payment(pricing), pricing.region, catalog)
    offers = offers or _offers(rows, devices, nodes, ON_DEMAND, pricing.region, catalog)
    usd, plain = min(offers, key=_usd, default=(None, None))
    spot_offers = _offers(rows, devices, nodes, SPOT, pricing.region, catalog)
    spot_usd, spot = min(spot_offers, key=_usd, default=(None, None))
    price = Price(
        usd_per_hour=usd,
        source=f"cheapest {plain.terms}: {plain.words}" if plain else "",
        spot_usd_per_hour=spot_usd,
        spot_source=f"cheapest spot: {spot.words}" if spot else "",
        interruptions=interruptions(spot.provider, nodes, catalog) if spot else None,
    )
    return _quoted(price, rows, plain, spot, pricing, catalog, nodes)


def _quoted(
    price: Price,
    rows: Sequence[Instance],
    plain: Quote | None,
    spot: Quote | None,
    pricing: PricingSection,
    catalog: Catalog,
    nodes: int = 1,
) -> Price:
    """Return a price with what it is of, and with what else the plan could ask for.

    Where it is that of one node by itself, ``nodes`` says how many need a network between them.
    """
    on_spot = pricing.spot and spot is not None
    used = spot if on_spot else plain
    payment = used.payment if used else None
    return replace(
        price,
        quotes=(plain,) if plain else (),
        spot_quotes=(spot,) if spot else (),
        has_regions=len({quote.region for row in rows for quote in quotes(row, catalog, payment)}) > 1,
        has_terms=not on_spot and any(has_commitment(row, catalog) for row in rows),
        remarks=(*_remarks(used, pricing), *(_no_network(used, nodes, catalog) if used else ())),
    )


def _payment(pricing: PricingSection) -> Payment:
    return ON_DEMAND if pricing.commitment == "none" or pricing.spot else pricing.commitment


def _remarks(used: Quote | None, pricing: PricingSection) -> Iterable[str]:
    if used is not None and used.remark:
        yield used.remark
    if used is not None and used.payment == ON_DEMAND != _payment(pricing):
        yield f"no price of {used.provider} {used.name} for a commitment of {pricing.commitment} is known: on demand"


def _no_network(used: Quote, nodes: int, catalog: Catalog) -> Iterable[str]:
    if nodes > 1 and catalog.instances[used.instance].network_link is None:
        yield f"{used.provider} {used.name} lists no network between nodes: {nodes} may not be available"


def price_ends(cluster: Cluster, pricing: PricingSection, catalog: Catalog) -> tuple[float, float] | None:
    """Return the lowest and the highest price known for the devices of a cluster, the way the plan pays for them.

    Instances of which devices would idle count only where there are no others: nobody rents eight devices for one.
    None where the plan says the price, or names the instance that has it.
    """
    if pricing.usd_per_hour is not None or cluster.rented or cluster.mix or not cluster.price.rate_quotes:
        return None
    rows = catalog.instances_with(cluster.device.id)
    rows = [row for row in rows if float(cluster.devices) % row.sold_devices == 0] or rows
    nodes = math.ceil(float(cluster.devices) / float(cluster.direct_devices))
    payment = cluster.price.rate_quotes[0].payment
    offers = [usd for usd, _ in _offers(rows, int(cluster.devices), nodes, payment, pricing.region, catalog)]
    return (min(offers), max(offers)) if offers else None


def _offers(
    rows: Sequence[Instance], devices: int, nodes: int, payment: Payment, region: str | None, catalog: Catalog
) -> list[tuple[float, Quote]]:
    """Return what an hour of devices costs on each of some instances that are priced."""
    quoted = [(row, chosen_quote(row, payment, region, catalog)) for row in rows]
    priced = [(quote.usd_per_hour * instances_for(row, devices), quote, row) for row, quote in quoted if quote]
    priced = [offer for offer in priced if not offer[1].remark] or priced
    if nodes > 1:
        priced = [offer for offer in priced if offer[2].network_link is not None] or priced
    priced = [offer for offer in priced if offer[1].verified] or priced
    return [(usd, quote) for usd, quote, _ in priced]


def _usd(offer: tuple[float, Quote]) -> float:
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
        quotes=tuple(quote for price in prices for quote in price.quotes) if is_known else (),
        spot_quotes=tuple(quote for price in prices for quote in price.spot_quotes) if has_spot else (),
        has_regions=any(price.has_regions for price in prices),
        has_terms=any(price.has_terms for price in prices),
        remarks=tuple(remark for price in prices for remark in price.remarks),
    )


def chosen_price(known: Price, pricing: PricingSection, nodes: int, catalog: Catalog) -> Price:
    """Return the price a plan asks for: its own, or one of the catalogue, on demand or on spot capacity."""
    stated = pricing.usd_per_hour
    if stated is None:
        return replace(known, is_spot=pricing.spot and known.spot_usd_per_hour is not None)
    if not pricing.spot:
        return Price(stated, "given in the plan")
    risk = known.interruptions or interruptions("", nodes, catalog)
    return Price(None, "", stated, "given in the plan", risk, is_spot=True)


def price_assumptions(price: Price, pricing: PricingSection, by_device: bool) -> Iterable[str]:
    """Yield what was assumed about a price: whose it is, and how often spot capacity is taken back."""
    if pricing.usd_per_hour is None and by_device and price.rate is not None:
        yield f"price: {price.rate_source}"
    if pricing.spot and not price.is_spot and price.usd_per_hour is not None:
        yield "no spot price is known: on demand"
    yield from price.remarks
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
        words=f"{row.name} takes an instance back every {row.hours_between:g} h, a device writes checkpoints at "
        f"{row.checkpoint_gbs:g} GB/s and a restart takes {row.restart_seconds / 60:g} min",
    )


_WORLD = "world"


class Grid(BaseModel):
    """A grid, or the mean of many."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = ""  # its name in ``profiles/grids.yaml``
    grams_per_kwh: float = Field(ge=0, description="grams of CO2 equivalent of a kilowatt-hour")
    year: int = Field(description="of which it is the mean")
    regions: tuple[str, ...] = Field((), description="regions that draw from it, by their ids")
    source: str = Field(description="who publishes it")
    confidence: Confidence

    @property
    def words(self) -> str:
        """Its name, year and source."""
        return f"{self.name}, {self.year}: {self.source}"


class Grids(RootModel[Mapping[str, Grid]]):
    """The content of ``profiles/grids.yaml``."""


def grid_of(region: str | None) -> Grid:
    """Return the grid of a region; the mean of the world where none is known."""
    return _by_region().get(region or "", grids()[_WORLD])


@cache
def grids() -> Mapping[str, Grid]:
    rows = Grids.model_validate(parse_shipped("grids.yaml")).root
    return {name: row.model_copy(update={"name": name}) for name, row in rows.items()}


@cache
def _by_region() -> Mapping[str, Grid]:
    return {region: grid for grid in grids().values() for region in grid.regions}
