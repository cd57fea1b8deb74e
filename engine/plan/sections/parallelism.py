"""The part of a plan about spreading a model over devices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity_tui.engine.schema import AutoCount, Count, Section


class ParallelismSection(Section):
    """How the model is spread over devices."""

    dp: AutoCount | None = None
    tp: AutoCount | None = None
    pp: AutoCount | None = None
    cp: AutoCount = 1
    context: Literal["ring", "all_to_all", "all_gather"] = "ring"
    ep: AutoCount = 1
    etp: Count | None = None
    interleave: AutoCount = 1
    zero: Annotated[int, Field(ge=0, le=3)] | Literal["auto"] | None = None
    shard: Count | None = None
    sequence_parallel: bool | None = None
    offload: Literal["none", "optimizer", "parameters", "activations", "auto"] = "none"
