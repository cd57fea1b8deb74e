"""The part of a plan about the load of what is served: how requests come, how they differ, how they are worked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity_tui.engine.schema import LARGEST_COUNT, Amount, Count, Length, Section

MOST_GUESSED = 64
"""Tokens that are guessed ahead of one pass."""


class LoadFields(Section):
    """Requests that come one by one, in place of one batch that starts together."""

    request_rate: Amount | None = None

    concurrency: Count | None = None

    prompt_tokens_stddev: Annotated[float, Field(ge=0, le=LARGEST_COUNT)] = 0.0

    output_tokens_stddev: Annotated[float, Field(ge=0, le=LARGEST_COUNT)] = 0.0

    prefix_cache_hit_rate: Annotated[float, Field(ge=0, le=1)] = 0.0

    max_num_batched_tokens: Length | None = None

    num_speculative_tokens: Annotated[int, Field(ge=0, le=MOST_GUESSED)] = 0

    acceptance_rate: Annotated[float, Field(ge=0, le=1)] = 0.7

    draft_cost: Annotated[float, Field(ge=0, le=1)] = 0.05

    percentile: Annotated[float, Field(ge=1, le=99.9)] = 95.0
