"""The kernels of attention in a training step: fused or with stored scores, whole sequences or pieces that go round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.timing.collectives import all_gather_seconds, all_to_all_seconds
from capacity_tui.engine.estimate.timing.roofline import (
    FUSED_BACKWARD,
    alignment,
    attention_rate,
    operator_seconds,
    reached_bandwidth,
)
from capacity_tui.engine.estimate.transformer.run import TransformerRun, recomputed_share
from capacity_tui.engine.estimate.work import Collective, Direction, HidingPass, Operator
from capacity_tui.engine.models.transformer import forward_attention_flops
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.units import FP32_BYTES

SCORE_FORWARD, SCORE_BACKWARD = counted("score-passes-forward"), counted("score-passes-backward")
MERGED = counted("ring-merge-bytes")
CHUNK = counted("state-chunk-tokens")


# Tokens at which attention reaches half its rate where pieces of keys and values go round.
ring_half_length = formula()
merged_bytes = formula()  # Bytes that a layer moves to merge the outputs of all pieces


def attention_operators(run: TransformerRun) -> Iterator[Operator]:
    """Score and value products: fused, or as separate products with stored scores."""
    kernels, layout, data = run.kernels, run.layout, run.data
    device, shape, kernel = run.cluster.device, run.shape, kernels.attention
    layers, reach = run.layers_per_stage, device.efficiency
    kind, share = shape.attention_kind, run.tokens / shape.layers / layout.tp
    recurrence = share * kind.recurrence_flops()
    flops = share * forward_attention_flops(shape, data.seq_len, run.causal, run.target) - recurrence
    flops = flops * run.document_share
    # Layers that attend to nothing shorten the mean, not the sequence of those that do.
    attending = kind.attending_share
    attended = run.attended / where(attending > 0, attending, 1.0) if any_true(attending < 1.0) else run.attended
    span = np.minimum(data.seq_len, 2.0 * attended if run.causal else attended)
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
    stored_peak, stored_reach, stored_bytes = peak, kernels.attention_reach, run.numerics.element_bytes
    if device.is_processor:
        # PyTorch widens narrower types for the separate products of a processor.
        stored_peak, stored_reach = device.peak("fp32") * device.clock, device.gemm_reach("fp32")
        stored_bytes = np.maximum(stored_bytes, FP32_BYTES)
    score_bytes = run.score_matrices * run.tokens * shape.heads * data.seq_len * stored_bytes / layout.tp * attending
    masked_compute_factor = where(run.fused_attention > 0, 1.0, data.seq_len / attended)
    unfused_rate = stored_peak * stored_reach * reach.attention_unfused * reach.sustained
    unfused_rate = unfused_rate * alignment(head, reach.misaligned, reach.unaligned)
    forward_rate = where(run.fused_attention > 0, rate, unfused_rate)
    backward_rate = where(run.fused_attention > 0, back, unfused_rate)
    traffic = (
        run.attentions
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
    yield Operator(
        "attention",
        "attention",
        "forward",
        "layer",
        flops * masked_compute_factor,
        through,
        forward_rate,
        bandwidth,
        layers,
    )
    backward_flops = flops * where(run.fused_attention > 0, FUSED_BACKWARD, 2.0 * masked_compute_factor)
    yield Operator(
        "attention, backward",
        "attention",
        "backward",
        "layer",
        backward_flops,
        2.0 * traffic + unfused * (SCORE_BACKWARD + run.dropout_passes) * score_bytes,
        backward_rate,
        bandwidth,
        layers,
    )
    yield Operator(
        "attention, recomputed",
        "attention",
        "recompute",
        "layer",
        flops * masked_compute_factor,
        through,
        forward_rate,
        bandwidth,
        layers * recompute_fraction,
    )
    if any_true(recurrence > 0):
        chunk = np.minimum(data.seq_len, CHUNK)
        rates = [
            where(run.fused_attention > 0, attention_rate(chunk, head, peak, *fused), unfused_rate)
            for fused in (
                (kernel.reach, kernel.half, kernel.width),
                (kernel.backward_reach, kernel.backward_half, kernel.backward_width),
            )
        ]
        yield from _recurrences(recurrence, rates, bandwidth, layers, layers * recompute_fraction)
    if any_true(run.ring > 1):
        yield from _merges(run, bandwidth, layers * recompute_fraction)


def _recurrences(
    flops: Number, rates: Sequence[Number], bandwidth: Number, layers: Number, recomputed: Number
) -> Iterator[Operator]:
    """States of layers that do not attend, chunk by chunk: within one, products as attention's (Dao and Gu 2024)."""
    passes: tuple[tuple[str, Direction, Number, Number], ...] = (
        ("", "forward", 1.0, layers),
        (", backward", "backward", FUSED_BACKWARD, layers),
        (", recomputed", "recompute", 1.0, recomputed),
    )
    for ending, phase, times, count in passes:
        rate, name = rates[phase == "backward"], f"layers with a state{ending}"
        yield Operator(name, "attention", phase, "layer", flops * times, 0.0, rate, bandwidth, count)


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
    yield Operator(
        f"{name}, recomputed", "attention", "recompute", "layer", 0.0, forward, 1.0, bandwidth, recomputed * goes_round
    )


FORWARD_EXCHANGES, BACKWARD_EXCHANGES = counted("context-exchanges"), counted("context-exchanges-backward")
RING_BUFFERS = counted("ring-buffers")


hidden_by_pieces = formula()
exchange_bytes = formula()  # Bytes that the exchange of the layer at work holds beside what the layer keeps


def context_collectives(run: TransformerRun) -> Iterator[Collective]:
    """Keys and values travel around the group or are gathered, or tokens are swapped for heads; gradients go back."""
    layout = run.layout
    if not any_true(layout.cp > 1):
        return
    again = run.recompute.full_layers
    if any_true(layout.context_swap < 1):
        yield from _keys_and_values(run, again)
    if any_true(layout.context_swap > 0):
        yield from _swaps(run, again)


def _keys_and_values(run: TransformerRun, again: Number) -> Iterator[Collective]:
    layout = run.layout
    payload = run.tokens * layout.cp * _cache_bytes(run)
    seconds = where(layout.cp > 1, all_gather_seconds(payload, layout.cp, layout.tp, run.cluster), 0.0)
    layers = run.layers_per_stage * (1.0 - layout.context_swap)
    forward, backward, *_ = attention_operators(run)
    passes: tuple[tuple[str, HidingPass, Operator, float, Number], ...] = (
        ("exchange of keys and values", "forward", forward, FORWARD_EXCHANGES, 1.0 + again),
        ("exchange of keys, values and gradients", "backward", backward, BACKWARD_EXCHANGES, 1.0),
    )
    for name, hides_behind, kernel, times, count in passes:
        travelling = np.maximum(times * seconds, np.finfo(float).tiny)
        hidden = hidden_by_pieces(run.software.context_overlap, operator_seconds(kernel), run.ring, travelling)
        yield Collective(
            name,
            "context_parallel",
            times * seconds,
            layers * count,
            hidden,
            bytes=times * payload,
            hides_behind=hides_behind,
            group=layout.cp,
            stride=layout.tp,
        )


def _swaps(run: TransformerRun, again: Number) -> Iterator[Collective]:
    """Queries, keys and values go to the devices of their heads, outputs come back; backward the other way."""
    layout = run.layout
    copies = np.maximum(1.0, layout.cp * layout.tp / run.shape.kv_heads)
    element = run.tokens * run.numerics.element_bytes / layout.tp
    payloads = (element * run.query_width, element * run.value_width, run.tokens * _cache_bytes(run) * copies)
    seconds = sum((all_to_all_seconds(payload, layout.cp, layout.tp, run.cluster) for payload in payloads), start=0.0)
    count = run.layers_per_stage * layout.context_swap * (2.0 + again)
    yield Collective(
        "all-to-all of tokens for heads",
        "context_parallel",
        seconds,
        count,
        bytes=sum(payloads),
        group=layout.cp,
        stride=layout.tp,
    )


def exchange_memory(run: TransformerRun) -> Number:
    """Bytes that the exchange of the layer at work holds."""
    layout = run.layout
    if not any_true(layout.cp > 1):
        return 0.0
    ring, shared = where(run.ring > 1, 1.0, 0.0), where(layout.cp > 1, 1.0, 0.0)
    outputs = run.numerics.element_bytes * (run.query_width + run.value_width) / layout.tp
    return exchange_bytes(
        run.tokens,
        ring,
        RING_BUFFERS,
        _cache_bytes(run),
        layout.context_gather * shared,
        layout.cp,
        layout.context_swap * shared,
        outputs,
    )


def _cache_bytes(run: TransformerRun) -> Number:
    """Bytes of the keys and values of a token on the device."""
    return run.shape.kv_heads * (run.shape.head_dim + run.shape.v_head_dim) * run.numerics.element_bytes / run.layout.tp
