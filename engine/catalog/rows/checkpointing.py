"""Rows about activation checkpointing: what the backward pass computes again."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity_tui.engine.catalog.rows.base import Row


class Checkpointing(Row):
    """What the backward pass computes again instead of keeping it."""

    full_layers: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="share of layers that keep their input alone"
    )
    operations: bool = Field(False, description="matrix products are kept, all else is computed again")
    modules: tuple[str, ...] = Field((), description="parts of the other layers that are computed again")
