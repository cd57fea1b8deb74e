"""The kernels of attention in a training step: fused or with stored scores, whole sequences or pieces that go round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.timing.attention import FUSED_BACKWARD, attention_rate
from capacity_tui.engine.estimate.timing.roofline import alignment, reached_bandwidth
from capacity_tui.engine.estimate.transformer.recomputation import recomputed_share
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.models.transformer import forward_attention_flops
from capacity_tui.engine.numeric import Number, any_true, where

SCORE_FORWARD, SCORE_BACKWARD = counted("score-passes-forward"), counted("score-passes-backward")
MERGED = counted("ring-merge-bytes")


@equation(
    "half = length · (1 / ring + (1 - 1 / ring) · unmasked)",
    unit="tokens",
    source="one piece in so many lies on the diagonal and is masked; the others are whole rectangles",
    origins={"unmasked": "coefficients.unmasked-half-length"},
)
def ring_half_length(length: Number, ring: Number, unmasked: Number) -> Number:
    """Tokens at which attention reaches half its rate where pieces of keys and values go round.

    Args:
        length: the same for a causal kernel.
        ring: devices that share a sequence.
        unmasked: share of that length without a mask.
    """
    return length * (1.0 / ring + (1.0 - 1.0 / ring) * unmasked)


@equation(
    "bytes = tokens · width · each · ring",
    unit="B",
    source="Liu et al. 2023: every step brings an output to add to the ones before, with its log-sum-exp",
    units={"each": "B"},
    origins={"each": "counts.ring-merge-bytes"},
)
def merged_bytes(tokens: Number, width: Number, each: Number, ring: Number) -> Number:
    """Bytes that a layer moves to merge the outputs of all pieces.

    Args:
        tokens: tokens of a micro-batch on the device.
        width: width of the outputs on the device.
        each: bytes moved for an element of an output in one step.
        ring: devices that share a sequence.
    """
    return tokens * width * each * ring


def attention_operators(run: TransformerRun) -> Iterator[Operator]:
    """Score and value products: fused, or as separate products with stored scores."""
    kernels, layout, data = run.kernels, run.layout, run.data
    device, shape, kernel = run.cluster.device, run.shape, kernels.attention
    layers, reach = run.layers_per_stage, device.efficiency
    flops = run.tokens * forward_attention_flops(shape, data.seq_len, run.causal) / shape.layers / layout.tp
    flops = flops * run.document_share
    span = np.minimum(data.seq_len, 2.0 * run.attended if run.causal else run.attended)
    head = run.query_width / shape.heads
    peak = kernels.attention_peak * device.clock
    masked = 1.0 if run.causal else kernel.unmasked
    half, back_half = kernel.half * masked, kernel.backward_half * masked
    if any_true(run.ring > 1):
        # Every device holds a piece of both ends of the sequence, so that all have as much to do.
        span = where(run.ring > 1, np.minimum(span, data.seq_len / (2.0 * run.ring)), span)
        half, back_half = (ring_half_length(length, run.ring, kernel.unmasked) for length in (half, back_half))
    rate = attention_rate(span, head, peak, kernel.reach, half, kernel.width)
    back = attention_rate(span, head, peak, kernel.backward_reach, back_half, kernel.backward_width)
    # Stored scores are computed in full, then masked, and pass through memory several times.
    attentions = 1.0 + run.encoder_blocks + run.cross_attentions
    score_bytes = attentions * run.tokens * shape.heads * data.seq_len * run.numerics.element_bytes / layout.tp
    masked_compute_factor = where(run.fused_attention > 0, 1.0, data.seq_len / run.attended)
    unfused_rate = peak * kernels.attention_reach * reach.attention_unfused * reach.sustained
    unfused_rate = unfused_rate * alignment(head, reach.misaligned, reach.unaligned)
    forward_rate = where(run.fused_attention > 0, rate, unfused_rate)
    backward_rate = where(run.fused_attention > 0, back, unfused_rate)
    traffic = (
        attentions
        * run.tokens
        * (run.query_width + run.key_value_width + run.value_width)
        * run.numerics.element_bytes
        / layout.tp
    )
    unfused = 1.0 - run.fused_attention
    bandwidth = reached_bandwidth(device.bandwidth, reach.elementwise)
    recompute_fraction = recomputed_share(run, run.recompute.attention * unfused, product=False)
    recompute_fraction = where(run.recompute.operations > 0, run.recompute.full_layers, recompute_fraction)
    through = traffic + unfused * (SCORE_FORWARD + run.dropout_passes) * score_bytes
    yield Operator("attention", "attention", "forward", "layer", flops * masked_compute_factor, through,
                   forward_rate, bandwidth, layers)  # fmt: skip
    backward_flops = flops * where(run.fused_attention > 0, FUSED_BACKWARD, 2.0 * masked_compute_factor)
    yield Operator("attention, backward", "attention", "backward", "layer", backward_flops,
                   2.0 * traffic + unfused * (SCORE_BACKWARD + run.dropout_passes) * score_bytes, backward_rate,
                   bandwidth, layers)  # fmt: skip
    yield Operator("attention, recomputed", "attention", "recompute", "layer", flops * masked_compute_factor,
                   through, forward_rate, bandwidth, layers * recompute_fraction)  # fmt: skip
    if any_true(run.ring > 1):
        yield from _merges(run, bandwidth, layers * recompute_fraction)


def _merges(run: TransformerRun, bandwidth: Number, recomputed: Number) -> Iterator[Operator]:
    """Outputs of every step of the ring are added to those before; backward, gradients of queries, keys and values."""
    tokens, steps = run.tokens, where(run.ring > 1, run.ring, 0.0)
    forward = merged_bytes(tokens, run.value_width / run.layout.tp, MERGED, steps)
    width = (run.query_width + run.shape.kv_heads * (run.shape.head_dim + run.shape.v_head_dim)) / run.layout.tp
    backward = merged_bytes(tokens, width, MERGED, steps)
    name, goes_round = "merging of attention's pieces", where(run.ring > 1, 1.0, 0.0)
    layers = run.layers_per_stage * goes_round
    yield Operator(name, "attention", "forward", "layer", 0.0, forward, 1.0, bandwidth, layers)
    yield Operator(f"{name}, backward", "attention", "backward", "layer", 0.0, backward, 1.0, bandwidth, layers)
    yield Operator(f"{name}, recomputed", "attention", "recompute", "layer", 0.0, forward, 1.0, bandwidth,
                   recomputed * goes_round)  # fmt: skip
