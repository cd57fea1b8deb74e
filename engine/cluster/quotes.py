"""What an hour of an instance costs: where, since when, how it is paid for. One function chooses among the prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, get_args
from weakref import WeakKeyDictionary

from capacity_tui.engine.catalog import Catalog, Instance, PriceAge, price_age
from capacity_tui.engine.catalog.rows import FROM_USER, Commitment, Confidence, Purchase, RegionPrice, Term
from capacity_tui.engine.errors import CatalogError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_money

Payment = Literal["on demand", "spot", "1y", "3y"]
"""On demand, on capacity that may be taken back, or committed to for years."""
ON_DEMAND: Payment = "on demand"
SPOT: Payment = "spot"
TERMS: Sequence[Term] = get_args(Term)
_HERE, _NEAR, _ELSEWHERE = range(3)
_KEPT: WeakKeyDictionary[Catalog, dict[str, tuple[Instance, tuple[Quote, ...]]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Quote:
    """What an hour of one whole instance costs."""

    instance: str  # its id in the catalogue
    provider: str
    name: str  # what the provider calls it
    devices: float  # accelerators of the instance; may be a part of one
    payment: Payment
    usd_per_hour: float  # price of the whole instance
    region: str | None
    price_date: str | None  # when it was seen, as its source says
    source: str
    confidence: Confidence  # A for two sources, B for one, C for what was only recalled
    remark: str = ""  # why it is not a price of the region that was asked for; empty where it is
    purchase: Purchase | None = None  # what the instance was bought for, where it is owned

    @property
    def verified(self) -> bool:
        """Whether the source was seen, not only recalled."""
        return self.confidence != "C"

    @property
    def usd_per_device_hour(self) -> float | None:
        """Price of one accelerator, a part of one counting as such; None for an instance without any."""
        return self.usd_per_hour / self.devices if self.devices else None

    @property
    def age(self) -> PriceAge:
        """How long ago the price was seen."""
        return price_age(self.price_date)

    @property
    def terms(self) -> str:
        """How it is paid for, in words."""
        return f"committed for {self.payment}" if self.payment in TERMS else self.payment

    @property
    def words(self) -> str:
        """Provider, instance, terms, region and day, marked where it is old or was not verified."""
        terms = self.terms if self.payment in TERMS else self._bought
        day = self.price_date or ""
        doubts = ("" if self.verified else "unverified", "" if self.age.words in day else self.age.words)
        return ", ".join(filter(None, (self.provider, self.name, terms, self.region, day, *doubts)))

    @property
    def _bought(self) -> str:
        """What it was bought for, in words; empty for what is rented."""
        if self.purchase is None:
            return ""
        return f"bought for {format_money(self.purchase.usd)} to last {self.purchase.lifetime_years:g} years"


def quotes(row: Instance, catalog: Catalog, payment: Payment | None = None) -> Iterator[Quote]:
    """Return the known prices of an instance, paid for in one way or in all, those of its own region first."""
    return (quote for quote in _all_quotes(row, catalog) if payment in (None, quote.payment))


def _all_quotes(row: Instance, catalog: Catalog) -> Sequence[Quote]:
    """Return every price of an instance, worked out once for a catalogue: plans ask for them again and again."""
    cached = _KEPT.setdefault(catalog, {})
    known = cached.get(row.id)
    if known is None or known[0] is not row:
        known = cached[row.id] = (row, tuple(_read_quotes(row, catalog)))
    return known[1]


def _read_quotes(row: Instance, catalog: Catalog) -> Iterator[Quote]:
    taken_off = [offer for offer in catalog.commitments.values() if _is_for(offer, row)]
    known: dict[tuple[str | None, Payment], Quote] = {}
    for region, block in _blocks(row, catalog):
        # Of a region that stands twice the later block counts: what was refreshed is laid over what was shipped.
        known |= {(region, quote.payment): quote for quote in _block_quotes(row, region, block, taken_off)}
    yield from known.values()


def chosen_quote(row: Instance, payment: Payment, region: str | None, catalog: Catalog) -> Quote | None:
    """Return the price of an instance that is paid for in one way, nearest to a region; None where none is known.

    The region itself comes first, then others in its part of the world, then any; of equally near ones what was
    fetched, then the instance's own region, then the cheapest.
    """
    known = list(quotes(row, catalog, payment))
    if not known:
        return None
    home = (payment == SPOT and row.spot_region) or row.region
    day = "" if catalog.refreshed is None else catalog.refreshed.price_date.isoformat()
    if region is None:
        # Spot capacity may be known of a region of its own: what was fetched of the instance's counts more than that.
        return min(known, key=lambda q: (q.price_date != day or q.region not in (home, row.region), q.region != home))
    target_region = region_id(region, catalog)
    chosen = min(
        known,
        key=lambda q: (
            _distance(q.region, target_region, catalog),
            q.price_date != day,
            q.region != home,
            q.usd_per_hour,
        ),
    )
    return chosen if _distance(chosen.region, target_region, catalog) == _HERE else _elsewhere(chosen, target_region)


def region_id(name: str, catalog: Catalog, field: str = Key.PRICING_REGION) -> str:
    """Return the region or area of a name typed into a field; PlanError with the nearest where there is none."""
    try:
        return catalog.regions.find(name).id
    except CatalogError as error:
        raise PlanError(error.title, error.detail, error.hint, Place(field=field)) from error


def _blocks(row: Instance, catalog: Catalog) -> Iterator[tuple[str | None, RegionPrice]]:
    """Yield the prices of a row by region, its own first; on demand and spot may be known of different ones."""
    if row.on_demand_usd_per_hour is not None:
        yield row.region, RegionPrice(on_demand_usd_per_hour=row.on_demand_usd_per_hour)
    if row.spot_usd_per_hour is not None:
        spot = RegionPrice(spot_usd_per_hour=row.spot_usd_per_hour, price_date=row.spot_price_date)
        yield row.spot_region or row.region, spot
    yield from row.regions.items()
    if catalog.refreshed is not None and not _has_price(row):
        yield from catalog.refreshed.of(row.id).items()


def _has_price(row: Instance) -> bool:
    """Whether the user's own file says the price: nothing that was fetched stands above that."""
    is_own = row.provenance == FROM_USER and not row.overrides
    return is_own or any(name.endswith("usd_per_hour") or name == "regions" for name in row.overrides)


def _block_quotes(
    row: Instance, region: str | None, block: RegionPrice, taken_off: Sequence[Commitment]
) -> Iterator[Quote]:
    plain = block.on_demand_usd_per_hour
    if plain is not None:
        on_demand = _quote(row, region, block, ON_DEMAND, plain)
        yield on_demand
        for offer in taken_off:
            # As sure as the less sure of the two.
            confidence = max(on_demand.confidence, offer.confidence)
            usd = plain * offer.share
            yield replace(on_demand, payment=offer.term, usd_per_hour=usd, source=offer.source, confidence=confidence)
    if block.spot_usd_per_hour is not None:
        yield _quote(row, region, block, SPOT, block.spot_usd_per_hour)
    for term, usd in block.committed_usd_per_hour.items():
        yield _quote(row, region, block, term, usd)


def has_commitment(row: Instance, catalog: Catalog) -> bool:
    """Return whether a price for a commitment of years is known of an instance."""
    is_known = any(block.committed_usd_per_hour for block in row.regions.values())
    return is_known or any(_is_for(offer, row) for offer in catalog.commitments.values())


def _is_for(offer: Commitment, row: Instance) -> bool:
    return offer.provider == row.provider and (row.id in offer.instances or row.accelerator in offer.accelerators)


def _quote(row: Instance, region: str | None, block: RegionPrice, payment: Payment, usd: float) -> Quote:
    return Quote(
        instance=row.id,
        provider=row.provider,
        name=row.name,
        devices=row.accelerator_count,
        payment=payment,
        usd_per_hour=usd,
        region=region,
        price_date=block.price_date or row.price_date,
        source=block.source or row.source,
        confidence=block.confidence or row.confidence,
        purchase=row.purchase if payment == ON_DEMAND else None,
    )


def _distance(region: str | None, wanted: str, catalog: Catalog) -> int:
    """Return how far a region is from the one or the area that is asked for."""
    rows = catalog.regions
    row_id = rows.find_id(region or "")
    if wanted in (region, row_id):
        return _HERE
    if row_id is None or not set(rows[row_id].areas) & set(rows[wanted].areas):
        return _ELSEWHERE
    # An area stands for all of its regions.
    return _HERE if rows[wanted].provider is None else _NEAR


def _elsewhere(quote: Quote, wanted: str) -> Quote:
    return replace(
        quote, remark=f"no price of {quote.provider} {quote.name} in {wanted} is known: that of {quote.region}"
    )
