"""Rows about devices of clusters as they were measured there: what stands in place of the constants of their kind."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from capacity_tui.engine.catalog.rows.base import Row


class MeasuredCurve(BaseModel):
    """Speed of one kind of kernel at sampled sizes."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = Field(description="kind of kernel, with the type of compute-bound ones")
    sizes: tuple[PositiveFloat, ...] = Field(min_length=1, description="FLOPs or bytes of a run, ascending")
    ratios: tuple[PositiveFloat, ...] = Field(min_length=1, description="measured over modelled rate at each size")

    @model_validator(mode="after")
    def _has_a_ratio_for_each_size(self) -> Self:
        if len(self.sizes) != len(self.ratios) or list(self.sizes) != sorted(self.sizes):
            raise ValueError(f"{self.name}: sizes ascend, and each has its ratio")
        return self


class MeasuredError(BaseModel):
    """How well constants describe what they were fitted to."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str
    count: PositiveInt = Field(description="samples")
    median: NonNegativeFloat = Field(description="median relative error of the fit")
    worst: NonNegativeFloat = Field(description="largest relative error")
    interpolated: NonNegativeFloat | None = Field(None, description="median error between the samples")


class MeasuredDevice(Row):
    """The devices of one kind of node of a cluster, as kernels ran on one of them."""

    cluster: str = Field(description="id of the cluster")
    device: str = Field(description="id of an accelerator, or name and cores of a processor")
    software: dict[str, str] = Field(description="versions by name")
    gemm: dict[str, PositiveFloat] = Field(default_factory=dict, description="share of the peak of products, by type")
    constants: dict[str, PositiveFloat] = Field(default_factory=dict, description="other constants, by name")
    curves: tuple[MeasuredCurve, ...] = ()
    errors: tuple[MeasuredError, ...] = ()
