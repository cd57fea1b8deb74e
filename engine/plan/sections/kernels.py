"""The part of a plan about how a training step is computed: kernels, what they keep, which software."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator

from capacity_tui.engine.models import checkpointing_name
from capacity_tui.engine.schema import Count, Section


class KernelFields(Section):
    """How a training step is computed; the same result whatever is chosen here, but for routing."""

    attention: str = "flash"
    checkpointing: Annotated[str, BeforeValidator(checkpointing_name)] = "none"
    compile: bool = False
    memory_format: Literal["channels_last", "channels_first"] | None = None
    cuda_graphs: bool = False
    loss: Literal["standard", "chunked", "fused"] | None = None
    sequence_tiles: Count = 1
    activation_offload: Literal["none", "all"] = "none"
    routing: Literal["balanced", "natural"] = "balanced"
    framework: str | None = None
