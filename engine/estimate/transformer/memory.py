"""Training memory of a transformer on the fullest device, every part by its own equation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.numeric import Number

ZERO = "Rajbhandari et al. 2020"
ACTIVATIONS = "Korthikanti et al. 2022, with fused attention"


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Bytes on one device of a pipeline stage, at its peak.

    Attributes:
        parts: bytes inside the framework's allocator, by part.
        host: bytes in host memory.
        phase: 0 where the backward pass starts, 1 where it ends or the optimizer runs.
    """

    parts: Mapping[str, Number]
    host: Number
    phase: Number

    @property
    def total(self) -> Number:
        """Bytes the allocator counts."""
        return sum(self.parts.values(), start=0.0)


@equation(
    "weights = bytes · (dense / shard + experts / expert_shard)",
    unit="B",
    source=ZERO,
    part="memory.parts.weights",
)
def sharded_bytes(
    bytes_per_parameter: Number, dense: Number, experts: Number, shard: Number, expert_shard: Number
) -> Number:
    """Bytes of something kept for each parameter and split over sharding groups."""
    return bytes_per_parameter * (dense / shard + experts / expert_shard)


@equation(
    "layer = width · (4·h / s + (q + kv + o + f) / t) + 4·heads / t + scores",
    unit="B per token",
    source=ACTIVATIONS,
    part="memory.parts.activations",
)
def layer_activation(
    width: Number,
    norms: Number,
    projections: Number,
    feed_forward: Number,
    softmax: Number,
    scores: Number,
) -> Number:
    """Bytes one layer keeps for the backward pass, for each token.

    Args:
        width: bytes of an element.
        norms: elements in and out of the norms, after sequence parallelism.
        projections: queries, keys, values and attention output, after tensor parallelism.
        feed_forward: feed-forward elements, after tensor parallelism.
        softmax: bytes of the log-sum-exp.
        scores: bytes of stored score matrices, 0 with fused attention.
    """
    return width * (norms + projections + feed_forward) + softmax + scores


@equation(
    "activations = tokens · (layers · (1 - full) · layer + layers · full · input) · in_flight + working",
    unit="B",
    source=ACTIVATIONS + "; pipeline depth after Narayanan et al. 2021",
    part="memory.parts.activations",
)
def activation_bytes(
    tokens: Number,
    layers_in_flight: Number,
    full: Number,
    layer: Number,
    layer_input: Number,
    working: Number,
) -> Number:
    """Bytes of activations alive when the backward pass starts.

    Args:
        tokens: tokens of a micro-batch on the device.
        layers_in_flight: layers times micro-batches whose activations wait for their backward pass.
        full: share of the layers of which only the input is kept.
        layer: bytes a token keeps in one other layer.
        layer_input: bytes a token keeps in a fully checkpointed layer.
        working: bytes of the layer being recomputed.
    """
    return tokens * layers_in_flight * ((1.0 - full) * layer + full * layer_input) + working


@equation(
    "logits = tokens · vocab / tp · bytes",
    unit="B",
    source="logits, their fp32 copy and its gradient, as the framework keeps them",
    part="memory.parts.logits",
)
def logit_bytes(tokens: Number, vocab: Number, tp: Number, bytes_per_logit: Number) -> Number:
    """Bytes of the loss: logits over the vocabulary for each token."""
    return tokens * vocab / tp * bytes_per_logit


@equation(
    "in_flight = min(m·v, 2·(pp - stage - 1) + (v - 1)·pp + 1) / v with v chunks, min(m, pp - stage) with one",
    unit="micro-batches",
    source="Narayanan et al. 2021, sections 2.1 and 2.2",
)
def micro_batches_in_flight(stages: Number, stage: Number, micro_batches: Number, interleave: Number) -> Number:
    """Micro-batches whose activations a pipeline stage holds at most."""
    plain = np.minimum(micro_batches, stages - stage)
    chunks = 2.0 * (stages - stage - 1.0) + (interleave - 1.0) * stages + 1.0
    interleaved = np.minimum(micro_batches * interleave, chunks) / interleave
    return np.where(interleave > 1, interleaved, plain)


def feed_forward_elements(run: TransformerRun) -> Number:
    """Feed-forward elements a token keeps in the mean layer, after tensor parallelism."""
    shape, recompute = run.shape, run.recompute
    kept = run.software.saved_activation * (1.0 - recompute.mlp) - recompute.activation * (1.0 - recompute.mlp)
    dense = kept * shape.ffn / run.tp
    routed = shape.experts_active * (kept * shape.moe_ffn + 2.0 * shape.hidden) / run.tp
    shared = kept * shape.experts_shared * shape.shared_ffn / run.tp
    router = 2.0 * shape.experts / run.tp
    return (1.0 - run.moe_share) * dense + run.moe_share * (routed + shared + router)


def kept_per_token(run: TransformerRun) -> Number:
    """Bytes a token keeps in the mean layer that is not fully checkpointed."""
    shape, recompute = run.shape, run.recompute
    split = np.where(run.sequence_parallel > 0, run.tp, 1.0)
    norms = (4.0 - 2.0 * np.maximum(recompute.norm, 0.5 * run.compiled)) * shape.hidden / split
    expanded = run.query_width + run.key_value_width
    latent = shape.q_lora_rank + shape.kv_lora_rank + shape.qk_rope_head_dim
    projections = (np.where(recompute.latent > 0, latent * run.tp, expanded) + run.value_width) / run.tp
    stored = (1.0 - run.fused_attention) * (1.0 - recompute.attention)
    scores = stored * 2.5 * run.width * shape.heads * run.seq_len / run.tp
    everything = layer_activation(
        run.width, norms, projections, feed_forward_elements(run), 4.0 * shape.heads / run.tp, scores
    )
    # Op-level checkpointing keeps the layer input, the attention output and every second matrix product.
    products = shape.hidden / split + (expanded + run.value_width + (1 + shape.gated) * shape.ffn) / run.tp
    operations = run.width * (shape.hidden / split + run.value_width / run.tp + 0.5 * products)
    return np.where(recompute.operations > 0, np.minimum(operations, everything), everything)


def stage_parameters(run: TransformerRun, first: bool, last: bool) -> tuple[Number, Number]:
    """Dense and expert parameters on one device of a stage, before sharding."""
    counts = run.counts
    dense = run.fullest_layers * run.dense_parameters_per_layer
    experts = run.fullest_layers * run.expert_parameters_per_layer / (run.ep * run.etp)
    if first:
        dense = dense + counts.token_embedding + counts.position_embedding + counts.encoder + counts.extra
    if last:
        copied = np.where(run.pp > 1, counts.token_embedding, 0.0) if run.shape.tied_embeddings else counts.head
        dense = dense + counts.final + copied
    return dense / run.tp, experts


def stage_memory(run: TransformerRun, *, first: bool, last: bool) -> StageMemory:
    """Memory of one device of a pipeline stage; with one stage both ``first`` and ``last`` hold."""
    dense, experts = stage_parameters(run, first, last)
    shards = [np.where(run.zero >= stage, run.shard, 1.0) for stage in (1, 2, 3)]
    expert_group = np.minimum(run.shard, run.expert_ranks)
    expert_shards = [np.where(run.zero >= stage, expert_group, 1.0) for stage in (1, 2, 3)]
    held = run.counts.total
    trained = np.where(run.frozen_bytes > 0, run.trainable / held, 1.0)
    kept_bytes = np.where(run.frozen_bytes > 0, run.frozen_bytes + run.weight_bytes * trained, run.weight_bytes)
    weights = sharded_bytes(kept_bytes, dense, experts, shards[2], expert_shards[2])
    gradients = sharded_bytes(run.gradient_bytes * trained, dense, experts, shards[1], expert_shards[1])
    states = sharded_bytes((run.state_bytes + run.master_bytes) * trained, dense, experts, shards[0], expert_shards[0])
    host = states * run.offload_optimizer + weights * run.offload_parameters
    states = states * (1.0 - run.offload_optimizer)
    weights = weights * (1.0 - run.offload_parameters)

    stage = 0.0 if first else run.pp - 1.0
    in_flight = micro_batches_in_flight(run.pp, stage, run.micro_batches, run.interleave)
    kept = kept_per_token(run)
    split = np.where(run.sequence_parallel > 0, run.tp, 1.0)
    full = run.recompute.full_layers
    recomputed = np.where(full > 0, 1.0, 0.0)
    working = run.tokens * (recomputed * kept + run.width * 2.0 * run.shape.hidden / split)
    activations = activation_bytes(
        run.tokens, run.fullest_layers * in_flight, full, kept, run.width * run.shape.hidden / split, working
    )
    offloaded = run.offload_activations * (activations - working)
    activations, host = activations - offloaded, host + offloaded
    logits = logit_bytes(run.tokens, run.shape.vocab, run.tp, run.software.logit_bytes) if last else 0.0 * working

    layer = run.dense_parameters_per_layer / run.tp + run.expert_parameters_per_layer / (run.ep * run.etp)
    gathered = np.where((run.zero >= 3) & (run.shard > 1), 2.0 * run.width * layer, 0.0)
    buffers = gathered + np.where(run.offload_parameters > 0, run.width * layer, 0.0)
    lazy = np.where((run.micro_batches <= 1) & (run.software.fp32_parameters > 0), 0.0, 1.0)
    start = activations + logits + lazy * gradients
    end = gradients + working + gathered
    late = np.where(end > start, 1.0, 0.0)
    parts = {
        "weights": weights,
        "gradients": np.where(late > 0, gradients, lazy * gradients),
        "optimizer": states,
        "activations": np.where(late > 0, working, activations),
        "logits": np.where(late > 0, 0.0, logits),
        "buffers": buffers + np.where(late > 0, gathered, 0.0),
    }
    return StageMemory(parts, host, late)


def training_memory(run: TransformerRun) -> StageMemory:
    """Memory of the fullest device: the fuller of the first and the last pipeline stage."""
    alone = stage_memory(run, first=True, last=True)
    if not np.any(np.asarray(run.pp) > 1):
        return alone
    first, last = stage_memory(run, first=True, last=False), stage_memory(run, first=False, last=True)
    several, fuller = np.asarray(run.pp) > 1, last.total > first.total

    def choose(single: Number, early: Number, late: Number) -> Number:
        return np.where(several, np.where(fuller, late, early), single)

    parts = {name: choose(alone.parts[name], first.parts[name], last.parts[name]) for name in alone.parts}
    return StageMemory(parts, choose(alone.host, first.host, last.host), choose(alone.phase, first.phase, last.phase))
