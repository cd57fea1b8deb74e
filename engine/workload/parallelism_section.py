"""The part of a plan about spreading a model over devices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity_tui.engine.workload.knobs import Knob
from capacity_tui.engine.workload.quantities import (
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
            help="data-parallel replicas",
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
            help="tensor-parallel devices a layer is split over; left out: 1, in serving the least that fits",
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
            help="pipeline stages; left out: 1, in serving the least that fits",
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
            help="context-parallel devices a sequence is split over",
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
            help="devices the experts are spread over, inside dp x cp x tp",
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
            help="tensor-parallel devices of one expert; default 1 with ep, else tp",
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
            help="virtual pipeline stages a device",
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
            help="0 none, 1 optimizer, 2 gradients, 3 parameters (FSDP)",
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
            help="replicas in one sharding group (HSDP); default all of dp",
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
            help="what is kept in host memory",
        ),
    ] = "none"
