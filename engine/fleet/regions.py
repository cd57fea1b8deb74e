"""The same job region by region: what its machines cost there, and what its data costs to get there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capacity_tui.engine.catalog import Catalog, Instance, load_catalog
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH
from capacity_tui.engine.cluster import ON_DEMAND, SPOT, Payment, Quote, quotes, region_id
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import Answer, estimate_plan, job_seconds, units_per_second
from capacity_tui.engine.estimate.data import DataLocation, DataPrice, transfer_price
from capacity_tui.engine.fleet.migration.priced import month_usd
from capacity_tui.engine.fleet.migration.recommendations import transfer_hours
from capacity_tui.engine.fleet.options import assumed
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.units import GIGA


@dataclass(frozen=True, slots=True)
class RegionOffer:
    """The job in one region."""

    place: DataLocation  # provider and region
    name: str  # what people call the region; empty where it is not known
    quote: Quote  # price of the instance there
    count: int
    usd_per_hour: float
    usd: float  # price of the job; of a month where its length is open
    work_per_second: float  # tokens or samples a second where the length is open; 1 for jobs with an end
    data: DataPrice | None  # price of its data's way; None where that is not known
    data_hours: float  # hours the data is under way; 0 where it stays
    is_home: bool  # whether the data is there already

    @property
    def usd_for_work(self) -> float:
        """What instances of one region are compared by: the price of a job, or of as much as a second answers."""
        return self.usd / self.work_per_second

    @property
    def total_usd(self) -> float | None:
        """Price of job and data together; None where that of the data is not known."""
        return None if self.data is None else self.usd + mean(self.data.usd)


@dataclass(frozen=True, slots=True)
class Regions:
    """The job in every region where its machines have a price."""

    home: DataLocation  # where the data is
    data_bytes: float  # how much data moves
    # length of the job on the instances that were looked at last; None where it is open, and prices are those of a
    # month
    seconds: float | None
    offers: tuple[RegionOffer, ...]  # the cheapest first, those whose data has no known price last
    refused: tuple[tuple[str, str], ...]  # instances that do not run the job, with the reason


def by_region(
    plan: Plan,
    data_bytes: float = 0.0,
    home: str | None = None,
    catalog: Catalog | None = None,
    machine: Machine | None = None,
) -> Regions:
    """Return a job region by region.

    Args:
        plan: the job; its hardware is an instance, or a device whose instances are compared.
        data_bytes: data that has to be where the job runs.
        home: region where the data is; by default that of the plan, or where its price is known.

    Raises:
        CapacityError: the plan cannot be estimated, its hardware is not rented out, or no region is called that.
    """
    if not 0 <= data_bytes < float("inf"):
        raise PlanError("no such amount of data", f"{data_bytes:g} bytes", "give 0 or more, such as --data 2TB")
    facts = catalog or load_catalog()
    rows = _rows(plan, facts)
    data: dict[tuple[str, str | None], RegionOffer] = {}
    refused: list[tuple[str, str]] = []
    place, seconds = _home(plan, home, rows, facts), None
    for row in rows:
        try:
            answer = _on(plan, row, facts, machine)
        except CapacityError as error:
            refused.append((row.id, error.detail or error.title))
            continue
        if answer.estimate.fits is False:
            refused.append((row.id, answer.estimate.verdict_text))
            continue
        computation = answer.estimate.computation
        if computation.steps is not None:
            seconds = mean(job_seconds(computation.steps, computation.step_seconds.value))
        for offer in _offers(answer, row, place, data_bytes, facts, machine):
            key = (row.provider, offer.place.region)
            if key not in data or offer.usd_for_work < data[key].usd_for_work:
                data[key] = offer
    if not data:
        reasons = "; ".join(f"{name}: {why}" for name, why in refused[:2]) or "no price of it is known"
        raise PlanError("no region runs this job", reasons, "name another instance or device")
    ordered = sorted(data.values(), key=lambda offer: (offer.total_usd is None, offer.total_usd or offer.usd))
    return Regions(place, data_bytes, seconds, tuple(ordered), tuple(refused))


def _rows(plan: Plan, catalog: Catalog) -> tuple[Instance, ...]:
    """Return the instance of a plan, or those that have its device."""
    name = plan.hardware.name or ""
    accelerator = catalog.accelerators.find_id(name)
    own = None if accelerator is not None else catalog.instances.known(name)
    rows = (own,) if own is not None else tuple(catalog.instances_with(accelerator or name))
    payment = _payment(plan)
    priced = tuple(row for row in rows if any(quotes(row, catalog, payment)))
    if not priced:
        detail = f"no {payment} price of {name or 'it'} is known"
        raise PlanError("no prices to compare", detail, "capacity-tui instances --list has those that are rented")
    return priced


def _payment(plan: Plan) -> Payment:
    if plan.pricing.spot:
        return SPOT
    return ON_DEMAND if plan.pricing.commitment == "none" else plan.pricing.commitment


def _on(plan: Plan, row: Instance, catalog: Catalog, machine: Machine | None) -> Answer:
    """Return the job on an instance, what the plan leaves open filled in."""
    there = plan if row.id == plan.hardware.name else edited(plan, {Key.HARDWARE_NAME: row.id}, catalog).plan
    devices = plan.hardware.devices or row.sold_devices
    values: dict[str, object] = {
        Key.HARDWARE_DEVICES: devices,
        Key.PARALLELISM_DP: plan.parallelism.dp,
        Key.PRICING_USD_PER_HOUR: None,
    }
    filled = fill(with_values(there, values), "balanced", machine, catalog)
    return Answer(filled.resolved, filled.estimate)


def _home(plan: Plan, home: str | None, rows: Iterable[Instance], catalog: Catalog) -> DataLocation:
    """Return where the data is: the region that was said, the plan's, or that of the first price that is known."""
    wanted = home or plan.pricing.region
    first = next(iter(rows))
    if wanted is None:
        known = [quote for row in rows for quote in quotes(row, catalog, _payment(plan))]
        # A place where data can be: offers that name no region of a provider's own come last.
        own = min(known, key=lambda quote: (not _is_region(quote, catalog), quote.usd_per_hour / max(quote.devices, 1)))
        return DataLocation(own.provider, own.region)
    region = region_id(wanted, catalog)
    return DataLocation(catalog.regions[region].provider or first.provider, region)


def _is_region(quote: Quote, catalog: Catalog) -> bool:
    row = catalog.regions.known(quote.region)
    return row is not None and row.provider is not None


def _offers(
    answer: Answer, row: Instance, home: DataLocation, data_bytes: float, catalog: Catalog, machine: Machine | None
) -> Iterator[RegionOffer]:
    """Yield the job on one instance in each region where its price is known."""
    plan, computation = answer.plan, answer.estimate.computation
    work = 1.0
    if computation.steps is None:
        work = mean(units_per_second(computation.units_per_step, computation.step_seconds.value))
    for quote in quotes(row, catalog, _payment(plan)):
        there = estimate_plan(with_values(plan, {Key.PRICING_REGION: quote.region}), machine, catalog).estimate.cost
        if there.usd_per_hour is None:
            continue
        rate = mean(there.usd_per_hour)
        place = DataLocation(row.provider, quote.region)
        is_home = place == home
        data = transfer_price(data_bytes / GIGA, home, place, catalog)
        stays = is_home or data_bytes == 0
        hours = 0.0 if stays else mean(transfer_hours(data_bytes, assumed("transfer_gbit")))
        known = catalog.regions.known(quote.region)
        yield RegionOffer(
            place=place,
            name="" if known is None else known.name,
            quote=quote,
            count=max(round(rate / quote.usd_per_hour), 1),
            usd_per_hour=rate,
            usd=mean(month_usd(HOURS_OF_A_MONTH, rate)) if there.usd is None else mean(there.usd),
            work_per_second=work,
            data=data,
            data_hours=hours,
            is_home=is_home,
        )
