"""Grids that machines draw electricity from, and what a kilowatt-hour of each emits."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field, RootModel

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.catalog.rows import Confidence

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
    """Return all grids by name."""
    rows = Grids.model_validate(parse_shipped(files("capacity_tui.profiles") / "grids.yaml")).root
    return {name: row.model_copy(update={"name": name}) for name, row in rows.items()}


@cache
def _by_region() -> Mapping[str, Grid]:
    return {region: grid for grid in grids().values() for region in grid.regions}
