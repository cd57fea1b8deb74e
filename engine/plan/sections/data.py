"""The part of a plan about the data of a training: how they are stored, where they are, how they reach the devices."""

from __future__ import annotations

from functools import partial
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
_of_data = partial(
    Knob, group="data", automatic=True, families=NEURAL, tasks=TRAINED, keeps_result=True, chosen_last=True
)
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
        _of_data("Data format", "choice", rows="data format", role="surroundings"),
    ] = AUTO
    source: Annotated[
        Literal["auto", "local", "network", "bucket", "streaming"],
        _of_data("Data source", "choice", choices=("local", "network", "bucket", "streaming"), role="surroundings"),
    ] = "local"
    read_gbs: Annotated[
        Annotated[float, Field(gt=0, le=MOST_GBS)] | None,
        _of_data(
            "Read rate",
            "number",
            unit="GB/s",
            minimum=0.01,
            maximum=MOST_GBS,
            step=0.1,
            role="surroundings",
            automatic=False,
            chosen_last=False,
        ),
    ] = None
    unique_tokens: Annotated[
        Amount | None,
        _of_data(
            "Unique tokens",
            "number",
            unit="tok",
            minimum=1e6,
            maximum=1e15,
            step=1e9,
            families=("transformer",),
            role="surroundings",
            needs=("stated data",),
            automatic=False,
            chosen_last=False,
        ),
    ] = None
    cache: Annotated[
        Literal["auto", "ram", "nvme", "disk", "none"],
        _of_data(
            "Data cache", "choice", choices=("ram", "nvme", "disk", "none"), role="surroundings", needs=("stated data",)
        ),
    ] = AUTO
    workers: Annotated[
        Annotated[WholeNumber, Field(le=MOST_WORKERS)] | Literal["auto"],
        _of_data(
            "Loader workers", "integer", minimum=0, maximum=MOST_WORKERS, role="surroundings", needs=("stated data",)
        ),
    ] = AUTO
    prefetch: Annotated[
        Annotated[WholeNumber, Field(le=MOST_WORKERS)] | Literal["auto"],
        _of_data(
            "Prefetched", "integer", unit="batches", minimum=0, maximum=MOST_WORKERS, role="running", needs=("loader",)
        ),
    ] = AUTO
    shuffle_buffer: Annotated[
        AutoWholeNumber,
        _of_data(
            "Shuffle buffer",
            "integer",
            unit="samples",
            minimum=0,
            maximum=LARGEST_WHOLE,
            step=1000,
            role="running",
            needs=("loader",),
        ),
    ] = AUTO
    phases: Annotated[
        Annotated[tuple[DataPhase, ...], Field(max_length=MOST_PHASES)] | Literal["auto"],
        _of_data("Data phases", "table", families=("transformer",), role="running", needs=("loader",)),
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
