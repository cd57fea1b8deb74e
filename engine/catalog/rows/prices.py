"""Rows about money: regions, and what a commitment of years takes off."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat

from capacity_tui.engine.catalog.rows.base import IDENTIFIES, SHOWN, Confidence, Row

Term = Literal["1y", "3y"]
"""How long capacity is committed to."""
Area = Literal["us", "america", "europe", "asia", "oceania", "africa", "middle-east"]
"""Part of the world; ``us`` apart from the rest of America, as price lists have it."""


class RegionPrice(BaseModel):
    """What a whole instance costs in one region; day, source and confidence are the row's unless it says others."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
