"""The part of a plan about spreading a model over devices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity_tui.engine.schema.field_meta import Knob
from capacity_tui.engine.schema.field_types import (
    LARGEST_COUNT,
    NEURAL,
    TRANSFORMER,
    AutoCount,
    Count,
    Section,
)


class ParallelismSection(Section):
    """How the model is spread over devices."""

    dp: Annotated[
        AutoCount | None,
        Knob(
            "DP",
            "power-of-two",
            "parallelism",
            "",
            1,
            LARGEST_COUNT,
            automatic=True,
            families=NEURAL,
        ),
    ] = None
    tp: Annotated[
        AutoCount | None,
        Knob(
            "TP",
            "power-of-two",
            "parallelism",
            "",
            1,
            1024,
            automatic=True,
            families=TRANSFORMER,
        ),
    ] = None
    pp: Annotated[
        AutoCount | None,
        Knob(
            "PP",
            "power-of-two",
            "parallelism",
            "",
            1,
            1024,
            automatic=True,
            families=TRANSFORMER,
        ),
    ] = None
    cp: Annotated[
        Count,
        Knob(
            "CP",
            "power-of-two",
            "parallelism",
            "",
            1,
            1024,
            families=TRANSFORMER,
        ),
    ] = 1
    ep: Annotated[
        Count,
        Knob(
            "EP",
            "power-of-two",
            "parallelism",
            "",
            1,
            4096,
            families=TRANSFORMER,
        ),
    ] = 1
    etp: Annotated[
        Count | None,
        Knob(
            "Expert TP",
            "power-of-two",
            "parallelism",
            "",
            1,
            1024,
            families=TRANSFORMER,
        ),
    ] = None
    interleave: Annotated[
        Count,
        Knob(
            "Interleave",
            "integer",
            "parallelism",
            "",
            1,
            64,
            families=TRANSFORMER,
        ),
    ] = 1
    zero: Annotated[
        Annotated[int, Field(ge=0, le=3)] | Literal["auto"] | None,
        Knob(
            "ZeRO",
            "choice",
            "parallelism",
            choices=("0", "1", "2", "3"),
            automatic=True,
            families=NEURAL,
        ),
    ] = None
    shard: Annotated[
        Count | None,
        Knob(
            "Shard group",
            "power-of-two",
            "parallelism",
            "",
            1,
            LARGEST_COUNT,
            families=NEURAL,
        ),
    ] = None
    sequence_parallel: Annotated[
        bool | None, Knob("Sequence parallel", "switch", "parallelism", families=TRANSFORMER)
    ] = None
    offload: Annotated[
        Literal["none", "optimizer", "parameters", "activations", "auto"],
        Knob(
            "Offload",
            "choice",
            "parallelism",
            choices=("none", "optimizer", "parameters", "activations"),
            automatic=True,
            families=NEURAL,
        ),
    ] = "none"
