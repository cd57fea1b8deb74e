"""Rows about kernels of attention: where each runs, and what it reaches there."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat

from capacity_tui.engine.catalog.rows.base import Row

Share = Annotated[float, Field(gt=0, le=1.5)]
OTHER = "other"
"""Entry of what nobody measured."""


class AttentionKernel(Row):
    """What a kernel of attention reaches, by row of efficiency.yaml; ``other`` holds for rows without an entry."""

    generations: tuple[str, ...] = Field((), description="rows of efficiency.yaml that have it; all where empty")
    fused: int = Field(ge=0, le=1, description="1: scores are never stored")
    reach: dict[str, Share] = Field({}, description="share of dense peak of its products, at unlimited length")
    backward_reach: dict[str, Share] = Field({}, description="the same in the backward pass")
    exposed: dict[str, NonNegativeFloat] = Field({}, description="share of exponentials that products do not hide")
    half_length: dict[str, PositiveFloat] = Field({}, description="tokens at which half of the rate is reached")
    backward_half_length: dict[str, PositiveFloat] = Field({}, description="the same in the backward pass")

    def runs_on(self, efficiency: str) -> bool:
        """Return whether devices of a row of efficiency.yaml have the kernel."""
        return not self.generations or efficiency in self.generations
