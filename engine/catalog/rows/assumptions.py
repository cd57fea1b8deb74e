"""What stands in for a figure that neither a machine, a corpus nor a catalogue row tells."""

from __future__ import annotations

from pydantic import Field, PositiveFloat

from capacity_tui.engine.catalog.rows.base import Row


class Assumption(Row):
    """One figure that is assumed where nothing tells it, and named wherever it is used."""

    value: PositiveFloat
    unit: str = Field("", description="unit of the value, empty for a pure number")
    low: PositiveFloat | None = Field(None, description="least that devices of the kind have; None where all have it")
    high: PositiveFloat | None = Field(None, description="most that they have, likewise")
