"""The part of a plan about training and fine-tuning."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, model_validator

from capacity_tui.engine.workload.checkpointing import parse_checkpointing
from capacity_tui.engine.workload.knobs import Knob
from capacity_tui.engine.workload.quantities import (
    LARGEST_COUNT,
    LARGEST_TOKENS,
    NEURAL,
    TRANSFORMER,
    Amount,
    AutoAmount,
    AutoCount,
    Count,
    Precision,
    Section,
)


class Adapter(Section):
    """Low-rank adapters: only they are trained."""

    kind: Annotated[
        Literal["lora", "qlora", "dora"],
        Knob("Adapter", "choice", "adapter", choices=("lora", "qlora", "dora"), families=TRANSFORMER),
    ] = "lora"
    rank: Annotated[Count, Knob("Rank", "power-of-two", "adapter", minimum=1, maximum=1024, families=TRANSFORMER)] = 16
    targets: Annotated[
        Literal["all", "attention", "mlp", "query+value"],
        Knob(
            "Targets",
            "choice",
            "adapter",
            choices=("all", "attention", "mlp", "query+value"),
            families=TRANSFORMER,
            help="which matrices carry an adapter",
        ),
    ] = "all"


class TrainingSection(Section):
    """Training and fine-tuning. A value of ``auto`` is chosen by the mode."""

    seq_len: Annotated[
        AutoCount,
        Knob(
            "Sequence",
            "power-of-two",
            "training",
            "tok",
            16,
            2**24,
            automatic=True,
            families=TRANSFORMER,
            help="tokens in one training sequence",
        ),
    ] = 2048
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
            help="sequences per model replica in one forward pass",
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
            help="sequences per optimizer step over all replicas",
        ),
    ] = None
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
            help="tokens to train on; auto follows the mode's ratio to the parameters",
        ),
    ] = None
    steps: Annotated[Count | None, Knob("Steps", "power-of-two", "training", families=NEURAL)] = None
    epochs: Annotated[Amount | None, Knob("Epochs", "number", "training", families=NEURAL)] = None
    samples: Annotated[Amount | None, Knob("Samples", "power-of-two", "training", families=NEURAL)] = None
    precision: Annotated[
        Precision | Literal["auto"],
        Knob(
            "Precision",
            "choice",
            "numerics",
            choices=get_args(Precision),
            automatic=True,
            families=NEURAL,
            help="type in which matrices are multiplied",
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
            help="fp32 copy of the weights kept by the optimizer",
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
            help="type in which gradients are kept and reduced",
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
            help="which activations are recomputed in the backward pass",
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
            help="how the frozen base is stored, with qlora",
        ),
    ] = None

    @model_validator(mode="after")
    def _one_length(self) -> TrainingSection:
        given = [name for name in ("tokens", "steps", "epochs") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give only one of tokens, steps and epochs, not {' and '.join(given)}")
        return self
