"""A machine of one's own: what it cost to buy, how long it lasts, what it draws, and what an hour of it comes to."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat

HOURS_OF_A_YEAR = 8760.0

NumberT = TypeVar("NumberT")


class Purchase(BaseModel):
    """What buying an instance takes; an hour's price follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
    """Price of an hour in which a machine of one's own works.

    Args:
        purchase: price it was bought for, USD.
        lifetime: hours until it is worth nothing.
        use: share of them in which it works.
        kilowatts: power it draws, kW.
        overhead: power with cooling and supply, over its own.
        usd_per_kwh: price of a kilowatt-hour, USD.
    """
    return purchase / (lifetime * use) + kilowatts * overhead * usd_per_kwh
