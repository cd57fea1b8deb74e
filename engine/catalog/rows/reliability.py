"""Rows about how far estimates were from published measurements."""

from __future__ import annotations

from pydantic import Field, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import Row


class Reliability(Row):
    """Measured over estimated on runs of publishers an estimate was not fitted to."""

    low: PositiveFloat = Field(description="10th percentile")
    high: PositiveFloat = Field(description="90th percentile")
    measurements: PositiveInt = Field(description="runs behind the percentiles")
    publishers: PositiveInt = Field(description="publishers of these runs")
    hardware: tuple[str, ...] = Field(description="rows of efficiency.yaml among these runs")
    frameworks: tuple[str, ...] = Field(description="rows of frameworks.yaml among these runs")
    widening: PositiveFloat = Field(description="power to which a range goes outside what was measured")
