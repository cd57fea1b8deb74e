"""What the instances of a fleet cost an hour: those that come and go, and those that are committed to."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import ON_DEMAND, TERMS, Payment, Quote, chosen_quote
from capacity_tui.engine.fleet.serving.candidates import Candidate


@dataclass(frozen=True, slots=True)
class DayPrices:
    """Prices of the instance that replicas share, or of all that one replica takes.

    Attributes:
        on_demand: dollars an hour; None where no price is known.
        committed: dollars an hour with a commitment; None where no such price is known.
        terms: of the commitment, in words; empty without one.
    """

    on_demand: float | None
    committed: float | None = None
    terms: str = ""


def day_prices(candidate: Candidate, catalog: Catalog) -> DayPrices:
    """Return what the instances of a kind of replica cost: committed to for the plan's term, or the shortest known."""
    pricing = candidate.filled.plan.pricing
    row_id = catalog.instances.find_id(candidate.instance)
    if row_id is None or pricing.usd_per_hour is not None:
        return DayPrices(candidate.usd_per_hour)
    row, many = catalog.instances[row_id], candidate.instances_of_replica
    plain = chosen_quote(row, ON_DEMAND, pricing.region, catalog)
    wanted: tuple[Payment, ...] = tuple(TERMS) if pricing.commitment == "none" else (pricing.commitment,)
    quotes: list[Quote] = [quote for term in wanted if (quote := chosen_quote(row, term, pricing.region, catalog))]
    known = next((quote for quote in quotes if plain and quote.region == plain.region), None)
    return DayPrices(
        None if plain is None else plain.usd_per_hour * many,
        None if known is None else known.usd_per_hour * many,
        "" if known is None else known.words,
    )
