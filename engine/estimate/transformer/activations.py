"""What one layer keeps for the backward pass, and the buffers a step needs beside it."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.numeric import Number, some

SOURCE = "Korthikanti et al. 2022, with fused attention; what autograd saves, operation by operation"
# Bytes of the log-sum-exp of a query, and of its five bytes of scores (softmax, dropped softmax, dropout mask) in
# elements of two bytes.
SOFTMAX_BYTES, SCORE_COPIES = 4.0, 2.5


@equation("layer = width · (norms + projections + feed_forward) + softmax + scores", unit="B per token", source=SOURCE)
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
    "in_flight = min(micro_batches, stages - stage) if interleave = 1 else min(micro_batches · interleave, "
    "2 · (stages - stage - 1) + (interleave - 1) · stages + 1) / interleave",
    unit="micro-batches",
    source="Narayanan et al. 2021, sections 2.1 and 2.2",
)
def micro_batches_in_flight(stages: Number, stage: Number, micro_batches: Number, interleave: Number) -> Number:
    """Micro-batches whose activations a pipeline stage holds at most.

    Args:
        stages: pipeline stages.
        stage: position of the stage, from 0.
        micro_batches: micro-batches of a step on one replica.
        interleave: model chunks a stage holds.
    """
    plain = np.minimum(micro_batches, stages - stage)
    chunks = 2.0 * (stages - stage - 1.0) + (interleave - 1.0) * stages + 1.0
    interleaved = np.minimum(micro_batches * interleave, chunks) / interleave
    return np.where(interleave > 1, interleaved, plain)


def feed_forward_elements(run: TransformerRun) -> Number:
    """Feed-forward elements a token keeps in the mean layer, after tensor parallelism.

    A frozen matrix keeps no input of its own: the adapters' inputs are counted apart.
    """
    shape, recompute = run.shape, run.recompute
    frozen = np.where(run.frozen_bytes > 0, 1.0, 0.0)
    kept = (run.software.saved_activation - recompute.activation - frozen) * (1.0 - recompute.mlp)
    dense = kept * shape.ffn / run.tp
    if not some(run.moe_share > 0):
        return dense
    routed = shape.experts_active * (kept * shape.moe_ffn + 2.0 * shape.hidden) / run.tp
    shared = kept * shape.experts_shared * shape.shared_ffn / run.tp
    router = 2.0 * shape.experts / run.tp
    return (1.0 - run.moe_share) * dense + run.moe_share * (routed + shared + router)


def norm_elements(run: TransformerRun) -> Number:
    """Elements a token keeps around norms and residuals: inputs, what the kernels save, inputs of the matrices."""
    software = run.software
    # A norm with a bias is one kernel that saves its input; one without is often computed in separate fp32 steps.
    fused = (run.compiled > 0) | (run.shape.norm_vectors > 1)
    saved = np.where(fused, software.saved_norm_fused, software.saved_norm)
    inputs = np.where(run.frozen_bytes > 0, 0.0, 2.0)
    # The masks of both residual dropouts, one byte an element, of models that have them (not gated ones).
    masks = 0.0 if run.shape.gated else 2.0 / run.width
    split = np.where(run.sequence_parallel > 0, run.tp, 1.0)
    return (saved * (1.0 - run.recompute.norm) + inputs + masks) * run.shape.hidden / split


def kept_per_token(run: TransformerRun) -> Number:
    """Bytes a token keeps in the mean layer that is not fully checkpointed."""
    shape, recompute = run.shape, run.recompute
    split = np.where(run.sequence_parallel > 0, run.tp, 1.0)
    expanded = run.query_width + run.key_value_width
    latent = shape.q_lora_rank + shape.kv_lora_rank + shape.qk_rope_head_dim
    projections = (np.where(recompute.latent > 0, latent * run.tp, expanded) + run.value_width) / run.tp
    scores: Number = 0.0
    if some(run.fused_attention < 1):
        stored = (1.0 - run.fused_attention) * (1.0 - recompute.attention)
        scores = stored * SCORE_COPIES * run.width * shape.heads * run.seq_len / run.tp
    adapters = run.adapter_inputs + run.quantized_outputs * run.software.quantized_copies
    everything = layer_activation(
        run.width,
        norm_elements(run) + adapters,
        projections,
        feed_forward_elements(run),
        SOFTMAX_BYTES * shape.heads / run.tp,
        scores,
    )
    if not some(recompute.operations > 0):
        return everything
    # Op-level checkpointing keeps the layer input, the attention output and every second matrix product.
    products = shape.hidden / split + (expanded + run.value_width + (1 + shape.gated) * shape.ffn) / run.tp
    eager = np.where(run.compiled > 0, 0.0, 1.0) * shape.hidden / split
    operations = run.width * (shape.hidden / split + run.value_width / run.tp + 0.5 * products + eager)
    return np.where(recompute.operations > 0, np.minimum(operations, everything), everything)


def working_per_token(run: TransformerRun) -> Number:
    """Bytes a token needs for the layer at work: gradients on their way, and the layer recomputed.

    With sequence parallelism, input and gradient of a product are gathered to their full width.
    """
    shape = run.shape
    split = np.where(run.sequence_parallel > 0, run.tp, 1.0)
    gradients = 2.0 * shape.hidden / split + (1 + shape.gated) * shape.ffn / run.tp
    gathered = np.where(split > 1, 2.0 * shape.hidden, 0.0)
    again = np.where((run.recompute.full_layers > 0) | (run.recompute.operations > 0), whole_layer(run), 0.0)
    return run.width * (gradients + gathered) + again


def whole_layer(run: TransformerRun) -> Number:
    """Bytes a token keeps in a layer of which everything is kept, while it is recomputed."""
    expanded = run.query_width + run.key_value_width + run.value_width
    scores = (1.0 - run.fused_attention) * SCORE_COPIES * run.width * run.shape.heads * run.seq_len
    kept = run.width * (expanded / run.tp + feed_forward_elements(run)) + scores / run.tp
    return kept + run.width * norm_elements(run)


def gathered_bytes(run: TransformerRun, layer: Number, stage: Number) -> Number:
    """Bytes of sharded parameters gathered for use: two layers and one layer's gradients on their way.

    In a pipeline a stage keeps all its parameters and their gradients whole between micro-batches.

    Args:
        run: the run.
        layer: parameters of the mean layer on the device, unsharded.
        stage: parameters of the stage's layers.
    """
    if not some(run.zero >= 3):
        return run.offload_parameters * run.width * layer
    trained = run.trained_share
    each = layer * (2.0 * run.width + trained * (run.width + run.gradient_bytes))
    whole = stage * (run.width + trained * run.gradient_bytes)
    sharded = np.where((run.zero >= 3) & (run.shard > 1), np.where(run.pp > 1, whole, each), 0.0)
    return sharded + run.offload_parameters * run.width * layer


def end_buffers(run: TransformerRun, embedding: Number, head: Number) -> Number:
    """Bytes of embedding and head gathered around the loss, with the head's gradient on its way."""
    if not some(run.zero >= 3):
        return 0.0
    projection = np.maximum(head, embedding) if run.shape.tied_embeddings else head
    gathered = run.width * (embedding + head) + run.trained_share * (run.width + 4.0) * projection
    return np.where((run.zero >= 3) & (run.shard > 1), gathered, 0.0)
