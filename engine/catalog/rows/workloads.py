"""Rows about what people run: models by size alone, workloads on an instance, and sets of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import IDENTIFIES, SHOWN, Row

HOURS_OF_A_MONTH = 720
"""Hours of a month of 30 days, in which instances are compared."""
PERFORMANCE_TAG = "performance_upgrade"
"""The tag of workloads that are to run faster; others are to cost less."""


class ModelSize(Row):
    """A model of which nothing is known but the count of its parameters: a dense decoder of usual proportions."""

    parameter_count_billion: PositiveFloat
    description: Annotated[str, IDENTIFIES] = Field("", description="the range of counts it stands for")
    typical_use_cases: Annotated[tuple[str, ...], SHOWN] = ()
    examples: Annotated[tuple[str, ...], SHOWN] = Field((), description="models of about this size")


class Scenario(BaseModel):
    """What runs now, on what, and for how long."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    current_instance: str = Field(description="id or short name of an instance")
    current_gpu_count: PositiveInt = Field(description="GPUs in use, over all instances")
    workload_type: Literal["train", "finetune", "infer", "batch_infer"]
    model_size: str = Field(description="a size, a model or a count of parameters")
    monthly_hours: float = Field(HOURS_OF_A_MONTH, gt=0, le=744)
    use_spot: bool = False
    precision: str = "fp16"


class Workload(Row):
    """One scenario, with what people expect of moving it."""

    scenario: Scenario
    description: Annotated[str, IDENTIFIES] = ""
    expected_outcome: str | None = Field(None, description="what people expect of moving")
    tags: tuple[str, ...] = ()


class WorkloadSet(Row):
    """Workloads that answer one question together."""

    purpose: str = Field("", description="what question they answer")
    use_case: str = Field("", description="who it is for")
    workloads: tuple[str, ...] = Field(description="ids in the workloads catalogue")
