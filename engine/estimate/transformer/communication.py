"""The communication of one training step of a transformer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.timing.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    point_to_point_seconds,
)
from capacity_tui.engine.estimate.timing.roofline import host_link_bandwidth
from capacity_tui.engine.estimate.transformer.activations import kept_per_token, layer_input
from capacity_tui.engine.estimate.transformer.attention import context_collectives
from capacity_tui.engine.estimate.transformer.auxiliary_kernels import optimizer_collectives
from capacity_tui.engine.estimate.transformer.memory_terms import activation_bytes
from capacity_tui.engine.estimate.transformer.operators import expert_load
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import Collective
from capacity_tui.engine.numeric import Number, any_true, where

STAGE_MESSAGES = counted("stage-messages")
EXPERT_EXCHANGES = counted("expert-exchanges")


def training_collectives(run: TransformerRun) -> tuple[Collective, ...]:
    """Return every collective of a step. Ranks are ordered tensor, context, data, pipeline."""
    return (
        *_tensor_parallel(run),
        *context_collectives(run),
        *_expert_parallel(run),
        *_pipeline(run),
        *_data_parallel(run),
        *optimizer_collectives(run),
        *host_copies(run),
    )


stalled_seconds = formula()
layered_seconds = formula()
sharded_backward_seconds = formula()
broadcast_seconds = formula()  # Seconds until every rank has the tensors that each of them owns
reduction_seconds = formula()


def _used(size: Number) -> bool:
    return any_true(size > 1)


def _tensor_parallel(run: TransformerRun) -> Iterator[Collective]:
    """One all-reduce forward and one backward around attention and feed-forward; recomputation repeats the former."""
    layout = run.layout
    if not _used(layout.tp):
        return
    payload = run.tokens * run.shape.hidden * run.numerics.element_bytes
    seconds = all_reduce_seconds(payload, layout.tp, 1.0, run.cluster)
    seconds = stalled_seconds(seconds, where(layout.tp > 1, run.software.tp_stall_seconds, 0.0))
    blocks = run.blocks + run.attentions
    count = run.layers_per_stage * blocks * (2.0 + run.recompute.full_layers)
    # Pieces of a product hide behind its other pieces where the sequence is split and the fast link holds the group.
    inside = where(layout.tp <= run.cluster.direct_devices, layout.sequence_parallel, 0.0)
    overlap = run.software.tp_overlap * inside
    yield Collective(
        "all-reduce of activations", "tensor_parallel", seconds, count, overlap, bytes=payload, group=layout.tp
    )


def _expert_parallel(run: TransformerRun) -> Iterator[Collective]:
    """Tokens travel to their experts and back, forward and backward."""
    layout = run.layout
    if not _used(layout.ep) or not any_true(run.shape.moe_share > 0):
        return
    payload = (
        expert_load(run)
        * run.tokens
        / layout.tp
        * run.shape.experts_active
        * run.shape.hidden
        * run.numerics.element_bytes
    )
    seconds = all_to_all_seconds(payload, layout.ep, layout.etp, run.cluster, run.shape.experts_active)
    # Tokens cross again where the whole feed-forward of a mixture layer is computed again.
    again = run.recompute.full_layers + (1.0 - run.recompute.full_layers) * run.recompute.mlp
    count = run.layers_per_stage * run.shape.moe_share * (EXPERT_EXCHANGES + 2.0 * again)
    yield Collective(
        "all-to-all of tokens",
        "expert_parallel",
        seconds,
        count,
        run.software.ep_overlap,
        bytes=payload,
        group=layout.ep,
        stride=layout.etp,
    )


def _pipeline(run: TransformerRun) -> Iterator[Collective]:
    """Activations to the next stage and their gradients back, for every chunk."""
    layout = run.layout
    if not _used(layout.pp):
        return
    payload = run.tokens * run.shape.hidden * run.numerics.element_bytes / layout.tp
    stride = layout.tp * layout.cp * layout.dp
    seconds = where(layout.pp > 1, point_to_point_seconds(payload, stride, run.cluster), 0.0)
    yield Collective(
        "activations between stages",
        "pipeline_bubble",
        seconds,
        2.0 * layout.interleave,
        run.software.pipeline_overlap,
        bytes=payload,
        group=layout.pp,
        stride=stride,
    )


@equation
def message_seconds(stall: Number, interleave: Number, stages: Number) -> Number:
    """Seconds of a micro-batch in which a stage waits for messages that block the host."""
    return stall * interleave * np.minimum(2.0 * (stages - 1.0), STAGE_MESSAGES)


def _data_parallel(run: TransformerRun) -> Iterator[Collective]:
    """Gradients are reduced; sharded parameters are gathered before they are used."""
    layout = run.layout
    ends = run.outer_parameters / layout.tp / np.minimum(layout.pp, 2.0)
    layers = run.layers_per_stage * run.stacked_parameters_per_layer / layout.tp
    dense = layers + ends
    of_dense = (run.trained_dense * layers + run.trained_outer * ends) / dense
    experts = run.layers_per_stage * run.expert_parameters_per_layer / (layout.ep * layout.etp)
    groups = (
        ("", dense, of_dense, run.replica_ranks, layout.tp),
        (" of experts", experts, run.trained_experts, run.expert_ranks, layout.ep * layout.etp),
    )
    for suffix, parameters, share, ranks, stride in groups:
        if not any_true(parameters > 0) or not _used(ranks):
            continue
        yield from _reduction(run, suffix, parameters, share, ranks, stride)


def _reduction(
    run: TransformerRun, suffix: str, parameters: Number, trained: Number, ranks: Number, stride: Number
) -> Iterator[Collective]:
    numerics = run.numerics
    overlap = run.software.dp_overlap
    shard = np.minimum(run.layout.shard, ranks)
    replicas = np.maximum(ranks / shard, 1.0)
    gradient = parameters * numerics.gradient_bytes * trained
    values = parameters * run.adapter.gathered_bytes(numerics.element_bytes)
    layers = run.layers_per_stage
    gather = layered_seconds(layers, all_gather_seconds(values / layers, shard, stride, run.cluster))
    reduce = layered_seconds(layers, all_gather_seconds(gradient / layers, shard, stride, run.cluster))
    across = all_reduce_seconds(gradient / shard, replicas, stride * shard, run.cluster)
    all_reduced = layered_seconds(layers, all_reduce_seconds(gradient / layers, ranks, stride, run.cluster))
    turn = all_gather_seconds(0.0, shard, stride, run.cluster)
    updated = where(run.software.broadcasts_parameters > 0, broadcast_seconds(gather, shard, turn), gather)
    none, states, gradients, full = (where(run.layout.zero == stage, 1.0, 0.0) for stage in range(4))
    late = run.accumulates_whole * (gradients + full)
    backward = sharded_backward_seconds(full, gather, gradients + full - late, reduce)
    reduced = reduction_seconds(none, all_reduced, states + late, reduce, across)
    yield Collective(
        f"gather sharded parameters{suffix}",
        "data_parallel",
        full * gather,
        1.0,
        overlap,
        bytes=values,
        hides_behind="forward",
        group=shard,
        stride=stride,
    )
    yield Collective(
        f"gather and reduce in the backward pass{suffix}",
        "data_parallel",
        backward,
        1.0,
        overlap,
        bytes=values,
        hides_behind="backward",
        group=shard,
        stride=stride,
    )
    yield Collective(
        f"reduce gradients{suffix}",
        "data_parallel",
        reduced,
        1.0,
        overlap,
        per_step=True,
        bytes=gradient,
        hides_behind="backward",
        group=ranks,
        stride=stride,
    )
    yield Collective(
        f"gather updated parameters{suffix}",
        "data_parallel",
        (states + gradients) * updated,
        1.0,
        overlap * run.software.prefetches_parameters,
        per_step=True,
        bytes=values,
        hides_behind="forward",
        group=shard,
        stride=stride,
    )


CROSSINGS = counted("host-crossings")


crossing_seconds = formula()


def host_copies(run: TransformerRun) -> Iterator[Collective]:
    """Yield the copies of a micro-batch between a device and its host: they hide behind kernels where these last."""
    layout = run.layout
    link = host_link_bandwidth(run.cluster.device)
    if any_true(layout.offload_parameters > 0):
        dense = run.layers_per_stage * run.stacked_parameters_per_layer / layout.tp
        experts = run.layers_per_stage * run.expert_parameters_per_layer / (layout.ep * layout.etp)
        held = (dense + experts) * run.numerics.element_bytes / where(layout.zero >= 3, layout.shard, 1.0)
        seconds = crossing_seconds(CROSSINGS, where(layout.offload_parameters > 0, held, 0.0), link)
        yield Collective("parameters from the host", "data_parallel", seconds, 1.0, 1.0, bytes=held)
    if any_true(layout.offload_activations > 0):
        kept = activation_bytes(
            run.tokens,
            run.layers_per_stage,
            run.recompute.full_layers,
            kept_per_token(run, run.recompute),
            layer_input(run),
        )
        seconds = crossing_seconds(CROSSINGS, where(layout.offload_activations > 0, kept, 0.0), link)
        yield Collective("activations to the host and back", "overhead", seconds, 1.0, 1.0, bytes=kept)
