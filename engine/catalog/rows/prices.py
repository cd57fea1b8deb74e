"""What machines, disks and moved data cost: rows of prices, how old a price is, and prices that were fetched since."""

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, ValidationError

from capacity_tui.engine.catalog.reading import read_text
from capacity_tui.engine.catalog.rows.base import IDENTIFIES, SHOWN, Confidence, Row
from capacity_tui.engine.errors import CapacityError, CatalogError, Place
from capacity_tui.engine.record import dataclass

Term = Literal["1y", "3y"]  # How long capacity is committed to
Area = Literal["us", "america", "europe", "asia", "oceania", "africa", "middle-east"]
"""Part of the world; ``us`` apart from the rest of America, as price lists have it."""


class RegionPrice(BaseModel):
    """What a whole instance costs in one region; day, source and confidence are the row's unless it says others."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    on_demand_usd_per_hour: PositiveFloat | None = None
    spot_usd_per_hour: PositiveFloat | None = None
    committed_usd_per_hour: dict[Term, PositiveFloat] = Field(
        default_factory=dict, description="by term, what is paid in advance shared out over it"
    )
    price_date: str | None = None
    source: str | None = None
    confidence: Confidence | None = None


class Region(Row):
    """A region of a cloud, or an area of the world that a plan may ask for."""

    like: Annotated[str | None, SHOWN] = Field(None, description="row that holds what this one does not give")
    provider: Annotated[str | None, IDENTIFIES] = None
    areas: tuple[Area, ...] = Field(description="parts of the world it is in")


class Commitment(Row):
    """What a provider takes off for a commitment, wherever no price of its own is known."""

    provider: str
    term: Term
    instances: tuple[str, ...] = Field((), description="ids of the instances it is for")
    accelerators: tuple[str, ...] = Field((), description="ids of the accelerators whose instances it is for")
    share: Annotated[float, Field(gt=0, le=1)] = Field(description="of the price on demand that remains to pay")


class Disk(Row):
    """Storage that a provider rents out by what it could hold."""

    provider: str
    kind: Literal["block", "object", "file"] = Field(description="a disk of one machine, objects, or shared files")
    usd_per_gb_month: NonNegativeFloat = Field(description="for a gigabyte held for a month")
    region: str | None = None
    price_date: str | None = None
    gbs: Annotated[PositiveFloat | None, SHOWN] = Field(None, description="GB/s that the price includes")


class PriceStep(BaseModel):
    """The price of a gigabyte from where the step before ends; the first step begins with the first gigabyte."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    to_gb: PositiveFloat | None = Field(None, description="last gigabyte of a month; None for all further ones")
    usd_per_gb: NonNegativeFloat


class Egress(Row):
    """What a provider takes for data that leaves a region; data that comes in is free with all of them."""

    provider: str
    route: Literal["internet", "area", "elsewhere"] = Field(
        description="to the internet, to the provider's regions in the same part of the world, or to its others"
    )
    areas: tuple[Area, ...] = Field(description="parts of the world it leaves from")
    steps: tuple[PriceStep, ...] = Field(min_length=1, description="by gigabytes of a month")
    price_date: str | None = None


HOURS_OF_A_YEAR = 8760.0
HOURS_OF_A_MONTH = 720  # Hours of a month of 30 days, in which instances are compared


class Purchase(BaseModel):
    """What buying an instance takes; an hour's price follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    usd: PositiveFloat = Field(description="paid for the whole machine")
    lifetime_years: PositiveFloat = Field(description="until it is worth nothing")
    watts: PositiveFloat = Field(description="drawn under load, by the whole machine")
    use: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="share of its lifetime in which it works")
    overhead: Annotated[float, Field(ge=1)] = Field(1.0, description="power with cooling and supply, over its own")
    usd_per_kwh: NonNegativeFloat = 0.15

    @property
    def lifetime_hours(self) -> float:
        """Hours from the first day to the last."""
        return self.lifetime_years * HOURS_OF_A_YEAR

    @property
    def usd_per_hour(self) -> float:
        """What an hour of work costs."""
        return owned_usd_per_hour(
            self.usd, self.lifetime_hours, self.use, self.watts / 1e3, self.overhead, self.usd_per_kwh
        )


def owned_usd_per_hour(
    purchase: float, lifetime: float, use: float, kilowatts: float, overhead: float, usd_per_kwh: float
) -> float:
    """Price of an hour in which an owned machine works.

    Args:
        purchase: price it was bought for, USD.
        lifetime: hours until it is worth nothing.
        use: share of them in which it works.
        kilowatts: power it draws, kW.
        overhead: power with cooling and supply, over its own.
        usd_per_kwh: price of a kilowatt-hour, USD.
    """
    return purchase / (lifetime * use) + kilowatts * overhead * usd_per_kwh


OLD_AFTER_DAYS = 90  # Prices that were seen longer ago are marked wherever they are shown
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


@dataclass(frozen=True, slots=True)
class PriceAge:
    """How long ago a price was seen."""

    days: int | None  # at least this many; None where unknown
    is_old: bool  # whether it is marked: over 90 days, or of no known day
    words: str  # the mark in words; empty for a recent price
    mark: str  # the same in one word, for tables


def today() -> date:
    """Return the present day."""
    return datetime.now(UTC).date()


def day_of_file(path: Path) -> date:
    """Return the day on which a file was last written; one that a clock puts in the future was written today."""
    return min(datetime.fromtimestamp(path.stat().st_mtime, UTC).date(), today())


def price_age(day: str | date | None, on: date | None = None) -> PriceAge:
    """Return how old a price is, by default today; of a month or a year alone its last day counts."""
    last_day, now = _last_day(day), on or today()
    if last_day is None or last_day > now:
        return PriceAge(None, True, "undated", "undated")
    days = (now - last_day).days
    is_old = days > OLD_AFTER_DAYS
    return PriceAge(days, is_old, f"over {OLD_AFTER_DAYS} days old" if is_old else "", "old" if is_old else "")


def marked_day(day: str | None) -> str:
    """Return a day as tables show it, with its mark: ``2026-07-20 old``."""
    mark = price_age(day).mark
    return " ".join(filter(None, (day or "", "" if mark in (day or "") else mark)))


def _last_day(day: str | date | None) -> date | None:
    """Return the last day that a text such as ``2025`` or ``2026-07-20`` may mean; None where it is invalid."""
    if day is None or isinstance(day, date):
        return day
    match = _DAY.match(day)
    if match is None:
        return None
    year, month, number = int(match[1]), int(match[2] or 12), match[3]
    try:
        return date(year, month, int(number) if number else monthrange(year, month)[1])
    except ValueError:
        return None


FILE = "refreshed-prices.json"  # Name of the file in the folder of the user's own catalogue


class RefreshedPrices(BaseModel):
    """Prices of one day by instance and region; day and source of each are those of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    price_date: date
    source: str
    instances: dict[str, dict[str, RegionPrice]] = Field(default_factory=dict)

    def of(self, instance: str) -> Mapping[str, RegionPrice]:
        """Return the prices of an instance by region; none where it was not found."""
        provenance = {"price_date": self.price_date.isoformat(), "source": self.source, "confidence": "B"}
        prices = self.instances.get(instance, {})
        return {region: price.model_copy(update=provenance) for region, price in prices.items()}


def fetched_prices(
    source: str, instances: dict[str, dict[str, RegionPrice]], day: date | None = None
) -> RefreshedPrices:
    """Return prices that were fetched on a day: today, where none is given."""
    return RefreshedPrices(price_date=day or today(), source=source, instances=instances)


def read_refreshed(folder: Path) -> tuple[RefreshedPrices | None, tuple[CapacityError, ...]]:
    """Return the prices that were fetched last, and what is wrong with their file; None where there are none."""
    path = folder / FILE
    if not path.is_file():
        return None, ()
    try:
        return RefreshedPrices.model_validate_json(read_text(path)), ()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or None
        hint = "fetch them again: capacity-tui fleet prices --refresh; until then the shipped ones count"
        return None, (
            CatalogError("refreshed prices cannot be read", first["msg"], hint, Place(str(path), None, field)),
        )
    except CapacityError as problem:
        return None, (problem,)
