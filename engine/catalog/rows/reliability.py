"""Rows about how far estimates were from published measurements."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from capacity_tui.engine.catalog.rows.base import CHECKS, Row


class Reliability(Row):
    """Spread of measured over estimated, of one kind of figure, on runs of publishers an estimate was not fitted to.

    Spreads are standard deviations of the logarithm of measured over estimated.
    """

    spreads: dict[str, NonNegativeFloat] = Field(
        description="spread by what brings it in: of a whole figure made of that part alone"
    )
    distances: dict[str, NonNegativeFloat] = Field(
        description="spread that one difference from the nearest published run adds"
    )
    hidden: NonNegativeFloat = Field(0.0, description="share of hidden communication that counts with the exposed")
    repeat: NonNegativeFloat = Field(
        description="spread between runs of one plan: nothing measured here narrows it more"
    )
    below: PositiveFloat = Field(description="spreads from the estimate to the low end of a range of eight in ten")
    above: PositiveFloat = Field(description="spreads to its high end")
    measurements: NonNegativeInt = Field(description="runs behind it; 0: set by hand")
    publishers: Annotated[NonNegativeInt, CHECKS] = Field(description="publishers of these runs")
