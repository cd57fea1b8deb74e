"""The part of a plan about serving."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity_tui.engine.plan.sections.load import LoadFields
from capacity_tui.engine.schema import LARGEST_COUNT, AutoCount, Duration, Length, Section

UNQUANTIZED = "bf16"
"""Format of the weights of models that are published without another one."""


class RequestFields(Section):
    """Requests, and the software that answers them."""

    prompt_tokens: Length = 2048
    output_tokens: Length = 512
    batch: AutoCount = 1
    weights: str | None = None
    kv_cache: str = "fp16"
    ttft_seconds: Duration | None = None
    tpot_seconds: Duration | None = None
    engine: str = "transformers"
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9
    gpu_layers: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = None


class InferenceSection(LoadFields, RequestFields):
    """Serving: one batch of requests that start together, or a load of requests that come one by one."""

    @property
    def weights_format(self) -> str:
        """Format of the weights of a settled plan; 16 bits where it serves none."""
        return self.weights or UNQUANTIZED
