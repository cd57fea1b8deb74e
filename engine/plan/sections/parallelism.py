"""The part of a plan about spreading a model over devices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity_tui.engine.keys import Key
from capacity_tui.engine.schema.field_meta import Follows, Knob
from capacity_tui.engine.schema.field_types import (
    LARGEST_COUNT,
    NEURAL,
    TRAINED,
    TRANSFORMER,
    AutoCount,
    Count,
    Section,
)

REPLICAS_FOLLOW = Follows(Key.PARALLELISM_DP, "refilled", "replicas fill the devices that the other sizes leave")
GROUPS_FOLLOW = Follows(Key.PARALLELISM_SHARD, "divided", "a sharding group divides the replicas")


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
            role="derived",
            follows=(GROUPS_FOLLOW,),
            needs=("devices",),
            keeps_result=True,
            resolved_from_others=True,
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
            role="setting",
            follows=(
                REPLICAS_FOLLOW,
                GROUPS_FOLLOW,
                Follows(
                    Key.PARALLELISM_SEQUENCE_PARALLEL, "single", "without tensor parallelism nothing is split along"
                ),
            ),
            needs=("devices",),
            keeps_result=True,
            chosen_for=("infer",),
            placeholder=1,
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
            role="setting",
            follows=(
                REPLICAS_FOLLOW,
                GROUPS_FOLLOW,
                Follows(Key.PARALLELISM_INTERLEAVE, "single", "without pipeline stages nothing takes turns"),
            ),
            needs=("devices",),
            keeps_result=True,
            chosen_for=("infer",),
            placeholder=1,
        ),
    ] = None
    cp: Annotated[
        AutoCount,
        Knob(
            "CP",
            "power-of-two",
            "parallelism",
            "",
            1,
            1024,
            automatic=True,
            families=TRANSFORMER,
            tasks=TRAINED,
            role="setting",
            follows=(REPLICAS_FOLLOW, GROUPS_FOLLOW),
            needs=("devices",),
            keeps_result=True,
        ),
    ] = 1
    context: Annotated[
        Literal["ring", "all_to_all", "all_gather"],
        Knob(
            "Context exchange",
            "choice",
            "parallelism",
            choices=("ring", "all_to_all", "all_gather"),
            families=TRANSFORMER,
            tasks=TRAINED,
            role="setting",
            needs=("split sequence",),
            is_wish=True,
            keeps_result=True,
        ),
    ] = "ring"
    ep: Annotated[
        AutoCount,
        Knob(
            "EP",
            "power-of-two",
            "parallelism",
            "",
            1,
            4096,
            automatic=True,
            families=TRANSFORMER,
            role="setting",
            needs=("experts", "devices"),
            is_wish=True,
            keeps_result=True,
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
            role="derived",
            needs=("experts", "devices"),
            keeps_result=True,
            resolved_from_others=True,
        ),
    ] = None
    interleave: Annotated[
        AutoCount,
        Knob(
            "Interleave",
            "integer",
            "parallelism",
            "",
            1,
            64,
            automatic=True,
            families=TRANSFORMER,
            tasks=TRAINED,
            role="setting",
            needs=("stages",),
            is_wish=True,
            keeps_result=True,
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
            tasks=TRAINED,
            broadcasts=True,
            role="setting",
            needs=("replicas",),
            keeps_result=True,
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
            tasks=TRAINED,
            role="setting",
            needs=("replicas", "sharing"),
            keeps_result=True,
            resolved_from_others=True,
        ),
    ] = None
    sequence_parallel: Annotated[
        bool | None,
        Knob(
            "Sequence parallel",
            "switch",
            "parallelism",
            families=TRANSFORMER,
            tasks=TRAINED,
            role="setting",
            needs=("split layers",),
            is_wish=True,
            keeps_result=True,
            resolved_from_others=True,
        ),
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
            tasks=TRAINED,
            role="memory",
            needs=("own memory",),
            is_wish=True,
            keeps_result=True,
        ),
    ] = "none"
