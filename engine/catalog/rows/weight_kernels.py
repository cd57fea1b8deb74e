"""Rows about kernels that multiply with stored weights: what each reaches of the hardware, whatever engine calls it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import Row

Share = Annotated[float, Field(gt=0, le=2.5)]


class WeightKernel(Row):
    """Kernels of matrix products with weights of some formats; engines name theirs for each format."""

    bandwidth: Share = Field(description="share of reachable bandwidth at which weights are read")
    matrix: Share = Field(description="share of the reachable matrix rate, for many rows")
    unit_gbs: PositiveFloat | None = Field(None, description="most that one unit of the device streams, GB/s")
    unpack_flops: NonNegativeFloat = Field(0.0, description="operations that unpack one weight, at the fp32 peak")
    unpack_rows: PositiveInt | None = Field(None, description="rows from which weights are unpacked to memory first")
    launches: NonNegativeFloat = Field(0.0, description="further launches of each product")
    half_accumulation: PositiveFloat | None = Field(
        None, description="tensor rate with 16-bit accumulation over the fp32 vector rate, where it is used"
    )
    half_accumulation_vendors: tuple[str, ...] = Field((), description="makers of devices that have that rate")
