"""The part of a plan about serving."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity_tui.engine.plan.sections.load import LoadFields
from capacity_tui.engine.schema.field_meta import Knob
from capacity_tui.engine.schema.field_types import (
    LARGEST_COUNT,
    NEURAL,
    TRANSFORMER,
    AutoCount,
    Duration,
    Length,
    Section,
)

UNQUANTIZED = "bf16"
"""Format of the weights of models that are published without another one."""


class RequestFields(Section):
    """Requests, and the software that answers them."""

    prompt_tokens: Annotated[
        Length,
        Knob(
            "Prompt",
            "power-of-two",
            "inference",
            "tok",
            1,
            LARGEST_COUNT,
            families=TRANSFORMER,
            is_length=True,
            broadcasts=True,
            role="job",
        ),
    ] = 2048
    output_tokens: Annotated[
        Length,
        Knob(
            "Output",
            "power-of-two",
            "inference",
            "tok",
            1,
            LARGEST_COUNT,
            families=TRANSFORMER,
            is_length=True,
            broadcasts=True,
            role="job",
        ),
    ] = 512
    batch: Annotated[
        AutoCount,
        Knob(
            "Batch",
            "power-of-two",
            "inference",
            "seq",
            1,
            65536,
            automatic=True,
            families=NEURAL,
            broadcasts=True,
            role="setting",
            needs=("one batch",),
            keeps_result=True,
        ),
    ] = 1
    weights: Annotated[
        str | None,
        Knob(
            "Weights",
            "choice",
            "inference",
            rows="format of weights",
            families=NEURAL,
            automatic=True,
            role="setting",
            resolved_from_others=True,
        ),
    ] = None
    kv_cache: Annotated[
        str,
        Knob(
            "KV cache",
            "choice",
            "inference",
            rows="format of the cache",
            families=TRANSFORMER,
            automatic=True,
            role="setting",
        ),
    ] = "fp16"
    ttft_seconds: Annotated[
        Duration | None,
        Knob(
            "TTFT limit",
            "number",
            "inference",
            "s",
            0.05,
            LARGEST_COUNT,
            0.5,
            families=TRANSFORMER,
            role="job",
        ),
    ] = None
    tpot_seconds: Annotated[
        Duration | None,
        Knob(
            "TPOT limit",
            "number",
            "inference",
            "s",
            0.001,
            LARGEST_COUNT,
            0.01,
            families=TRANSFORMER,
            role="job",
        ),
    ] = None
    engine: Annotated[
        str,
        Knob(
            "Engine",
            "choice",
            "inference",
            rows="engine",
            families=NEURAL,
            role="surroundings",
            needs=("served",),
        ),
    ] = "transformers"
    gpu_memory_utilization: Annotated[
        float,
        Field(gt=0, le=1),
        Knob(
            "Memory share",
            "number",
            "inference",
            "",
            0.1,
            1,
            0.05,
            families=TRANSFORMER,
            role="setting",
            needs=("claim",),
            is_wish=True,
            keeps_result=True,
        ),
    ] = 0.9
    gpu_layers: Annotated[
        Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None,
        Knob(
            "GPU layers",
            "integer",
            "inference",
            "",
            0,
            1000,
            families=TRANSFORMER,
            role="memory",
            needs=("accelerator",),
            is_wish=True,
            keeps_result=True,
        ),
    ] = None


class InferenceSection(LoadFields, RequestFields):
    """Serving: one batch of requests that start together, or a load of requests that come one by one."""

    @property
    def weights_format(self) -> str:
        """Format of the weights of a settled plan; 16 bits where it serves none."""
        return self.weights or UNQUANTIZED
