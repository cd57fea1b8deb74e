"""The part of a plan about the data of a training: how they are stored, where they are, how they reach the devices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from capacity_tui.engine.schema.field_meta import Knob
from capacity_tui.engine.schema.field_types import (
    AUTO,
    LARGEST_WHOLE,
    NEURAL,
    TRAINED,
    Amount,
    AutoWholeNumber,
    Section,
    SpecValue,
    WholeNumber,
)

MOST_WORKERS = 1024
MOST_PHASES = 16
MOST_GBS = 1e6
# What shares of phases may add up to beside one, for those that are typed with two digits.
SHARES_ROUNDED = 0.011


class DataPhase(Section):
    """A part of a training with data or settings of its own: a share of its tokens, and what differs meanwhile."""

    name: Annotated[str, Field(min_length=1, max_length=40)]
    share: Annotated[float, Field(gt=0, le=1)]
    changes: dict[str, SpecValue] = Field(default_factory=dict)


class DataSection(Section):
    """The data of a training; the model learns the same from them wherever they lie."""

    format: Annotated[
        str,
        Knob(
            "Data format",
            "choice",
            "data",
            rows="data format",
            automatic=True,
            families=NEURAL,
            tasks=TRAINED,
            role="surroundings",
            keeps_result=True,
            chosen_last=True,
        ),
    ] = AUTO
    source: Annotated[
        Literal["auto", "local", "network", "bucket", "streaming"],
        Knob(
            "Data source",
            "choice",
            "data",
            choices=("local", "network", "bucket", "streaming"),
            automatic=True,
            families=NEURAL,
            tasks=TRAINED,
            role="surroundings",
            keeps_result=True,
            chosen_last=True,
        ),
    ] = "local"
    read_gbs: Annotated[
        Annotated[float, Field(gt=0, le=MOST_GBS)] | None,
        Knob(
            "Read rate",
            "number",
            "data",
            "GB/s",
            0.01,
            MOST_GBS,
            0.1,
            families=NEURAL,
            tasks=TRAINED,
            role="surroundings",
            keeps_result=True,
        ),
    ] = None
    unique_tokens: Annotated[
        Amount | None,
        Knob(
            "Unique tokens",
            "number",
            "data",
            "tok",
            1e6,
            1e15,
            1e9,
            families=("transformer",),
            tasks=TRAINED,
            role="surroundings",
            needs=("stated data",),
            keeps_result=True,
        ),
    ] = None
    cache: Annotated[
        Literal["auto", "ram", "nvme", "disk", "none"],
        Knob(
            "Data cache",
            "choice",
            "data",
            choices=("ram", "nvme", "disk", "none"),
            automatic=True,
            families=NEURAL,
            tasks=TRAINED,
            role="surroundings",
            needs=("stated data",),
            keeps_result=True,
            chosen_last=True,
        ),
    ] = AUTO
    workers: Annotated[
        Annotated[WholeNumber, Field(le=MOST_WORKERS)] | Literal["auto"],
        Knob(
            "Loader workers",
            "integer",
            "data",
            "",
            0,
            MOST_WORKERS,
            1,
            automatic=True,
            families=NEURAL,
            tasks=TRAINED,
            role="surroundings",
            needs=("stated data",),
            keeps_result=True,
            chosen_last=True,
        ),
    ] = AUTO
    prefetch: Annotated[
        Annotated[WholeNumber, Field(le=MOST_WORKERS)] | Literal["auto"],
        Knob(
            "Prefetched",
            "integer",
            "data",
            "batches",
            0,
            MOST_WORKERS,
            1,
            automatic=True,
            families=NEURAL,
            tasks=TRAINED,
            role="running",
            needs=("loader",),
            keeps_result=True,
            chosen_last=True,
        ),
    ] = AUTO
    shuffle_buffer: Annotated[
        AutoWholeNumber,
        Knob(
            "Shuffle buffer",
            "integer",
            "data",
            "samples",
            0,
            LARGEST_WHOLE,
            1000,
            automatic=True,
            families=NEURAL,
            tasks=TRAINED,
            role="running",
            needs=("loader",),
            keeps_result=True,
            chosen_last=True,
        ),
    ] = AUTO
    phases: Annotated[
        Annotated[tuple[DataPhase, ...], Field(max_length=MOST_PHASES)] | Literal["auto"],
        Knob(
            "Data phases",
            "table",
            "data",
            automatic=True,
            families=("transformer",),
            tasks=TRAINED,
            role="running",
            needs=("loader",),
            keeps_result=True,
            chosen_last=True,
        ),
    ] = ()

    @property
    def is_stated(self) -> bool:
        """Whether the plan says how or where its data lie, so that reading them is a term of its time."""
        return self.format != AUTO or self.source != "local" or self.read_gbs is not None

    @model_validator(mode="after")
    def _a_whole(self) -> DataSection:
        if self.phases and self.phases != AUTO:
            whole = sum(phase.share for phase in self.phases)
            if abs(whole - 1.0) > SHARES_ROUNDED:
                raise ValueError(f"the shares of the phases add up to {whole:g}: let them add up to 1")
            if len({phase.name for phase in self.phases}) < len(self.phases):
                raise ValueError("two phases have one name: give each its own")
        return self
