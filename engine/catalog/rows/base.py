"""What every catalogue row carries: a name, a source, the day it was checked, and how sure it is."""

from datetime import date
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from capacity_tui.engine.record import dataclass

Confidence = Literal["A", "B", "C"]
SHIPPED = "catalogue"
FROM_USER = "user file"
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Informational:
    """Marks a field that nothing is computed from."""

    purpose: str


IDENTIFIES = Informational("tells a reader which product is meant")
CHECKS = Informational("lets a reader check other figures of the row")
SHOWN = Informational("is shown with the row, to say whose figures they are")


class Row(BaseModel):
    """One row of a catalogue; frozen, and without any field the file did not name correctly.

    Units are in the field names; an unpublished field is None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    other_names: ClassVar[tuple[str, ...]] = ()  # Fields besides the name by which a row is found

    id: str = Field(description="name in plan files")
    name: str = Field(description="name as its maker writes it")
    source: str = Field(description="where the figures come from; keys are listed in profiles/README.md")
    checked: date = Field(description="day on which the figures were checked")
    confidence: Confidence = Field(description="A: two sources agree, B: one source, C: unverified")
    notes: str | None = Field(None, description="what to know before relying on the row")
    provenance: Annotated[Literal["catalogue", "user file"], SHOWN] = Field("catalogue", description="who says so")
    overrides: Annotated[tuple[str, ...], SHOWN] = Field((), description="fields that the user's own file replaces")

    @property
    def verified(self) -> bool:
        """Whether any source of the row was seen, not only recalled."""
        return self.confidence != "C"


NODE = "node"
LARGEST_OVERSUBSCRIPTION = 1000.0
LARGEST_LEVEL = 10**7


class LevelRow(BaseModel):
    """What joins several of the units inside it: nodes to a rack, racks to a fabric.

    Levels are listed from the innermost out; what is inside the first of them is a node.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: Annotated[str, Field(min_length=1, max_length=40)] = Field(description="what it is called, such as rack")
    devices: Annotated[int, Field(ge=1, le=LARGEST_LEVEL)] | None = Field(
        None, description="devices that one of them holds; all where None"
    )
    link: str | None = Field(None, description="id in the links catalogue; that of the level inside where None")
    oversubscription: Annotated[float, Field(ge=1, le=LARGEST_OVERSUBSCRIPTION)] = Field(
        1.0, description="bandwidth of its devices' ports over what the level carries"
    )
