"""The part of a plan about how a training step is computed: kernels, what they keep, which software."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator

from capacity_tui.engine.models.checkpointing import checkpointing_name
from capacity_tui.engine.schema.field_meta import Knob
from capacity_tui.engine.schema.field_types import NETWORK, NEURAL, TRANSFORMER, Count, Section


class KernelFields(Section):
    """How a training step is computed; the same result whatever is chosen here, but for routing."""

    attention: Annotated[
        str,
        Knob(
            "Attention",
            "choice",
            "kernels",
            rows="attention kernel",
            families=TRANSFORMER,
            role="setting",
            keeps_result=True,
        ),
    ] = "flash"
    checkpointing: Annotated[
        str,
        BeforeValidator(checkpointing_name),
        Knob(
            "Checkpointing",
            "choice",
            "kernels",
            rows="checkpointing",
            automatic=True,
            families=NEURAL,
            role="setting",
            keeps_result=True,
        ),
    ] = "none"
    compile: Annotated[
        bool,
        Knob(
            "Compile",
            "switch",
            "kernels",
            families=NEURAL,
            role="setting",
            keeps_result=True,
        ),
    ] = False
    memory_format: Annotated[
        Literal["channels_last", "channels_first"] | None,
        Knob(
            "Memory format",
            "choice",
            "kernels",
            choices=("channels_last", "channels_first"),
            families=NETWORK,
            role="setting",
            needs=("images",),
            keeps_result=True,
        ),
    ] = None
    cuda_graphs: Annotated[
        bool,
        Knob(
            "CUDA graphs",
            "switch",
            "kernels",
            families=TRANSFORMER,
            role="setting",
            keeps_result=True,
        ),
    ] = False
    loss: Annotated[
        Literal["standard", "chunked", "fused"] | None,
        Knob(
            "Loss",
            "choice",
            "kernels",
            choices=("standard", "chunked", "fused"),
            families=TRANSFORMER,
            role="setting",
            keeps_result=True,
        ),
    ] = None
    sequence_tiles: Annotated[
        Count,
        Knob(
            "Sequence tiles",
            "power-of-two",
            "kernels",
            "",
            1,
            1024,
            families=TRANSFORMER,
            role="memory",
            keeps_result=True,
        ),
    ] = 1
    activation_offload: Annotated[
        Literal["none", "all"],
        Knob(
            "Activation offload",
            "choice",
            "kernels",
            choices=("none", "all"),
            families=TRANSFORMER,
            role="memory",
            keeps_result=True,
        ),
    ] = "none"
    routing: Annotated[
        Literal["balanced", "natural"],
        Knob(
            "Routing",
            "choice",
            "kernels",
            choices=("balanced", "natural"),
            families=TRANSFORMER,
            role="surroundings",
            needs=("experts",),
            is_wish=True,
        ),
    ] = "balanced"
    framework: Annotated[
        str | None,
        Knob(
            "Framework",
            "choice",
            "kernels",
            rows="framework",
            families=NEURAL,
            role="surroundings",
            keeps_result=True,
        ),
    ] = None
