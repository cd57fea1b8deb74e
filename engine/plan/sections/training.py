"""The part of a plan about training and fine-tuning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from capacity_tui.engine.plan.sections.adapter import FULL, METHODS, Adapter, kind_of
from capacity_tui.engine.plan.sections.kernels import KernelFields
from capacity_tui.engine.schema import LARGEST_COUNT, Amount, AutoAmount, AutoCount, AutoLength, Count, Length, Section

NO_MASTER = "none"
"""What a plan writes for no master weights."""
LENGTHS = ("tokens", "steps", "epochs")


class JobFields(Section):
    """What is trained, for how long, in which number formats and by which optimizer."""

    method: Literal["full", "lora", "qlora", "dora"] | None = None
    seq_len: AutoLength = 2048
    tokens: AutoAmount | None = None
    micro_batch: AutoCount = 1
    global_batch: AutoCount | None = None
    steps: Count | None = None
    epochs: Amount | None = None
    samples: Amount | None = None
    document_tokens: Length | None = None
    predicted_tokens: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = None
    local_batches: Count = 1
    precision: str = "bf16"
    master_weights: str = "fp32"
    gradients: str | None = None
    optimizer: str = "adamw"
    learning_rate: Amount | None = None


class TrainingSection(KernelFields, JobFields):
    """Training and fine-tuning. A value of ``auto`` is chosen by the mode.

    ``method`` is short for an adapter of that kind: each follows from the other, and both are always there together.
    """

    adapter: Adapter | None = None
    quantization: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _method_is_adapter(cls, data: object) -> object:
        """Let the method make the adapter, or the adapter name the method."""
        if not isinstance(data, dict):
            return data
        method, adapter = data.get("method"), data.get("adapter")
        if method is None:
            kind = kind_of(adapter, "lora")
            return data if adapter is None or kind not in METHODS else {**data, "method": kind}
        if method == FULL and adapter is not None:
            raise ValueError("method full trains all weights: leave the adapter out")
        if method == FULL or method not in METHODS:
            return data
        if kind_of(adapter, method) != method:
            raise ValueError(f"method and adapter.kind differ: {method} and {kind_of(adapter, method)}")
        return {
            **data,
            "adapter": {**adapter, "kind": method} if isinstance(adapter, dict) else adapter or {"kind": method},
        }

    @model_validator(mode="after")
    def _one_length(self) -> TrainingSection:
        given = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give only one of tokens, steps and epochs, not {' and '.join(given)}")
        return self
