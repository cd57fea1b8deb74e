"""Kernels that a layer's forward pass launches, counted from its operations, and the host's time for each.

Matrix products and attention are launched once each where they are written (operators.py); here stands all else.
"""

from __future__ import annotations

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.models.transformer import layer_matrices
from capacity_tui.engine.numeric import Number, any_true, where

NORM, ROTARY, GATE = counted("norm-kernels"), counted("rotary-kernels"), counted("gate-kernels")
LAYOUT, UNFUSED_ATTENTION = counted("layout-kernels"), counted("unfused-attention-kernels")
ADAPTER_KERNELS, CAST_KERNELS = counted("adapter-kernels"), counted("cast-kernels")
# Queries, keys and values, and a feed-forward's gate beside its other product, where they are products of their own.
SEPARATE_PROJECTIONS, SEPARATE_GATES = 2.0, 1.0


@equation(
    "kernels = fused + (1 - fused) · separate",
    unit="kernels",
    source="one kernel where the software fuses a group of operations, one an operation where it does not",
    origins={
        "separate": ("counts.norm-kernels", "counts.rotary-kernels", "counts.gate-kernels", "counts.adapter-kernels")
    },
)
def kernels_of(fused: Number, separate: Number) -> Number:
    """Kernels of a group of operations, such as a norm.

    Args:
        fused: share of such groups that the software's kernels fuse.
        separate: operations of the group.
    """
    return fused + (1.0 - fused) * separate


@equation(
    "kernels = norms · norm + attentions · around + feed_forwards · between + products + additions",
    unit="kernels",
    source="operations of a layer as its code writes them",
    origins={"norm": "kernels_of", "between": "kernels_of"},
)
def layer_kernels(
    norms: Number,
    norm: Number,
    attentions: Number,
    around: Number,
    feed_forwards: Number,
    between: Number,
    products: Number,
    additions: Number,
) -> Number:
    """Kernels of a layer's forward pass beside its fused products and attention.

    Args:
        norms: norms of the layer.
        norm: kernels of one.
        attentions: attentions of the layer.
        around: kernels between the products of an attention, beside its core.
        feed_forwards: feed-forwards of the layer.
        between: kernels between the products of a feed-forward.
        products: further products, where projections of the same input are separate ones.
        additions: additions to the residual stream.
    """
    return norms * norm + attentions * around + feed_forwards * between + products + additions


@equation(
    "kernels = routing + expert · experts",
    unit="kernels",
    source="frameworks.yaml: router, sorting and unsorting; products of experts grouped, or one expert after another",
)
def mixture_kernels(routing: Number, expert: Number, experts: Number) -> Number:
    """Further kernels of a mixture layer's forward pass.

    Args:
        routing: kernels that choose experts, sort tokens and bring them back.
        expert: kernels for each expert on the device.
        experts: experts on the device.
    """
    return routing + expert * experts


@equation(
    "seconds = eager · compiled · captured",
    unit="s",
    source="compilers launch a few fused kernels from one program; a captured graph is one launch",
    units={"eager": "s"},
    origins={"compiled": "coefficients.compiled-launches", "captured": "coefficients.captured-launches"},
)
def launch_seconds(eager: Number, compiled: Number, captured: Number) -> Number:
    """Seconds of host time for each kernel that eager code would launch.

    Args:
        eager: seconds of an eager launch.
        compiled: share of launches that a graph compiler leaves.
        captured: share of launches that a captured graph leaves.
    """
    return eager * compiled * captured


def host_launch_seconds(run: TransformerRun) -> Number:
    """Return the host's time for a launch of a run."""
    software = run.software
    captured = where(run.software.captured > 0, software.captured_launches, 1.0)
    compiled = where((run.software.compiled > 0) & (run.software.captured <= 0), software.compiled_launches, 1.0)
    return launch_seconds(software.host_launch_seconds, compiled, captured)


def _unpacked_matrices(run: TransformerRun) -> Number:
    """Matrices of a layer that are unpacked one by one, those of the experts on the device too."""
    matrices = layer_matrices(run.shape)
    return sum((matrix.number / where(matrix.routed, run.layout.ep, 1.0) for matrix in matrices), start=0.0)


def _gathered_matrices(run: TransformerRun) -> Number:
    """Matrices of a layer whose shards are gathered, those of adapters too; experts are gathered together."""
    return sum(
        (matrix.number for matrix in layer_matrices(run.shape) if not matrix.routed),
        start=2.0 * run.adapter.adapted.matrices,
    )


def forward_launches(run: TransformerRun) -> Number:
    """Return the kernels of one layer's forward pass beside its products and attention; the backward pass has twice."""
    shape, software, fused = run.shape, run.software, run.software.fused_kernels
    blocks, attentions = 1.0 + run.encoder_blocks, 1.0 + run.encoder_blocks + run.cross_attentions
    norm = 1.0 if shape.norm == "LayerNorm" else kernels_of(fused, NORM)
    turned = 0.0 if any_true(shape.positions) else kernels_of(fused, ROTARY)
    scores = (1.0 - run.fused_attention) * (UNFUSED_ATTENTION - 1.0)
    around = turned + (1.0 - fused) * LAYOUT + scores
    between = kernels_of(fused, GATE) if shape.gated else 1.0
    separate = (1.0 - fused) * (SEPARATE_PROJECTIONS * attentions + SEPARATE_GATES * shape.gated * blocks)
    launches = layer_kernels(
        shape.norms_per_layer * blocks, norm, attentions, around, blocks, between, separate, blocks + attentions
    )
    if any_true(run.moe_share > 0):
        launches = launches + run.moe_share * mixture_kernels(
            software.moe_launches, software.expert_launches, shape.experts / run.layout.ep
        )
    if any_true(run.adapter.adapted.matrices > 0):
        launches = launches + run.adapter.adapted.matrices * kernels_of(fused, ADAPTER_KERNELS)
    if any_true(run.adapter.unpacking.kernels > 0):
        launches = launches + run.adapter.unpacking.kernels * _unpacked_matrices(run)
    if any_true(run.autocast > 0):
        launches = launches + run.autocast * CAST_KERNELS * (attentions + blocks)
    if any_true(software.gather_launches > 0):
        launches = launches + where(run.layout.zero >= 3, software.gather_launches * _gathered_matrices(run), 0.0)
    return launches
