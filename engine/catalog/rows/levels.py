"""A level of a cluster as a catalogue or a plan states it: which devices one link joins."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NODE = "node"
LARGEST_OVERSUBSCRIPTION = 1000.0
LARGEST_LEVEL = 10**7


class LevelRow(BaseModel):
    """What joins several of the units inside it: nodes to a rack, racks to a fabric.

    Levels are listed from the innermost out; what is inside the first of them is a node.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=40)] = Field(description="what it is called, such as rack")
    devices: Annotated[int, Field(ge=1, le=LARGEST_LEVEL)] | None = Field(
        None, description="devices that one of them holds; all where None"
    )
    link: str | None = Field(None, description="id in the links catalogue; that of the level inside where None")
    oversubscription: Annotated[float, Field(ge=1, le=LARGEST_OVERSUBSCRIPTION)] = Field(
        1.0, description="bandwidth of its devices' ports over what the level carries"
    )
