"""The part of a plan about the load of what is served: how requests come, how they differ, how they are worked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity_tui.engine.schema.field_meta import Knob
from capacity_tui.engine.schema.field_types import LARGEST_COUNT, TRANSFORMER, Amount, Count, Length, Section

MOST_GUESSED = 64
"""Tokens that are guessed ahead of one pass."""


class LoadFields(Section):
    """Requests that come one by one, in place of one batch that starts together."""

    request_rate: Annotated[
        Amount | None,
        Knob(
            "Request rate",
            "number",
            "load",
            "req/s",
            0.1,
            LARGEST_COUNT,
            1,
            families=TRANSFORMER,
            role="job",
        ),
    ] = None

    concurrency: Annotated[
        Count | None,
        Knob(
            "Concurrency",
            "power-of-two",
            "load",
            "req",
            1,
            LARGEST_COUNT,
            1,
            families=TRANSFORMER,
            role="job",
        ),
    ] = None

    prompt_tokens_stddev: Annotated[
        float,
        Field(ge=0, le=LARGEST_COUNT),
        Knob(
            "Prompt spread",
            "number",
            "load",
            "tok",
            0,
            LARGEST_COUNT,
            64,
            families=TRANSFORMER,
            role="job",
            needs=("load",),
        ),
    ] = 0.0

    output_tokens_stddev: Annotated[
        float,
        Field(ge=0, le=LARGEST_COUNT),
        Knob(
            "Output spread",
            "number",
            "load",
            "tok",
            0,
            LARGEST_COUNT,
            64,
            families=TRANSFORMER,
            role="job",
        ),
    ] = 0.0

    prefix_cache_hit_rate: Annotated[
        float,
        Field(ge=0, le=1),
        Knob(
            "Prefix hit rate",
            "number",
            "load",
            "",
            0,
            1,
            0.1,
            families=TRANSFORMER,
            role="surroundings",
        ),
    ] = 0.0

    max_num_batched_tokens: Annotated[
        Length | None,
        Knob(
            "Tokens a pass",
            "power-of-two",
            "load",
            "tok",
            16,
            LARGEST_COUNT,
            1,
            families=TRANSFORMER,
            role="setting",
            is_length=True,
            keeps_result=True,
        ),
    ] = None

    num_speculative_tokens: Annotated[
        int,
        Field(ge=0, le=MOST_GUESSED),
        Knob(
            "Guessed tokens",
            "integer",
            "load",
            "",
            0,
            MOST_GUESSED,
            1,
            families=TRANSFORMER,
            role="surroundings",
        ),
    ] = 0

    acceptance_rate: Annotated[
        float,
        Field(ge=0, le=1),
        Knob(
            "Acceptance rate",
            "number",
            "load",
            "",
            0,
            1,
            0.05,
            families=TRANSFORMER,
            role="surroundings",
            needs=("guessing",),
        ),
    ] = 0.7

    draft_cost: Annotated[
        float,
        Field(ge=0, le=1),
        Knob(
            "Draft cost",
            "number",
            "load",
            "",
            0,
            1,
            0.01,
            families=TRANSFORMER,
            role="surroundings",
            needs=("guessing",),
        ),
    ] = 0.05

    percentile: Annotated[
        float,
        Field(ge=1, le=99.9),
        Knob(
            "Percentile",
            "number",
            "load",
            "%",
            1,
            99.9,
            1,
            families=TRANSFORMER,
            role="output",
            needs=("load",),
        ),
    ] = 95.0
