"""Rows about classical algorithms: what their usual implementations cost beyond the textbook's operations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat

from capacity_tui.engine.catalog.rows.base import Row

Ratio = Annotated[float, Field(gt=0, le=10)]


class Algorithm(Row):
    """One algorithm as a library runs it; times are those of one core of the machine that ``source`` names."""

    library: str = Field(description="implementation the constants were measured on")
    complexity: str = Field(description="complexity class in rows n, features p and the algorithm's own sizes")
    best_use: str = Field("", description="what the algorithm is the right choice for")
    single_threaded: bool = Field(False, description="the library uses one core, whatever n_jobs says")
    serial: float = Field(0.0, ge=0, le=1, description="share of one core's time that more cores do not shorten")
    shares: dict[str, Ratio] = Field({}, description="share of the matrix-product rate, by kernel")
    half_sizes: dict[str, NonNegativeFloat] = Field(
        {}, description="smaller side of the result at which a kernel reaches half its rate"
    )
    nanoseconds: dict[str, NonNegativeFloat] = Field({}, description="of one elementary operation, by kind")
    passes: dict[str, NonNegativeFloat] = Field({}, description="times a kernel reads or writes its operands")
    bytes: dict[str, NonNegativeFloat] = Field({}, description="kept for one element, by kind")
    ratios: dict[str, NonNegativeFloat] = Field({}, description="sizes that follow from others, by name")
    seconds: NonNegativeFloat = Field(0.0, description="fixed time of a fit: checks and set-up")
    step_range: tuple[PositiveFloat, PositiveFloat] = Field(
        (0.6, 2.0), description="measured over predicted time, 10th and 90th percentile"
    )
    reasonable_seconds: PositiveFloat = Field(3600.0, description="a fit that takes longer earns a warning")
    instead: str = Field("", description="what to use beyond that")
