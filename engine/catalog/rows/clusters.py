"""Rows about clusters that exist: which devices they have, and what joins them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import SHOWN, Row
from capacity_tui.engine.catalog.rows.levels import LevelRow

MOST_GROUPS = 16


class ClusterGroup(BaseModel):
    """Equal devices in equal nodes of a cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = Field(description="id of an accelerator or a processor")
    devices: PositiveInt = Field(description="devices of all its nodes")
    per_node: PositiveInt = Field(1, description="devices of a node")


class ClusterRow(Row):
    """A cluster as plans name it: what a plan leaves open of its hardware is as here."""

    groups: Annotated[tuple[ClusterGroup, ...], Field(min_length=1, max_length=MOST_GROUPS)] = Field(
        description="its devices, alike ones together"
    )
    interconnect: str | None = Field(None, description="id in the links catalogue of what joins its nodes")
    ports_per_node: PositiveInt | None = Field(None, description="ports of that in a node; one a device where None")
    levels: tuple[LevelRow, ...] = Field((), description="what stands around its nodes, from the innermost out")
    host_memory_gib: PositiveFloat | None = Field(None, description="main memory of a node")
    nodes: Annotated[PositiveInt | None, SHOWN] = Field(None, description="how many nodes these are")
