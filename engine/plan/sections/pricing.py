"""What of a plan says how hardware is paid for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity_tui.engine.schema import Section


class PricingSection(Section):
    """What an hour and a kilowatt-hour cost."""

    usd_per_hour: Annotated[float, Field(ge=0, le=1000000000.0)] | None = None
    spot: bool = False
    commitment: Literal["none", "1y", "3y"] = "none"
    region: str | None = None
    usd_per_kwh: Annotated[float, Field(ge=0, le=100)] = 0.15
