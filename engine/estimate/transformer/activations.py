"""What one layer keeps for the backward pass, the logits of the loss, and the buffers a step needs beside them."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.transformer.run import Recompute, Stack, TransformerRun
from capacity_tui.engine.estimate.transformer.software import LAYER_NORM
from capacity_tui.engine.numeric import Number, any_true, present, where
from capacity_tui.engine.units import FP32_BYTES

# Bytes of the log-sum-exp of a query, and copies of its scores.
SOFTMAX_BYTES, SCORE_COPIES = FP32_BYTES, counted("score-copies")
KEPT_PRODUCTS = 1.0 - counted("recomputed-products")


layer_activation = formula()


@equation
def micro_batches_in_flight(stages: Number, stage: Number, micro_batches: Number, interleave: Number) -> Number:
    """Micro-batches whose activations a pipeline stage holds at most."""
    plain = np.minimum(micro_batches, stages - stage)
    chunks = 2.0 * (stages - stage - 1.0) + (interleave - 1.0) * stages + 1.0
    interleaved = np.minimum(micro_batches * interleave, chunks) / interleave
    return where(interleave > 1, interleaved, plain)


dense_feed_forward = formula()  # Elements a token keeps in the feed-forward of a layer without experts
moe_feed_forward = formula()  # Elements a token keeps in the feed-forward of a layer of experts
mean_feed_forward = formula()
kept_norms = formula()  # Elements a token keeps around the norms and residuals of a layer
kept_projections = formula()


def feed_forward_elements(run: TransformerRun, recompute: Recompute) -> Number:
    """Feed-forward elements a token keeps in the mean layer, after tensor parallelism.

    A frozen matrix keeps no input of its own, in whatever type: the adapters' inputs are counted apart.
    """
    shape = run.shape
    inputs = where(run.adapter.frozen_bytes > 0, 1.0, run.narrowed)
    copies = run.software.saved_activation - recompute.activation - inputs
    kept = copies * (1.0 - recompute.mlp)
    dense = dense_feed_forward(kept, shape.ffn, run.layout.tp)
    if not any_true(run.shape.moe_share > 0):
        return dense
    shared = shape.experts_shared * shape.shared_ffn
    scored = shape.experts * (1.0 - recompute.router)
    hidden_copies = run.software.saved_routed - run.narrowed
    routed = moe_feed_forward(
        kept,
        shape.experts_active,
        copies * (1.0 - recompute.experts),
        shape.moe_ffn,
        hidden_copies,
        shape.hidden,
        shared,
        scored,
        run.layout.tp,
    )
    return mean_feed_forward(run.shape.moe_share, dense, routed)


def norm_elements(run: TransformerRun, recompute: Recompute) -> Number:
    """Elements a token keeps around norms and residuals: inputs, what the kernels save, inputs of the matrices."""
    software = run.software
    # LayerNorm is one kernel that saves its input; RMSNorm is often computed in separate fp32 steps.
    fused = (run.software.compiled > 0) | (run.shape.norm == LAYER_NORM)
    saved = where(fused, software.saved_norm_fused, software.saved_norm)
    inputs = where(run.adapter.frozen_bytes > 0, 0.0, 2.0 * (1.0 - run.narrowed))
    # A mask has a byte an element.
    masks = run.dropout_masks / run.numerics.element_bytes
    return kept_norms(saved * (1.0 - recompute.norm), masks, run.shape.hidden / run.split, inputs, run.column_input)


def adapter_elements(run: TransformerRun, recompute: Recompute) -> Number:
    """Elements a token keeps in the mean layer for adapters and for what quantized matrices put out."""
    layout = run.layout
    shape, inputs = run.shape, run.adapter.inputs
    feed_forward = inputs.up * run.column_input + inputs.down * run.shape.active_ffn / layout.tp
    outputs = run.adapter.quantized * run.software.quantized_copies
    wide = (1 + shape.gated) * run.shape.active_ffn / layout.tp
    feed_forward = feed_forward + outputs * (wide + shape.hidden / run.split)
    return attention_adapter_elements(run) + (1.0 - recompute.mlp) * feed_forward


def attention_adapter_elements(run: TransformerRun) -> Number:
    """Elements a token keeps in one attention for adapters and for what quantized matrices put out."""
    layout, inputs = run.layout, run.adapter.inputs
    attention = inputs.attention * run.column_input + inputs.output * run.value_width / layout.tp
    outputs = run.adapter.quantized * run.software.quantized_copies
    expanded = run.query_width + run.key_value_width
    return attention + outputs * (expanded / layout.tp + run.shape.hidden / run.split)


input_bytes = formula()  # Bytes a token keeps in a layer of which only the input is kept


def block_input(run: TransformerRun) -> Number:
    """Bytes a token keeps in a block of which only the input is kept."""
    return input_bytes(run.stream_bytes, run.shape.hidden, run.split)


stacked_bytes = formula()  # Bytes a token of the source keeps in the mean layer of an encoder-decoder


def layer_input(run: TransformerRun) -> Number:
    """Bytes a token keeps in the mean layer of which only the input is kept."""
    kept = block_input(run)
    if not any_true(run.encoder_blocks > 0):
        return kept
    return stacked_bytes.named("inputs")(run.target_share, kept, run.encoder_blocks, kept)


def kept_per_token(run: TransformerRun, recompute: Recompute) -> Number:
    """Bytes a token keeps in the mean layer that is not fully checkpointed."""
    kept = [kept_in_stack(run, stack, recompute) for stack in run.stacks]
    return kept[0] if len(kept) == 1 else stacked_bytes(run.target_share, kept[0], run.encoder_blocks, kept[1])


def kept_in_stack(
    run: TransformerRun, stack: Stack, recompute: Recompute, tiles: Number = 1.0, *, attends: bool = False
) -> Number:
    """Bytes a token of a stack keeps in one of its blocks, with its attention to the other stack.

    Args:
        tiles: pieces of the sequence that the feed-forward works through one after another and keeps nothing of.
        attends: whether it is a block that attends to other tokens, rather than the mean of all.
    """
    attending = run.shape.attention_kind.attending_share
    share = present(attending) if attends else attending
    kept = _kept_in_block(run, recompute, stack.length, tiles, share)
    return kept + _kept_across(run, recompute, share) if any_true(stack.crosses > 0) else kept


def _kept_across(run: TransformerRun, recompute: Recompute, attending: Number) -> Number:
    """Bytes a token of the target keeps in a block's attention to the encoder, with the encoder's keys and values."""
    states = run.query_width + run.key_value_width / run.target_share
    return layer_activation.named("across")(
        run.stream_bytes,
        run.numerics.element_bytes,
        norm_elements(run, recompute) / 2.0,
        kept_projections(states, run.value_width, run.layout.tp),
        0.0,
        attention_adapter_elements(run),
        SOFTMAX_BYTES * run.shape.heads / run.layout.tp,
        _score_bytes(run, recompute, run.data.seq_len, attending),
    )


def _score_bytes(run: TransformerRun, recompute: Recompute, length: Number, attending: Number) -> Number:
    """Bytes of scores that a token keeps in an attention to so many tokens; 0 where its kernel is fused."""
    if not any_true(run.fused_attention < 1):
        return 0.0
    stored = (1.0 - run.fused_attention) * (1.0 - recompute.attention) * attending
    return stored * SCORE_COPIES * run.numerics.element_bytes * run.shape.heads * length / run.layout.tp


def _kept_in_block(
    run: TransformerRun, recompute: Recompute, length: Number, tiles: Number, attending: Number
) -> Number:
    """Bytes a token of a sequence keeps in a block that is not fully checkpointed: at least the block's input."""
    layout, numerics = run.layout, run.numerics
    shape = run.shape
    expanded = run.query_width + run.key_value_width
    latent = np.minimum(expanded, shape.attention_kind.latent_width * layout.tp)
    projections = kept_projections(where(recompute.latent > 0, latent, expanded), run.value_width, layout.tp)
    fed = feed_forward_elements(run, recompute)
    everything = layer_activation(
        run.stream_bytes,
        numerics.element_bytes,
        norm_elements(run, recompute),
        projections,
        fed / tiles if any_true(tiles > 1) else fed,
        adapter_elements(run, recompute),
        SOFTMAX_BYTES * shape.heads / layout.tp,
        _score_bytes(run, recompute, length, attending),
    )
    least = block_input(run)
    kept = np.maximum(everything, least) if any_true(everything < least) else everything
    if not any_true(recompute.operations > 0):
        return kept
    # Op-level checkpointing keeps the layer input, the attention output and every second matrix product.
    products = shape.hidden / run.split + (expanded + run.value_width + (1 + shape.gated) * shape.ffn) / layout.tp
    eager = where(run.software.compiled > 0, 0.0, 1.0) * shape.hidden / run.split
    operations = numerics.element_bytes * (
        shape.hidden / run.split + run.value_width / layout.tp + KEPT_PRODUCTS * products + eager
    )
    return where(recompute.operations > 0, np.minimum(operations, kept), kept)


working_bytes = formula()  # Bytes of the layer at work beyond what it keeps on the device anyway
flowing_gradients = formula()


def gradients_per_token(run: TransformerRun) -> Number:
    """Bytes a token has in gradients on their way through a layer.

    With sequence parallelism, input and gradient of a product are gathered to their full width.
    """
    shape = run.shape
    feed_forward = (1 + shape.gated) * shape.ffn / run.layout.tp / run.data.tiles
    gathered = where(run.split > 1, 2.0 * shape.hidden, 0.0)
    adapted = run.adapter.adapted.fp32 * run.adapter.adapted.outputs / run.layout.tp
    return flowing_gradients(
        run.stream_bytes,
        shape.hidden / run.split,
        run.numerics.element_bytes,
        feed_forward,
        gathered,
        FP32_BYTES,
        adapted,
    )


LOSS_CHUNKS = counted("loss-chunks")


all_logits = formula()
gradients_of_loss = formula()
logit_bytes = formula()


def loss_bytes(run: TransformerRun, head: Number) -> Number:
    """Bytes of logits and loss on the last pipeline stage.

    Fused kernels take about as many logits at a time as there are elements in the hidden states, and write the
    gradient of a logit in its place.

    Args:
        head: parameters of the output head on the device.
    """
    layout, numerics = run.layout, run.numerics
    shape, software = run.shape, run.software
    held = all_logits(run.logit_tokens, shape.vocab, layout.tp)
    logit = where(layout.tp > 1, software.sharded_logit_bytes, software.logit_bytes)
    early = np.maximum(software.chunked_loss, software.fused_loss)
    if any_true(early > 0):
        chunk = held / LOSS_CHUNKS
        fused = np.asarray(software.fused_loss) > 0
        held = where(early > 0, where(fused, np.minimum(chunk, run.target_tokens * shape.hidden), chunk), held)
        logit = where(fused, np.minimum(logit, numerics.element_bytes), logit)
    # The gradient of a sharded head has a buffer of its own.
    gradient = where((layout.zero >= 3) & (layout.shard > 1), 0.0, run.trained_ends * numerics.element_bytes * head)
    left = gradients_of_loss(numerics.element_bytes, run.target_tokens, shape.hidden, gradient)
    return logit_bytes(held, logit, early, left, numerics.element_bytes)
