"""The part of a plan about the data of a training: how they are stored, where they are, how they reach the devices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from capacity_tui.engine.schema import AUTO, Amount, AutoWholeNumber, Section, SpecValue, WholeNumber

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

    format: str = AUTO
    source: Literal["auto", "local", "network", "bucket", "streaming"] = "local"
    read_gbs: Annotated[float, Field(gt=0, le=MOST_GBS)] | None = None
    unique_tokens: Amount | None = None
    cache: Literal["auto", "ram", "nvme", "disk", "none"] = AUTO
    workers: Annotated[WholeNumber, Field(le=MOST_WORKERS)] | Literal["auto"] = AUTO
    prefetch: Annotated[WholeNumber, Field(le=MOST_WORKERS)] | Literal["auto"] = AUTO
    shuffle_buffer: AutoWholeNumber = AUTO
    phases: Annotated[tuple[DataPhase, ...], Field(max_length=MOST_PHASES)] | Literal["auto"] = ()

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
