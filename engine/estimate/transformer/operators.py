"""The kernels of one training step of a transformer, by their shapes after sharding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.timing.roofline import (
    BACKWARD_PASSES,
    FORWARD_PASSES,
    TILE_ROWS,
    activation_passes,
    alignment,
    busiest_load,
    elementwise_bytes,
    gemm_bytes,
    gemm_rate,
    grouped_share,
    layer_elements,
    operator_seconds,
    padded,
    reached_bandwidth,
    reached_share,
    tiled_rows,
)
from capacity_tui.engine.estimate.transformer.attention import attention_operators
from capacity_tui.engine.estimate.transformer.auxiliary_kernels import (
    forward_launches,
    frozen_base_operators,
    optimizer_operators,
)
from capacity_tui.engine.estimate.transformer.run import TransformerRun, recomputed_share
from capacity_tui.engine.estimate.work import Direction, Operator, PipelinePosition
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.units import FP32_BYTES, GIGA, NANO

LOSS_LAUNCHES, EMBEDDING_LAUNCHES = counted("loss-kernels"), counted("embedding-kernels")
RECOMPUTED_ELEMENTWISE = counted("recomputed-elementwise")
NEW_SCORES, NEW_SCORE_GRADIENTS = counted("new-score-tensors"), counted("new-score-gradients")
NEW_VOCABULARY_GRADIENTS = counted("new-vocabulary-gradients")
STEPS_FORWARD, STEPS_BACKWARD = counted("activation-step-passes-forward"), counted("activation-step-passes-backward")
AUTOCAST_INPUTS = counted("autocast-inputs")
CAST_RESIDUALS, CAST_FEED_FORWARDS = counted("cast-residual-operands"), counted("cast-feed-forward-operands")


def training_operators(run: TransformerRun) -> tuple[Operator, ...]:
    """Return every kernel of a step; counts are runs for one micro-batch on the mean pipeline stage."""
    return (
        *_linear_layers(run),
        *attention_operators(run),
        *_elementwise(run),
        *_new_pages(run),
        *_casts(run),
        *_autocasts(run),
        *frozen_base_operators(run),
        *_ends(run),
        *optimizer_operators(run),
    )


def narrow_where_it_pays(run: TransformerRun) -> TransformerRun:
    """Return the run with its linear layers in 16 bits where casts to the narrow type cost more than they save."""
    kernels = run.kernels
    if not any_true(kernels.casts > 0):
        return run
    wide = replace(kernels, casts=0.0, peak=kernels.attention_peak, gemm_reach=kernels.attention_reach)
    narrow = _product_seconds(run) < _product_seconds(replace(run, kernels=wide))
    chosen = replace(
        kernels,
        casts=where(narrow, kernels.casts, 0.0),
        peak=where(narrow, kernels.peak, wide.peak),
        gemm_reach=where(narrow, kernels.gemm_reach, wide.gemm_reach),
    )
    return replace(run, kernels=chosen)


def _product_seconds(run: TransformerRun) -> Number:
    """Seconds of the linear layers of one micro-batch, with the casts of their operands."""
    operators = (*_linear_layers(run), *_casts(run))
    return sum((operator_seconds(operator) * operator.count for operator in operators), start=0.0)


def gemm(
    run: TransformerRun,
    name: str,
    m: Number,
    n: Number,
    k: Number,
    *,
    count: Number,
    where: PipelinePosition = "layer",
    recompute: Number = 0.0,
    has_weight_gradient: bool = True,
    groups: Number = 1.0,
    in_plan_precision: bool = True,
    trained: Number | None = None,
) -> Iterator[Operator]:
    """Yield forward, backward and recomputed products of one linear layer.

    Args:
        name: what the layer is.
        m: rows (tokens) of one group.
        n: outputs on this device.
        k: inputs on this device.
        count: layers of this kind on the device.
        where: place in the pipeline.
        recompute: share of the forward pass that runs again.
        has_weight_gradient: whether the weights have gradients.
        groups: products side by side (experts).
        trained: share of the weights that have gradients; that of the layers by default.
        in_plan_precision: whether the layer runs in the plan's precision; the head and router stay in 16 bits.
    """
    kernels = run.kernels
    device = run.cluster.device
    reach = device.efficiency
    peak = kernels.peak if in_plan_precision else kernels.attention_peak
    share = kernels.gemm_reach if in_plan_precision else kernels.attention_reach
    if any_true(groups > 1):
        share = share * np.where(np.asarray(groups) > 1, reach.grouped, 1.0)
    reached = reached_share(share, reach.sustained, device.clock, _aligned(run, "rows", k), _aligned(run, "columns", n))
    element_bytes = run.operand_bytes if in_plan_precision else run.numerics.element_bytes
    # Starting and finishing a tile takes as long in every type: of a product in a faster type it is a larger share.
    ramp = reach.ramp_length * 2.0 / element_bytes
    bandwidth = reached_bandwidth(device.bandwidth, reach.stream)

    def product(label: str, phase: Direction, rows: Number, columns: Number, depth: Number, runs: Number) -> Operator:
        # The last tile of each group is partly filled, and runs as long as a full one.
        grouped = any_true(groups > 1)
        share = grouped_share(reached, rows, groups, TILE_ROWS) if grouped else reached
        in_tiles = tiled_rows(rows, groups, TILE_ROWS) if grouped else rows * groups
        rate = gemm_rate(in_tiles, columns, depth, peak, share, device.units, reach.wave_fill, ramp)
        return Operator(
            label, "compute", phase, where, 2.0 * rows * columns * depth * groups,
            gemm_bytes(rows, columns, depth, element_bytes) * groups, rate, bandwidth, runs,
        )  # fmt: skip

    yield product(name, "forward", m, n, k, count)
    yield product(f"{name}, input gradient", "backward", m, k, n, count)
    if has_weight_gradient:
        full = run.trained_share if trained is None else trained
        yield product(f"{name}, weight gradient", "backward", k, n, m, count * full)
    if any_true(recompute > 0):
        yield product(f"{name}, recomputed", "recompute", m, n, k, count * recompute)


def _aligned(run: TransformerRun, name: str, dimension: Number) -> Number:
    reach = run.cluster.device.efficiency
    return alignment.named(name)(dimension, reach.misaligned, reach.unaligned)


def _linear_layers(run: TransformerRun) -> Iterator[Operator]:
    layout = run.layout
    shape, layers = run.shape, run.layers_per_stage
    recompute_fraction = recomputed_share(run, run.recompute.latent, product=True)
    outputs_again = recomputed_share(run, 0.0, product=True)
    for stack in run.stacks:
        for projection in shape.attention_kind.projections(layout.tp):
            yield from gemm(run, f"{projection.name}{stack.ending}", stack.tokens, projection.outputs,
                            projection.inputs, count=layers * stack.blocks * projection.runs,
                            recompute=recompute_fraction)  # fmt: skip
        yield from gemm(run, f"attention output projection{stack.ending}", stack.tokens, shape.hidden,
                        run.value_width / layout.tp, count=layers * stack.blocks * (1.0 + stack.crosses),
                        recompute=outputs_again)  # fmt: skip
    if any_true(run.cross_attentions > 0):
        crosses = layers * run.cross_attentions
        yield from gemm(run, "query projection for the encoder", run.target_tokens, run.query_width / layout.tp,
                        shape.hidden, count=crosses, recompute=recompute_fraction)  # fmt: skip
        yield from gemm(run, "key and value projection of the encoder", run.tokens, run.key_value_width / layout.tp,
                        shape.hidden, count=crosses, recompute=recompute_fraction)  # fmt: skip
    yield from _feed_forward(run)


def _feed_forward(run: TransformerRun) -> Iterator[Operator]:
    layout, data = run.layout, run.data
    shape = run.shape
    recompute_fraction = recomputed_share(run, run.recompute.mlp, product=True)
    moe_layers = run.layers_per_stage * run.shape.moe_share
    up, expert_up = (1 + shape.gated) * shape.ffn, (1 + shape.gated) * shape.moe_ffn
    for stack in run.stacks:
        dense, tokens = run.layers_per_stage * stack.dense, stack.tokens
        if not any_true(dense > 0):
            continue
        if any_true(data.tiles > 1):  # worked in tiles of the sequence, products are more and shorter
            dense, tokens = dense * data.tiles, tokens / data.tiles
        yield from gemm(run, f"feed-forward up projection{stack.ending}", tokens, up / layout.tp, shape.hidden,
                        count=dense, recompute=recompute_fraction)  # fmt: skip
        yield from gemm(run, f"feed-forward down projection{stack.ending}", tokens, shape.hidden,
                        shape.ffn / layout.tp, count=dense, recompute=recompute_fraction)  # fmt: skip
    if not any_true(moe_layers > 0):
        return
    tokens, groups = run.tokens, np.maximum(shape.experts / layout.ep, 1.0)
    rows = expert_load(run) * tokens * shape.experts_active * layout.etp / layout.tp / groups
    again = recomputed_share(run, run.recompute.experts, product=True)
    yield from gemm(run, "router", tokens / layout.tp, shape.experts, shape.hidden, count=moe_layers,
                    recompute=recomputed_share(run, run.recompute.router, product=True),
                    in_plan_precision=False)  # fmt: skip
    yield from gemm(run, "experts, up projection", rows, expert_up / layout.etp, shape.hidden, count=moe_layers,
                    recompute=again, groups=groups)  # fmt: skip
    yield from gemm(run, "experts, down projection", rows, shape.hidden, shape.moe_ffn / layout.etp, count=moe_layers,
                    recompute=again, groups=groups)  # fmt: skip
    if any_true(shape.experts_shared > 0):
        shared = shape.experts_shared * shape.shared_ffn / layout.tp
        yield from gemm(run, "shared expert, up projection", tokens, (1 + shape.gated) * shared, shape.hidden,
                        count=moe_layers, recompute=recompute_fraction)  # fmt: skip
        yield from gemm(run, "shared expert, down projection", tokens, shape.hidden, shared, count=moe_layers,
                        recompute=recompute_fraction)  # fmt: skip


def _elementwise(run: TransformerRun) -> Iterator[Operator]:
    """Norms, residuals, rotary positions, activations, casts: kernels bound by memory."""
    layout, numerics = run.layout, run.numerics
    device, shape = run.cluster.device, run.shape
    software, blocks = run.software, run.blocks
    routed = expert_load(run) * run.shape.moe_share * shape.experts_active * shape.hidden / layout.tp
    rotary = run.attentions * (run.query_width + run.key_value_width) / layout.tp
    sublayers = blocks + run.attentions
    passes = software.elementwise_passes * where(run.software.compiled > 0, software.compiled_passes, 1.0)
    bandwidth = reached_bandwidth(device.bandwidth, device.efficiency.elementwise)
    launches = forward_launches(run)

    # Processors widen what is narrower than fp32 in registers: an element takes as long.
    width = np.maximum(numerics.element_bytes, FP32_BYTES) if device.is_processor else numerics.element_bytes
    # Norms put out fp32 under automatic mixed precision, and so the residual stream is as wide.
    stream = _hidden_share(run) * where(run.autocast > 0, FP32_BYTES / width, 1.0)

    def moved(around: Number, *, backward: bool) -> Number:
        steps = STEPS_BACKWARD if backward else STEPS_FORWARD
        activation = activation_passes(shape.gated, backward=backward) + software.activation_in_steps * steps
        feed_forwards = blocks * (run.shape.active_ffn / run.layout.tp)
        elements = layer_elements(around, sublayers, stream, rotary, software.feed_forward_traffic,
                                  activation, feed_forwards, software.moe_passes, routed)  # fmt: skip
        return elementwise_bytes(passes, run.tokens, width, elements)

    dropped = run.dropout_passes
    drops = any_true(dropped > 0)  # without dropout a pass keeps the very number, so that its source is found
    forward = moved(FORWARD_PASSES + dropped if drops else FORWARD_PASSES, backward=False)
    backward = moved(BACKWARD_PASSES + dropped if drops else BACKWARD_PASSES, backward=True)
    recompute_fraction = recomputed_share(
        run, np.maximum(run.recompute.norm, run.recompute.activation) * RECOMPUTED_ELEMENTWISE, product=False
    )
    layers = run.layers_per_stage
    yield Operator("norms, residuals and activations", "compute", "forward", "layer", 0.0, forward, 1.0, bandwidth,
                   layers, launches)  # fmt: skip
    yield Operator("norms, residuals and activations, backward", "compute", "backward", "layer", 0.0, backward, 1.0,
                   bandwidth, layers, 2.0 * launches)  # fmt: skip
    yield Operator("norms, residuals and activations, recomputed", "compute", "recompute", "layer", 0.0, forward, 1.0,
                   bandwidth, layers * recompute_fraction, launches)  # fmt: skip
    numbers = run.random_numbers
    if device.is_processor and any_true(numbers > 0):
        drawn = device.units / (software.random_number_ns * NANO)
        # Each becomes a byte of a mask: none is arithmetic of products, of which samples tell.
        yield Operator("random numbers of dropout", "compute", "forward", "layer", 0.0, run.tokens * numbers, 1.0,
                       drawn, layers * (1.0 + run.recompute.full_layers), 0.0)  # fmt: skip
    routed = run.expert_parameters_per_layer / (layout.ep * layout.etp)
    trained = run.trained_dense * run.stacked_parameters_per_layer / layout.tp + run.trained_experts * routed
    yield Operator("gradient accumulation", "compute", "backward", "layer", 0.0,
                   trained * 2.0 * numerics.gradient_bytes, 1.0,
                   reached_bandwidth(device.bandwidth, device.efficiency.stream), layers)  # fmt: skip


@equation
def new_bytes(tensors: Number, size: Number, kept: Number) -> Number:
    """Bytes of new pages that tensors take."""
    return tensors * where(size > kept, size, 0.0)


def _new_pages(run: TransformerRun) -> Iterator[Operator]:
    """What tensors wait for on a processor that are too large for their memory to be kept: scores, and the ends'."""
    device, software, shape = run.cluster.device, run.software, run.shape
    if not device.is_processor:
        return
    rate, kept = device.units * software.new_page_gbs * GIGA, software.largest_kept_bytes
    scores = run.stored_scores * run.tokens * FP32_BYTES
    forward, backward = (new_bytes(made, scores, kept) for made in (NEW_SCORES, NEW_SCORE_GRADIENTS))
    attending = run.layers_per_stage * shape.attention_kind.attending_share
    layers, again = attending * run.score_matrices, 1.0 + run.recompute.full_layers
    yield Operator("new pages of scores", "compute", "forward", "layer", 0.0, forward, 1.0, rate, layers * again, 0.0)
    yield Operator("new pages of scores, backward", "compute", "backward", "layer", 0.0, backward, 1.0, rate, layers,
                   0.0)  # fmt: skip
    # Those of the loss itself are in its samples. Mixed precision makes two in the narrow type of each in fp32.
    if any_true((shape.vocab > 0) & (np.asarray(run.data.predicted) > 0)) and shape.kind != "vit":
        outputs = shape.vocab / run.layout.tp * FP32_BYTES
        logits = new_bytes(1.0 + run.autocast, run.logit_tokens * outputs, kept)
        weights = new_bytes(NEW_VOCABULARY_GRADIENTS + run.autocast, shape.hidden * outputs * run.trained_ends, kept)
        yield Operator("new pages of logits", "compute", "backward", "last", 0.0, logits, 1.0, rate, 1.0, 0.0)
        yield Operator("new pages of the vocabulary", "compute", "backward", "last", 0.0, weights, 1.0, rate, 1.0, 0.0)


def _casts(run: TransformerRun) -> Iterator[Operator]:
    """Casts of operands to the narrow type, as they are and transposed, in the kernels that make them.

    Weights are cast in the first micro-batch of a step, or each time they were gathered.
    """
    layout = run.layout
    if not any_true(run.kernels.casts > 0):
        return
    shape = run.shape
    weights = run.stacked_parameters_per_layer / layout.tp + run.expert_parameters_per_layer / (layout.ep * layout.etp)
    narrow, routed = _hidden_share(run), run.shape.moe_share * shape.experts_active * shape.hidden / layout.tp
    operands = (
        CAST_RESIDUALS * narrow
        + routed
        + run.query_width / layout.tp
        + CAST_FEED_FORWARDS * (run.shape.active_ffn / run.layout.tp)
    ) * (run.blocks * run.tokens)
    repeats = where(layout.zero >= 3, 1.0, 1.0 / run.micro_batches)
    moving = 2.0 * run.kernels.casts * (run.numerics.element_bytes + run.operand_bytes)
    bandwidth = reached_bandwidth(run.cluster.device.bandwidth, run.cluster.device.efficiency.elementwise)
    yield Operator("casts to the narrow type", "compute", "forward", "layer", 0.0,
                   moving * (operands + repeats * weights), 1.0, bandwidth, run.layers_per_stage, 0.0)  # fmt: skip


# Bytes that casts of operands move in one pass through a layer; backward, gradients are cast the other way.
autocast_bytes = formula()


def _autocasts(run: TransformerRun) -> Iterator[Operator]:
    """Casts of weights and of what norms put out under automatic mixed precision, in every pass."""
    layout = run.layout
    if not any_true(run.autocast > 0):
        return
    weights = run.stacked_parameters_per_layer / layout.tp + run.expert_parameters_per_layer / (layout.ep * layout.etp)
    passes = run.autocast * where(run.software.compiled > 0, run.software.compiled_passes, 1.0)
    moving = autocast_bytes(passes, run.tokens, run.blocks, AUTOCAST_INPUTS * _hidden_share(run), weights,
                            FP32_BYTES, run.numerics.element_bytes)  # fmt: skip
    bandwidth = reached_bandwidth(run.cluster.device.bandwidth, run.cluster.device.efficiency.elementwise)
    layers, again = run.layers_per_stage, recomputed_share(run, 0.0, product=False)
    name = "casts of automatic mixed precision"
    yield Operator(name, "compute", "forward", "layer", 0.0, moving, 1.0, bandwidth, layers, 0.0)
    yield Operator(f"{name}, backward", "compute", "backward", "layer", 0.0, moving, 1.0, bandwidth, layers, 0.0)
    yield Operator(f"{name}, recomputed", "compute", "recompute", "layer", 0.0, moving, 1.0, bandwidth, layers * again,
                   0.0)  # fmt: skip


def _hidden_share(run: TransformerRun) -> Number:
    """Elements of the residual stream that a device works on for a token."""
    return run.shape.hidden / where(run.layout.sequence_parallel > 0, run.layout.tp, 1.0)


def _ends(run: TransformerRun) -> Iterator[Operator]:
    """Embedding, output head and loss."""
    device, shape = run.cluster.device, run.shape
    if any_true((shape.vocab > 0) & (np.asarray(run.data.predicted) > 0)) and shape.kind != "vit":
        outputs = padded(shape.vocab / run.layout.tp)
        yield from gemm(run, "output head", run.logit_tokens, outputs, shape.hidden, count=1.0, where="last",
                        in_plan_precision=False, trained=run.trained_ends)  # fmt: skip
    bandwidth = reached_bandwidth(device.bandwidth, device.efficiency.elementwise)
    loss = run.logit_tokens * shape.vocab / run.layout.tp * run.software.loss_traffic
    yield Operator("loss", "compute", "backward", "last", 0.0, loss, 1.0, bandwidth, 1.0, LOSS_LAUNCHES)
    embedding = run.tokens * shape.hidden * (2.0 * run.numerics.element_bytes + 2.0 * run.numerics.gradient_bytes)
    yield Operator("embedding", "compute", "forward", "first", 0.0, embedding, 1.0, bandwidth, 1.0,
                   EMBEDDING_LAUNCHES)  # fmt: skip


def expert_load(run: TransformerRun) -> Number:
    """Return the tokens of the rank that all others wait for, over the mean; 1 where routing is balanced."""
    if not any_true(run.data.natural_routing > 0) or not any_true(run.layout.ep > 1):
        return 1.0
    load = busiest_load(run.software.expert_spread, run.layout.ep, run.shape.experts)
    return where(run.data.natural_routing > 0, load, 1.0)
