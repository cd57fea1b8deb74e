"""Rows about convolutional networks: their layers, as a list that anyone can write."""

from __future__ import annotations

from typing import Any

from pydantic import Field, PositiveInt

from capacity_tui.engine.catalog.rows.base import Row


class Network(Row):
    """A network of layers over images."""

    best_use: str = Field("", description="what the network is the right choice for")
    channels: PositiveInt = Field(3, description="of the input")
    image_size: PositiveInt = Field(224, description="height and width of the input")
    classes: PositiveInt = Field(1000, description="of the output")
    is_sampled: bool = Field(False, description="an answer is many passes, each of which denoises a little")
    layers: list[str | dict[str, Any]] = Field(description="in their order; see profiles/README.md")
