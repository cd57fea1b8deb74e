"""The kernels of one forward pass of serving, in prefill and in decode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.serving.run import Reading, ServingRun
from capacity_tui.engine.estimate.timing.roofline import (
    FORWARD_PASSES,
    attention_rate,
    busiest_load,
    busy_units,
    copied_cache_bytes,
    gemm_rate,
    grouped_share,
    reached_bandwidth,
    tiled_rows,
    unpacking_flops,
)
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.models.transformer import (
    attended_at_end,
    attended_of_sequence,
    cache_elements,
    cross_key_value_weights,
    encoder_attention_flops,
    forward_attention_flops,
    multi_head_weights,
)
from capacity_tui.engine.numeric import Number, any_true, present, where
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP16_BYTES, FP32_BYTES

# Attention and feed-forward, each with a norm before and an addition after it.
SUBLAYERS = 2.0
# Bytes that an unpacked weight is written and read in.
UNPACKED_BYTES = FP16_BYTES
SCORE_BYTES = FP32_BYTES
# Rows from which on experts in host memory are copied to the device, and crossings of the activations of fewer.
COPIED_ROWS, CROSSINGS = counted("copied-rows"), counted("expert-crossings")
TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass."""

    rows: Number  # tokens that go through the linear layers
    attention_flops: Number  # FLOPs of scores and weighted values, in all layers
    attention_rate: Number  # FLOP/s they reach
    cache_read: Number  # bytes of keys and values read, in all layers
    scores: Number  # bytes of attention scores, in all layers, were they stored
    logit_rows: Number  # tokens that reach the output head
    encodes: bool  # whether an encoder-decoder runs its encoder, rather than its decoder
    decodes: bool = False  # whether each row is the next token of a sequence


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product with weights."""

    name: str  # what it is
    rows: Number  # tokens, of one group
    weights: Number  # weights of one group on the device
    runs: Number  # how often a pass runs it
    groups: Number = 1.0  # products side by side (experts)
    inner: Number = 0.0  # inner length; that of the residual stream where 0


@equation
def distinct_experts(experts: Number, active: Number, tokens: Number) -> Number:
    """Experts of a layer that at least one of ``tokens`` tokens visits."""
    return experts * (1.0 - (1.0 - active / np.maximum(experts, 1.0)) ** tokens)


@equation
def weight_bandwidth(
    memory: Number, stream: Number, share: Number, units: Number, unit_bandwidth: Number, unpacked: Number
) -> Number:
    """Bytes of weights a device reads in a second."""
    return np.minimum(np.minimum(memory * stream * share, units * unit_bandwidth), unpacked)


@equation
def rate_of_rows(rate: Number, rows: Number, half: Number) -> Number:
    """FLOP/s of a product of ``rows`` rows with weights that are copied first."""
    return rate * where(rows > 1, rows / (rows + half), 1.0)


expert_bandwidth = formula()
crossing_seconds = formula()


def prefill_pass(run: ServingRun, rows: Number) -> Pass:
    """One forward pass over ``rows`` tokens of prompts."""
    kernels = run.kernels
    device, shape = run.cluster.device, run.shape
    causal, encodes = shape.is_decoder, shape.kind == "encoder-decoder"
    prompts, cached = rows / run.fresh, run.prompt - run.fresh
    if encodes:
        flops = rows * encoder_attention_flops(shape, run.prompt)
    else:
        # What of a prompt is cached is attended to, and attends to nothing any more.
        known = cached * forward_attention_flops(shape, np.maximum(cached, 1.0), causal)
        flops = prompts * (run.prompt * forward_attention_flops(shape, run.prompt, causal) - known)
    kernel = kernels.attention
    half = kernel.half * (1.0 if causal else kernel.unmasked)
    peak, reach = kernels.attention_peak * device.clock, kernel.reach * run.runtime.attention_prefill
    # Tiles are of the tokens that attend: few behind a cached prefix fill them no better than a short prompt does.
    rate = attention_rate(run.fresh, shape.head_dim, peak, reach, half, kernel.width)
    wider = shape.attention_kind.absorbed_width / shape.attention_kind.score_width
    absorbs = (kernels.absorbed_reach > 0) & (wider > 1)
    flops, rate = flops * where(absorbs, wider, 1.0), where(absorbs, peak * kernels.absorbed_reach, rate)
    moved = (
        prompts * (2.0 * cache_elements(shape, run.prompt) - cache_elements(shape, cached)) * run.numerics.cache_bytes
    )
    logits = prompts * run.prompt_logits
    attended = attended_of_sequence(run.prompt, causal)
    scores = shape.encoder_layers * shape.heads * attended(0, 1) if encodes else shape.attention_kind.scores(attended)
    stored = rows * scores * SCORE_BYTES
    return Pass(rows, flops, np.minimum(rate, kernels.attention_peak), moved, stored, logits, encodes)


def decode_pass(run: ServingRun, sequences: Number, guesses: Number = 0.0) -> Pass:
    """One forward pass for the next token of each of ``sequences`` and its guesses, at the output's mean context."""
    shape, context = run.shape, run.decode_context
    kind, attended = shape.attention_kind, attended_at_end(context)
    flops = kind.decode_flops(attended)
    read = sequences * cache_elements(shape, context) * run.numerics.cache_bytes
    rate = run.kernels.attention_peak * run.kernels.attention_reach * run.cluster.device.clock
    # A pass that checks guesses works on each of them, and reads the cache once for all of a sequence.
    rows = sequences * (1.0 + guesses)
    scores = rows * kind.scores(attended) * SCORE_BYTES
    return Pass(rows, rows * flops, rate, read, scores, rows, encodes=False, decodes=True)


def pass_operators(run: ServingRun, step: Pass) -> tuple[Operator, ...]:
    """Return the kernels of one pass through all layers on one tensor-parallel device."""
    return (
        *_layers(run, step),
        *_ends(run, step),
        *_attention(run, step),
        *_host(run, step),
        *_experts(run, step.rows),
    )


def mixed_operators(run: ServingRun, prompts: Pass, answers: Pass) -> tuple[Operator, ...]:
    """Return the kernels of one pass that reads chunks of prompts and gives others their next token.

    Matrix products work on all rows at once, attention on each kind for itself.
    """
    both = Pass(
        prompts.rows + answers.rows,
        prompts.attention_flops + answers.attention_flops,
        prompts.attention_rate,
        prompts.cache_read + answers.cache_read,
        prompts.scores + answers.scores,
        prompts.logit_rows + answers.logit_rows,
        prompts.encodes,
    )
    attention = (*_attention(run, prompts), *_attention(run, answers))
    return (*_layers(run, both), *_ends(run, both), *attention, *_host(run, both), *_experts(run, both.rows))


def layer_products(run: ServingRun, rows: Number, *, encodes: bool = False) -> tuple[Product, ...]:
    """Return the matrix products of all layers on the device, for ``rows`` tokens, of decoder or encoder."""
    layout = run.layout
    shape, counts = run.shape, run.counts
    layers = shape.layers * (1.0 - run.host.share)
    crosses = cross_key_value_weights(shape)
    if encodes:
        blocks = shape.encoder_layers * (1.0 - run.host.share)
        return (
            Product("attention projections", rows, multi_head_weights(shape) / layout.tp, blocks),
            Product("feed-forward", rows, counts.mlp_per_dense_layer / layout.tp, blocks),
            Product("keys and values for the decoder", rows, crosses / layout.tp, layers),
        )
    mixture = layers * run.shape.moe_share
    here = mixture * (1.0 - where(rows < COPIED_ROWS, run.host.experts, 0.0))
    always = counts.router_per_moe_layer + counts.shared_experts_per_layer
    # Experts that lie on more devices than a replica has work on the tokens of several replicas.
    routed = rows * np.maximum(layout.ep * layout.etp / layout.tp, 1.0)
    computes_all = run.runtime.computes_all_experts > 0
    distinct = np.maximum(distinct_experts(shape.experts, shape.experts_active, routed), 1.0)
    visited = where(computes_all, np.maximum(shape.experts, 1.0), distinct)
    tokens = routed * where(computes_all, 1.0, shape.experts_active / visited) * _busiest(run)
    up = (1.0 + shape.gated) / (2.0 + shape.gated) * counts.expert / layout.etp
    down, narrow = counts.expert / layout.etp - up, shape.moe_ffn / layout.etp
    products = (
        Product("attention projections", rows, counts.attention_per_layer / layout.tp, layers),
        Product(
            "attention to the encoder",
            rows,
            (multi_head_weights(shape) - crosses) / layout.tp,
            layers * present(shape.encoder_layers),
        ),
        Product("feed-forward", rows, counts.mlp_per_dense_layer / layout.tp, layers - mixture),
        Product("router and shared experts", rows, always / layout.tp, mixture),
        Product("experts, up projection", tokens, up, here, visited / layout.ep),
        Product("experts, down projection", tokens, down, here, visited / layout.ep, narrow),
    )
    return tuple(product for product in products if any_true(product.runs > 0))


def _adapters(run: ServingRun, rows: Number) -> Iterator[Operator]:
    """Yield the narrow products beside those of all layers, each row's with the adapter that its request has chosen."""
    others, layers = run.adapters, run.shape.layers * (1.0 - run.host.share)
    if not any_true(others.number > 0):
        return
    used = np.maximum(distinct_experts(others.number, 1.0, rows), 1.0)
    visited = np.minimum(rows / used * run.shape.experts_active, run.shape.experts) / np.maximum(run.shape.experts, 1.0)
    weights = (others.parameters + visited * others.experts) / run.shape.layers / run.layout.tp
    product = Product("adapters", rows / used, weights, layers, used)
    yield _operator(run, product, run.body, run.numerics.element_bytes)


def _busiest(run: ServingRun) -> Number:
    """Return the tokens of the rank of experts that all others wait for, over the mean; 1 where all are on each."""
    if not any_true(run.layout.ep > 1):
        return 1.0
    return where(run.layout.ep > 1, busiest_load(run.runtime.expert_spread, run.layout.ep, run.shape.experts), 1.0)


def _operator(run: ServingRun, product: Product, kernel: Reading, element_bytes: Number) -> Operator:
    """Return a matrix product as an operator; its weights have ``element_bytes`` bytes, read by a kernel."""
    kernels = run.kernels
    device = run.cluster.device
    inner = product.inner if any_true(product.inner > 0) else run.shape.hidden
    reached = np.minimum(kernels.gemm_reach * kernel.matrix, 1.0) * device.clock
    reach, outputs, rows = device.efficiency, product.weights / inner, product.rows * product.groups
    read = kernel.bandwidth
    if any_true(product.groups > 1):
        # The last tile of each group is partly filled, and runs as long as a full one.
        tile, share = run.runtime.expert_tile, where(product.groups > 1, reach.grouped * kernel.grouped, 1.0)
        reached = grouped_share(reached * share, product.rows, product.groups, tile)
        rows = tiled_rows(product.rows, product.groups, tile)
        read = read * where(product.groups > 1, run.runtime.mixture_bandwidth, 1.0)
    rate = gemm_rate(rows, outputs, inner, kernels.peak, reached, device.units, reach.wave_fill, reach.ramp_length)
    traffic = product.groups * (
        product.weights * element_bytes + product.rows * (inner + outputs) * run.numerics.element_bytes
    )
    if any_true(kernel.half_rows > 0):
        rate = rate_of_rows(rate, product.rows, kernel.half_rows)
    flops = 2.0 * product.rows * product.weights * product.groups
    unpacked = element_bytes * kernels.vector_peak / np.maximum(kernel.unpack_flops, TINY)
    bandwidth = weight_bandwidth(device.bandwidth, reach.stream, read, device.units, kernel.unit_bandwidth, unpacked)
    return Operator(product.name, "compute", "forward", "layer", flops, traffic, rate, bandwidth, product.runs)


def _layers(run: ServingRun, step: Pass) -> Iterator[Operator]:
    numerics = run.numerics
    device, shape, runtime = run.cluster.device, run.shape, run.runtime
    products = layer_products(run, step.rows, encodes=step.encodes)
    for product in products:
        yield _operator(run, product, run.body, numerics.body_bytes)
    yield from _adapters(run, step.rows)
    # For many rows packed weights are unpacked to 16 bits in memory first, and read again from there.
    weights: Number = sum((product.weights * product.groups * product.runs for product in products), start=0.0)
    first = np.where(step.rows >= run.body.unpack_rows, 1.0, 0.0)
    yield Operator("unpacking of weights", "compute", "forward", "layer", 0.0,
                   first * weights * (numerics.body_bytes + UNPACKED_BYTES), 1.0,
                   reached_bandwidth(device.bandwidth, device.efficiency.stream))  # fmt: skip
    layers = (shape.encoder_layers if step.encodes else shape.layers) * (1.0 - run.host.share)
    streams = SUBLAYERS * FORWARD_PASSES * shape.hidden + (2.0 + shape.gated) * run.shape.active_ffn / run.layout.tp
    if any_true(run.shape.moe_share > 0):
        routed = run.shape.moe_share * shape.experts_active * shape.hidden * run.layout.etp / run.layout.tp
        streams = streams + runtime.mixture_passes * routed * _busiest(run)
    yield Operator("norms, residuals and activations", "compute", "forward", "layer", 0.0,
                   runtime.elementwise_passes * step.rows * numerics.element_bytes * streams, 1.0,
                   reached_bandwidth(device.bandwidth, device.efficiency.elementwise), layers)  # fmt: skip


def _ends(run: ServingRun, step: Pass) -> Iterator[Operator]:
    if step.encodes or run.shape.is_encoder:
        return
    head = Product("output head", step.logit_rows, run.head_weights / run.layout.tp, 1.0)
    yield _operator(run, head, run.head, run.numerics.head_bytes)


def _attention(run: ServingRun, step: Pass) -> Iterator[Operator]:
    layout = run.layout
    device, runtime, here = run.cluster.device, run.runtime, 1.0 - run.host.share
    reachable, read = device.bandwidth * device.efficiency.stream * runtime.cache_bandwidth, step.cache_read
    moving = reached_bandwidth(device.bandwidth, device.efficiency.elementwise)
    shape = run.shape
    if step.decodes and any_true((runtime.cache_copies > 0) | (runtime.repeats_heads > 0)):
        kv_heads = shape.attention_kind.key_value_heads
        copied = copied_cache_bytes(read, runtime.cache_copies, runtime.repeats_heads, shape.heads, kv_heads)
        yield Operator("copies of keys and values", "attention", "forward", "layer", 0.0,
                       copied / run.cache_shards, 1.0, moving, here)  # fmt: skip
        read = read * np.where(runtime.repeats_heads > 0, shape.heads / kv_heads, 1.0)
    if step.decodes and any_true(runtime.block_per_head > 0):
        busy = busy_units(np.maximum(step.rows, TINY) * shape.heads / layout.tp, device.units)
        reachable = reachable * np.where(runtime.block_per_head > 0, busy, 1.0)
    flops, rate = step.attention_flops / layout.tp, step.attention_rate
    if step.decodes and any_true(runtime.cache_unpack_flops > 0):
        readers = shape.heads / shape.attention_kind.key_value_heads
        numbers = read / run.numerics.cache_bytes / run.cache_shards
        vectors = runtime.cache_unpack_flops > 0
        flops = where(vectors, unpacking_flops(numbers, readers, runtime.cache_unpack_flops), flops)
        rate = where(vectors, run.kernels.vector_peak, rate)
    yield Operator("attention", "attention", "forward", "layer", flops,
                   read / run.cache_shards, rate, reachable, here)  # fmt: skip
    stored = runtime.score_passes * step.scores / layout.tp
    yield Operator("stored attention scores", "attention", "forward", "layer", 0.0, stored, 1.0, moving, here)


def _host(run: ServingRun, step: Pass) -> Iterator[Operator]:
    """Layers the host runs itself, or, for long prompts, sends to the device first."""
    if not any_true(run.host.share > 0):
        return
    host = run.host
    weights = (run.counts.read + run.shape.layers * run.experts_per_layer) * run.numerics.body_bytes
    active = run.counts.read + run.shape.layers * run.shape.moe_share * (run.shape.experts_active * run.counts.expert)
    read = np.minimum(weights, step.rows * active * run.numerics.body_bytes)
    flops = 2.0 * step.rows * active + step.attention_flops
    itself = np.maximum(flops / host.rate, (read + step.cache_read) / host.bandwidth)
    rate = run.kernels.peak * run.kernels.gemm_reach * run.body.matrix
    sent = weights / run.cluster.device.host_bandwidth + flops / rate
    rate_of_best = flops / np.minimum(itself, sent)
    yield Operator("layers on the host", "compute", "forward", "layer", flops, 0.0, rate_of_best, 1.0,
                   host.share)  # fmt: skip


def _experts(run: ServingRun, rows: Number) -> Iterator[Operator]:
    """Yield what experts in host memory take: its processor runs few rows, many have the experts sent to the device."""
    host, shape, device = run.host, run.shape, run.cluster.device
    if not any_true(host.experts > 0):
        return
    layers = shape.layers * (1.0 - host.share) * shape.moe_share * host.experts
    itself = layers * where(rows < COPIED_ROWS, 1.0, 0.0)
    distinct = distinct_experts(shape.experts, shape.experts_active, rows)
    read = distinct * run.counts.expert * run.numerics.body_bytes
    flops = 2.0 * rows * shape.experts_active * run.counts.expert
    matrices = distinct * (2.0 + shape.gated)
    memory = expert_bandwidth(np.maximum(read, TINY), host.bandwidth, matrices, host.expert_start)
    link = reached_bandwidth(device.host_bandwidth, device.efficiency.host_stream)
    moved = rows * shape.hidden * run.numerics.element_bytes
    handed = moved / crossing_seconds(CROSSINGS, moved, link, run.runtime.stage_seconds)
    yield Operator("experts on the host", "compute", "forward", "layer", flops, read, host.rate, memory, itself)
    yield Operator("activations to the host and back", "compute", "forward", "layer", 0.0, moved, 1.0, handed, itself)
    yield Operator("experts sent to the device", "compute", "forward", "layer", 0.0, read, 1.0, link, layers - itself)
