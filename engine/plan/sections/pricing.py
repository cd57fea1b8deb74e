"""What of a plan says how hardware is paid for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity_tui.engine.schema.field_meta import Knob
from capacity_tui.engine.schema.field_types import Section


class PricingSection(Section):
    """What an hour and a kilowatt-hour cost."""

    usd_per_hour: Annotated[
        Annotated[float, Field(ge=0, le=1e9)] | None,
        Knob(
            "Price",
            "number",
            "pricing",
            "$/h",
            0,
            1e9,
            0.5,
            role="surroundings",
            keeps_result=True,
        ),
    ] = None
    spot: Annotated[
        bool,
        Knob(
            "Spot",
            "switch",
            "pricing",
            role="surroundings",
            needs=("spot price",),
            keeps_result=True,
        ),
    ] = False
    commitment: Annotated[
        Literal["none", "1y", "3y"],
        Knob(
            "Commitment",
            "choice",
            "pricing",
            choices=("none", "1y", "3y"),
            role="surroundings",
            needs=("committed price",),
            is_wish=True,
            keeps_result=True,
        ),
    ] = "none"
    region: Annotated[
        str | None,
        Knob(
            "Region",
            "text",
            "pricing",
            role="surroundings",
            needs=("regional price",),
            is_wish=True,
            keeps_result=True,
            catalogue="region",
            rows="region",
        ),
    ] = None
    usd_per_kwh: Annotated[
        Annotated[float, Field(ge=0, le=100)],
        Knob(
            "Electricity",
            "number",
            "pricing",
            "$/kWh",
            0,
            100,
            0.01,
            role="surroundings",
            needs=("energy",),
            keeps_result=True,
        ),
    ] = 0.15
