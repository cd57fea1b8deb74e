"""Memory of serving a transformer on the fullest device, every part by its own equation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.memory_estimate import context_bytes
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.models.transformer import cache_elements
from capacity_tui.engine.numeric import Number, added, any_true, largest, where
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP32_BYTES

LOGIT_BYTES = FP32_BYTES


@dataclass(frozen=True, slots=True)
class ServingMemory:
    """Bytes on the fullest device at its peak."""

    parts: Mapping[str, Number]  # bytes inside the engine's allocator, by part
    host: Number  # bytes in host memory


weight_bytes = formula()
further_weight_bytes = formula()
all_weight_bytes = formula()
kv_cache_bytes = formula()
rounded_up = formula()  # Tokens a paged cache sets aside for a sequence
activation_bytes = formula()


@equation
def logit_bytes(rows: Number, vocab: Number, tp: Number) -> Number:
    return rows * vocab / tp * LOGIT_BYTES


@equation
def claimed_bytes(capacity: Number, share: Number, needed: Number, claims_free: Number) -> Number:
    """Device memory an engine takes for itself, most of it for the cache."""
    return np.where(claims_free > 0, needed + share * (capacity - needed), share * capacity)


workspace_bytes = formula()
host_bytes = formula()


def tokens_per_pass(run: ServingRun) -> Number:
    """Tokens of one forward pass of prefill: the whole batch, under a load a prompt beside it, or the chunk."""
    tokens = run.fresh + run.batch if run.traffic.comes_singly else run.batch * run.fresh
    chunk = run.runtime.chunk_tokens
    return np.where(chunk > 0, np.minimum(chunk, tokens), tokens)


def _ends(run: ServingRun) -> tuple[Number, Number]:
    """Bytes of embedding and head on the fullest stage, and of what stays in host memory."""
    numerics = run.numerics
    counts = run.counts
    tied = run.shape.tied_embeddings
    entry_bytes = numerics.head_bytes if tied else numerics.embedding_bytes
    entry = (counts.token_embedding + counts.position_embedding) * entry_bytes
    other = (counts.final + counts.extra + counts.encoder + counts.other_weights) * numerics.body_bytes
    on_host = run.runtime.embedding_on_host * entry
    first = entry - on_host + other
    last = run.head_weights * numerics.head_bytes
    alone = first + (last * run.runtime.embedding_on_host if tied else last)
    return np.where(run.layout.pp > 1, np.maximum(first, last), alone), on_host


def serving_memory(run: ServingRun) -> ServingMemory:
    """Memory of the fullest device when every sequence has reached its full length."""
    layout, numerics = run.layout, run.numerics
    shape, shards = run.shape, layout.ep * layout.etp
    ends, embedding = _ends(run)
    parameters = run.counts.dense_per_layer, run.experts_per_layer
    held_experts = run.experts_per_layer * (1.0 - run.host.experts)
    weights = weight_bytes(
        run.fullest_layers, parameters[0], held_experts, layout.tp, shards, numerics.body_bytes, ends
    )
    others, draft = run.adapters, run.guessing.draft_parameters
    if any_true(others.number > 0) or any_true(draft > 0):
        adapter = (others.parameters + others.experts * layout.tp / shards) / layout.pp
        further = further_weight_bytes(others.number, adapter, draft, layout.tp, numerics.element_bytes)
        weights = all_weight_bytes(weights, further)
    context = rounded_up(run.held_length, run.runtime.block_tokens)
    elements = cache_elements(shape, context)
    held = (1.0 - run.host.share) * elements
    cache = kv_cache_bytes(run.batch, held, numerics.cache_bytes, run.cache_shards, layout.pp)
    tokens = tokens_per_pass(run)
    query = shape.heads * shape.head_dim + 2.0 * shape.kv_heads * shape.head_dim
    # A gated feed-forward holds both products and what they make together; a plain one its product before and after.
    widest = np.maximum(query, (2 + shape.gated) * run.shape.active_ffn) / layout.tp
    rows = run.batch + run.runtime.logit_rows * np.maximum(tokens - run.batch, 0.0)
    parts = {
        "weights": weights,
        "kv_cache": cache,
        "activations": activation_bytes(tokens, numerics.element_bytes, shape.hidden, widest),
        "logits": logit_bytes(rows, shape.vocab, layout.tp),
        "buffers": workspace_bytes(run.runtime.workspace_bytes) + 0.0 * weights,
    }
    # Devices of a replica share what it keeps in host memory.
    away = run.host.share / (layout.tp * layout.pp)
    apart = (1.0 - run.host.share) / (layout.tp * layout.pp) * run.host.experts
    offloaded = away * shape.layers * (parameters[0] + parameters[1]) * numerics.body_bytes
    experts = apart * shape.layers * run.experts_per_layer * numerics.body_bytes
    host_cache = away * run.batch * elements * numerics.cache_bytes
    return ServingMemory(parts, host_bytes(embedding, offloaded, experts, host_cache))


# Result keys of what an engine takes beyond its need.
CLAIMED, SEQUENCES = "inference.claimed_bytes", "inference.sequences_in_cache"


def outside_bytes(run: ServingRun) -> Number:
    """Bytes of driver context, or of an engine's own process on a processor, and communication buffers."""
    layout, process = run.layout, run.runtime.process_bytes
    groups = (layout.tp > 1) * 1.0 + (layout.pp > 1) * 1.0 + (layout.ep > 1) * 1.0
    efficiency = run.cluster.device.efficiency
    driver = efficiency.context_bytes
    if run.cluster.device.is_processor:
        driver = where(process > 0, process, driver)
    return context_bytes(driver, efficiency.communicator_bytes, groups)


def reserved_bytes(run: ServingRun, memory: ServingMemory) -> Number:
    """Bytes of a device that a batch needs: of its parts, lost to fragmentation, outside the allocator."""
    return added(memory.parts.values()) * (1.0 + run.runtime.fragmentation) + outside_bytes(run)


def claim(run: ServingRun, memory: ServingMemory) -> Mapping[str, Number]:
    """Return what an engine takes beyond its need, and how many sequences fit into that; empty where it takes none."""
    if run.cluster.device.memory_bytes is None or not any_true(run.runtime.claim > 0):
        return {}
    taken, sequences = _held(run, memory)
    return {CLAIMED: taken, SEQUENCES: sequences}


def room_in_cache(run: ServingRun) -> Number:
    """Sequences whose cache an engine has room for; infinite where the memory of a device is not known."""
    alone = replace(run, batch=1.0)
    return _held(alone, serving_memory(alone))[1]


def largest_wave(run: ServingRun) -> Number:
    """Sequences of a batch that an engine runs at once: as many as its cache has room for beside their own buffers."""
    # Most are looked for once, in place of once for each batch: what holds more sequences holds fewer too.
    low: Number = 1.0
    high: Number = max(largest(run.batch), 1.0)
    while any_true(low < high):
        middle = np.ceil((low + high) / 2.0)
        part = replace(run, batch=middle)
        holds = _held(part, serving_memory(part))[1] >= middle
        low, high = np.where(holds, middle, low), np.where(holds, high, middle - 1.0)
    return np.minimum(low, np.maximum(run.batch, 1.0))


def _held(run: ServingRun, memory: ServingMemory) -> tuple[Number, Number]:
    """Return the bytes an engine takes, all there are where it takes what it needs, and the sequences these hold."""
    share, capacity = run.runtime.claim, run.cluster.device.memory_bytes
    if capacity is None:
        return np.inf, np.inf
    reserved = reserved_bytes(run, memory)
    cache = memory.parts["kv_cache"]
    needed = reserved - cache
    taken = claimed_bytes(capacity, where(share > 0, share, 1.0), needed, run.runtime.claims_free)
    return taken, np.floor(np.maximum(taken - needed, 0.0) / np.maximum(cache / run.batch, 1.0))
