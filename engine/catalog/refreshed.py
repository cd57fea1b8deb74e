"""Prices that were fetched on request, kept beside the user's own rows and laid over the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from capacity_tui.engine.catalog.reading import read_text
from capacity_tui.engine.catalog.rows.prices import RegionPrice
from capacity_tui.engine.errors import CapacityError, CatalogError, Place

FILE = "refreshed-prices.json"
"""Name of the file in the folder of the user's own catalogue."""


class RefreshedPrices(BaseModel):
    """Prices of one day by instance and region; day and source of each are those of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    price_date: date
    source: str
    instances: dict[str, dict[str, RegionPrice]] = Field(default_factory=dict)

    def of(self, instance: str) -> Mapping[str, RegionPrice]:
        """Return the prices of an instance by region; none where it was not found."""
        provenance = {"price_date": self.price_date.isoformat(), "source": self.source, "confidence": "B"}
        prices = self.instances.get(instance, {})
        return {region: price.model_copy(update=provenance) for region, price in prices.items()}


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
