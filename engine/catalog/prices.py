"""Age of prices, and prices that were fetched on request and lie over the shipped ones."""

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from capacity_tui.engine.catalog.reading import read_text
from capacity_tui.engine.catalog.rows.prices import RegionPrice
from capacity_tui.engine.errors import CapacityError, CatalogError, Place
from capacity_tui.engine.record import dataclass

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
    """Return how old a price is.

    Args:
        day: when it was seen; of a month or a year alone its last day counts.
        on: the day to count from; the present one by default.
    """
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
