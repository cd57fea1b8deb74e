"""The part of a plan about training and fine-tuning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.sections.adapter import FULL, METHOD_NAMED, METHODS, Adapter, kind_of
from capacity_tui.engine.plan.sections.kernels import KernelFields
from capacity_tui.engine.schema.field_meta import Follows, Knob
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
    Length,
    Section,
)

NO_MASTER = "none"
"""What a plan writes for no master weights."""
LENGTHS = ("tokens", "steps", "epochs")
_CHOSEN_ANEW = "what a method needs of memory is chosen anew"
_METHOD_FOLLOWS = (
    Follows(Key.TRAINING_ADAPTER, "adapter", "the method says which adapter there is"),
    Follows(Key.TRAINING_MICRO_BATCH, "open", _CHOSEN_ANEW),
    Follows(Key.TRAINING_CHECKPOINTING, "open", _CHOSEN_ANEW),
    Follows(Key.PARALLELISM_ZERO, "open", _CHOSEN_ANEW),
)


def _other_lengths(given: str) -> tuple[Follows, ...]:
    """Return what the length of a job does to the other ways of giving it."""
    why = f"a job has one length: {', '.join(LENGTHS[:-1])} or {LENGTHS[-1]}"
    return tuple(Follows(f"training.{name}", "replaced", why) for name in LENGTHS if name != given)


class JobFields(Section):
    """What is trained, for how long, in which number formats and by which optimizer."""

    method: Annotated[
        Literal["full", "lora", "qlora", "dora"] | None,
        Knob(
            "Method",
            "choice",
            "model",
            choices=METHODS,
            families=TRANSFORMER,
            tasks=("finetune",),
            role="setting",
            follows=_METHOD_FOLLOWS,
        ),
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
            broadcasts=True,
            role="job",
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
            role="job",
            follows=_other_lengths("tokens"),
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
            broadcasts=True,
            role="setting",
            keeps_result=True,
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
            broadcasts=True,
            role="job",
        ),
    ] = None
    steps: Annotated[
        Count | None,
        Knob(
            "Steps",
            "power-of-two",
            "training",
            "",
            1,
            LARGEST_COUNT,
            families=NEURAL,
            role="job",
            follows=_other_lengths("steps"),
        ),
    ] = None
    epochs: Annotated[
        Amount | None,
        Knob(
            "Epochs",
            "number",
            "training",
            "",
            1,
            LARGEST_COUNT,
            families=NEURAL,
            role="job",
            follows=_other_lengths("epochs"),
        ),
    ] = None
    samples: Annotated[
        Amount | None,
        Knob(
            "Samples",
            "power-of-two",
            "training",
            "",
            1,
            LARGEST_TOKENS,
            families=NEURAL,
            role="job",
            needs=("epochs",),
            is_wish=True,
        ),
    ] = None
    document_tokens: Annotated[
        Length | None,
        Knob(
            "Document",
            "power-of-two",
            "training",
            "tok",
            1,
            LARGEST_COUNT,
            families=TRANSFORMER,
            is_length=True,
            role="job",
        ),
    ] = None
    predicted_tokens: Annotated[
        Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None,
        Knob(
            "Predicted",
            "power-of-two",
            "training",
            "tok",
            0,
            LARGEST_COUNT,
            families=TRANSFORMER,
            role="job",
        ),
    ] = None
    local_batches: Annotated[
        Count,
        Knob(
            "Local batches",
            "integer",
            "training",
            "",
            1,
            LARGEST_COUNT,
            families=TRANSFORMER,
            role="setting",
            needs=("stages",),
            is_wish=True,
            keeps_result=True,
        ),
    ] = 1
    precision: Annotated[
        str,
        Knob(
            "Precision",
            "choice",
            "numerics",
            rows="precision",
            automatic=True,
            families=NEURAL,
            role="setting",
        ),
    ] = "bf16"
    master_weights: Annotated[
        str,
        Knob(
            "Master weights",
            "choice",
            "numerics",
            rows="precision of master weights",
            families=NEURAL,
            role="memory",
            needs=("short numbers",),
            is_wish=True,
        ),
    ] = "fp32"
    gradients: Annotated[
        str | None,
        Knob(
            "Gradients",
            "choice",
            "numerics",
            rows="precision of gradients",
            families=NEURAL,
            role="setting",
        ),
    ] = None
    optimizer: Annotated[
        str,
        Knob(
            "Optimizer",
            "choice",
            "numerics",
            rows="optimizer",
            families=NEURAL,
            role="memory",
        ),
    ] = "adamw"
    learning_rate: Annotated[
        Amount | None,
        Knob(
            "Learning rate",
            "number",
            "numerics",
            families=NEURAL,
            role="surroundings",
            needs=("files",),
        ),
    ] = None


class TrainingSection(KernelFields, JobFields):
    """Training and fine-tuning. A value of ``auto`` is chosen by the mode.

    ``method`` is short for an adapter of that kind: each follows from the other, and both are always there together.
    """

    adapter: Annotated[
        Adapter | None,
        Knob("Adapter", "table", "adapter", families=TRANSFORMER, role="job", follows=METHOD_NAMED, shown=False),
    ] = None
    quantization: Annotated[
        str | None,
        Knob(
            "Base weights",
            "choice",
            "adapter",
            rows="format of frozen weights",
            families=TRANSFORMER,
            tasks=("finetune",),
            role="setting",
            needs=("adapter",),
            is_wish=True,
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
