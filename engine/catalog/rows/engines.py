"""Rows about inference engines: what each does with kernels and time, and what it keeps in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import Row

Share = Annotated[float, Field(gt=0, le=2.5)]
MemoryPolicy = Literal["needed", "share", "free"]


class InferenceEngine(Row):
    """What an inference engine does with kernels, bandwidth and memory; one row a back end."""

    engine: str = Field(description="name in plan files")
    vendors: tuple[str, ...] = Field((), description="makers of devices the row is for; the rest where empty")
    kernels: Mapping[str, str] = Field(
        description="kernels that read each format or family of formats of weights: plain, and packed for all others"
    )
    kernels_per_layer: PositiveFloat = Field(description="kernels of one layer's forward pass")
    expert_kernels: NonNegativeFloat = Field(
        0.0, description="kernels of each expert of a layer, active or not, 0 where products of experts are grouped"
    )
    kernel_gap: NonNegativeFloat = Field(description="idle time between kernels, in launch times of the device")
    host_us: NonNegativeFloat = Field(description="host time of one launch, microseconds; 0 in a captured graph")
    step_us: NonNegativeFloat = Field(description="fixed time of a forward pass: scheduling, sampling, microseconds")
    sequence_us: NonNegativeFloat = Field(
        0.0, description="host time of a forward pass for each sequence in it, microseconds"
    )
    sequence_overlap: float = Field(0.0, ge=0, le=1, description="share of a pass on the device in which that is done")
    cache_bandwidth: Share = Field(description="share of reachable bandwidth, reading keys and values")
    cache_copies: NonNegativeFloat = Field(
        0.0, description="passes over the whole cache that a step makes to append to it, reads and writes"
    )
    repeats_heads: bool = Field(False, description="keys and values are written out for every head of queries first")
    block_per_head: bool = Field(False, description="one multiprocessor attends for a head, however long the context")
    attention_prefill: Share = Field(description="share of the reachable rate of fused attention")
    score_passes: NonNegativeFloat = Field(0.0, description="memory passes over stored attention scores, 0 where fused")
    elementwise_passes: PositiveFloat = Field(description="memory passes relative to one kernel an operation")
    chunk_tokens: PositiveInt | None = Field(None, description="most tokens of one forward pass in prefill")
    slots: PositiveInt | None = Field(None, description="requests it takes up at once by default; none sets no end")
    mixes_prefill: bool = Field(False, description="a pass holds chunks of prompts beside the next tokens of others")
    stage_us: NonNegativeFloat = Field(description="time to hand over to the next pipeline stage, microseconds")
    stage_overlap: float = Field(0.0, ge=0, le=1, description="share of prefill in which stages work side by side")
    activation_bytes: PositiveFloat = Field(description="of one element of the residual stream")
    logit_rows: NonNegativeFloat = Field(0.0, description="prompt positions that get logits: 0 the last, 1 all")
    block_tokens: PositiveInt = Field(description="tokens in one block of the cache")
    reserved_output: float = Field(
        1.0, ge=0, le=1, description="share of an answer for which the cache has room before its request runs"
    )
    memory_policy: MemoryPolicy = Field(
        description="device memory it takes: what it needs, a share of all, a share of the free"
    )
    whole_heads: bool = Field(True, description="tensor parallelism splits between heads, and has to divide them")
    splits_layers: bool = Field(
        True, description="it splits layers over devices where nothing is said; else they hold whole layers each"
    )
    workspace_mib: NonNegativeFloat = Field(description="kernel workspaces and captured graphs, MiB")
    fragmentation: NonNegativeFloat = Field(description="allocator's surplus over its peak, share")
    lighter_weights: tuple[str, ...] = Field((), description="weight formats to advise, the least quantized first")
    lighter_cache: str | None = Field(None, description="cache format to advise in place of 16 bits")
    tried_weights: tuple[str, ...] = Field((), description="weight formats modes choose from, likewise")
    faster_engine: str | None = Field(None, description="engine to advise on accelerators in its place")
    embedding_on_host: bool = Field(False, description="the token embedding stays in host memory")
