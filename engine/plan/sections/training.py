"""The part of a plan about training and fine-tuning."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, model_validator

from capacity_tui.engine.models.checkpointing import parse_checkpointing
from capacity_tui.engine.schema.field_meta import Knob
from capacity_tui.engine.schema.field_types import (
    LARGEST_COUNT,
    LARGEST_TOKENS,
    NEURAL,
    TRANSFORMER,
    Amount,
    AutoAmount,
    AutoCount,
    AutoLength,
    Count,
    Precision,
    Section,
)

FULL = "full"
METHODS = (FULL, "lora", "qlora", "dora")


class Adapter(Section):
    """Low-rank adapters: only they are trained."""

    kind: Literal["lora", "qlora", "dora"] = "lora"
    rank: Annotated[Count, Knob("Rank", "power-of-two", "adapter", minimum=1, maximum=1024, families=TRANSFORMER)] = 16
    targets: Annotated[
        Literal["all", "attention", "mlp", "query+value"],
        Knob(
            "Targets",
            "choice",
            "adapter",
            choices=("all", "attention", "mlp", "query+value"),
            families=TRANSFORMER,
        ),
    ] = "all"


class TrainingSection(Section):
    """Training and fine-tuning. A value of ``auto`` is chosen by the mode.

    ``method`` is short for an adapter of that kind: each follows from the other, and both are always there together.
    """

    method: Annotated[
        Literal["full", "lora", "qlora", "dora"] | None,
        Knob("Method", "choice", "model", choices=METHODS, families=TRANSFORMER, tasks=("finetune",)),
    ] = None
    seq_len: Annotated[
        AutoLength,
        Knob(
            "Sequence",
            "power-of-two",
            "training",
            "tok",
            16,
            LARGEST_COUNT,
            automatic=True,
            families=TRANSFORMER,
            is_length=True,
        ),
    ] = 2048
    tokens: Annotated[
        AutoAmount | None,
        Knob(
            "Tokens",
            "power-of-two",
            "training",
            "tok",
            1,
            LARGEST_TOKENS,
            automatic=True,
            families=TRANSFORMER,
        ),
    ] = None
    micro_batch: Annotated[
        AutoCount,
        Knob(
            "Micro batch",
            "power-of-two",
            "training",
            "seq",
            1,
            65536,
            automatic=True,
            families=NEURAL,
        ),
    ] = 1
    global_batch: Annotated[
        AutoCount | None,
        Knob(
            "Global batch",
            "power-of-two",
            "training",
            "seq",
            1,
            LARGEST_COUNT,
            automatic=True,
            families=NEURAL,
        ),
    ] = None
    steps: Annotated[Count | None, Knob("Steps", "power-of-two", "training", "", 1, LARGEST_COUNT, families=NEURAL)] = (
        None
    )
    epochs: Annotated[Amount | None, Knob("Epochs", "number", "training", "", 1, LARGEST_COUNT, families=NEURAL)] = None
    samples: Annotated[
        Amount | None, Knob("Samples", "power-of-two", "training", "", 1, LARGEST_TOKENS, families=NEURAL)
    ] = None
    precision: Annotated[
        Precision | Literal["auto"],
        Knob(
            "Precision",
            "choice",
            "numerics",
            choices=get_args(Precision),
            automatic=True,
            families=NEURAL,
        ),
    ] = "bf16"
    master_weights: Annotated[
        Literal["fp32", "none"],
        Knob(
            "Master weights",
            "choice",
            "numerics",
            choices=("fp32", "none"),
            families=NEURAL,
        ),
    ] = "fp32"
    gradients: Annotated[
        Literal["fp32", "bf16", "fp16"] | None,
        Knob(
            "Gradients",
            "choice",
            "numerics",
            choices=("fp32", "bf16", "fp16"),
            families=NEURAL,
        ),
    ] = None
    optimizer: Annotated[str, Knob("Optimizer", "choice", "numerics", families=NEURAL)] = "adamw"
    learning_rate: Annotated[Amount | None, Knob("Learning rate", "number", "numerics", families=NEURAL)] = None
    attention: Annotated[
        Literal["flash", "sdpa", "eager"],
        Knob("Attention", "choice", "kernels", choices=("flash", "sdpa", "eager"), families=TRANSFORMER),
    ] = "flash"
    checkpointing: Annotated[
        str,
        BeforeValidator(parse_checkpointing),
        Knob(
            "Checkpointing",
            "choice",
            "kernels",
            choices=("none", "selective", "selective-ops", "every-2", "full"),
            automatic=True,
            families=NEURAL,
        ),
    ] = "none"
    compile: Annotated[bool, Knob("Compile", "switch", "kernels", families=NEURAL)] = False
    framework: Annotated[str | None, Knob("Framework", "choice", "kernels", families=NEURAL)] = None
    adapter: Adapter | None = None
    quantization: Annotated[
        str | None,
        Knob(
            "Base weights",
            "choice",
            "adapter",
            choices=("nf4", "int8", "fp8"),
            families=TRANSFORMER,
            tasks=("finetune",),
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _method_is_adapter(cls, data: object) -> object:
        """Let the method make the adapter, or the adapter name the method."""
        if not isinstance(data, dict):
            return data
        method, adapter = data.get("method"), data.get("adapter")
        if method is None:
            kind = _kind_of(adapter, "lora")
            return data if adapter is None or kind not in METHODS else {**data, "method": kind}
        if method == FULL and adapter is not None:
            raise ValueError("method full trains all weights: leave the adapter out")
        if method == FULL or method not in METHODS:
            return data
        if _kind_of(adapter, method) != method:
            raise ValueError(f"method and adapter.kind differ: {method} and {_kind_of(adapter, method)}")
        return {
            **data,
            "adapter": {**adapter, "kind": method} if isinstance(adapter, dict) else adapter or {"kind": method},
        }

    @model_validator(mode="after")
    def _one_length(self) -> TrainingSection:
        given = [name for name in ("tokens", "steps", "epochs") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give only one of tokens, steps and epochs, not {' and '.join(given)}")
        return self


def adapter_of(method: object) -> Adapter | None:
    """Return the usual adapter of a method; none where all weights are trained."""
    return None if method in (None, FULL) else Adapter.model_validate({"kind": method})


def _kind_of(adapter: object, otherwise: object) -> object:
    """Return the kind of an adapter as given; another where it gives none."""
    if isinstance(adapter, Adapter):
        return adapter.kind
    return adapter.get("kind", otherwise) if isinstance(adapter, dict) else otherwise
