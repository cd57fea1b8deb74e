"""Kernels of a training step beside the products and attention of its layers, which stand in operators.py.

They are those that a layer's forward pass launches, with the host's time for each, those of a frozen base and its
adapters, and the optimizer's step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.run import WIDTH, matrix_operators, update_operators
from capacity_tui.engine.estimate.timing.collectives import all_to_all_seconds
from capacity_tui.engine.estimate.timing.roofline import gemm_rate, reached_bandwidth, unpacking_bytes
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import Collective, Direction, Operator
from capacity_tui.engine.models.transformer import Matrix, layer_matrices
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.record import dataclass

WHOLE_MATRICES = (
    "Newton-Schulz iterations on whole matrices, shared out among the ranks that split a weight; embedding, head and "
    "norms by AdamW"
)


@dataclass(frozen=True, slots=True)
class Shared:
    """Matrices of one stage that a group of ranks shares out."""

    matrices: tuple[Matrix, ...]  # the matrices of the mean layer
    ranks: Number  # ranks that split each of them, and work on whole ones in turn

    def share(self, layers: Number) -> Number:
        """Share of the matrices of so many layers that the busiest rank works on: one at least."""
        number: Number = sum((matrix.number * layers for matrix in self.matrices), start=0.0)
        return np.maximum(1.0 / self.ranks, 1.0 / np.maximum(number, 1.0))

    def weights(self, layers: Number) -> Number:
        """Weights of the matrices of so many layers."""
        sizes = (matrix.number * matrix.rows * matrix.columns for matrix in self.matrices)
        return layers * sum(sizes, start=0.0)


def optimizer_operators(run: TransformerRun) -> Iterator[Operator]:
    """Yield the kernels of the optimizer's step: element by element, and on whole matrices."""
    layout = run.layout
    shard = where(layout.zero >= 1, layout.shard, 1.0)
    expert_shard = where(layout.zero >= 1, np.minimum(layout.shard, run.expert_ranks), 1.0)
    dense = run.layers_per_stage * run.stacked_parameters_per_layer / layout.tp
    experts = run.layers_per_stage * run.expert_parameters_per_layer / (layout.ep * layout.etp)
    inner = dense / shard * run.trained_dense + experts / expert_shard * run.trained_experts
    outer = run.outer_parameters / layout.tp / np.minimum(layout.pp, 2.0) / shard * run.trained_outer
    yield from update_operators(run.numerics, inner, outer, run.cluster, layout.offload_optimizer)
    for shared in _shared(run):
        times = run.layers_per_stage * shared.share(run.layers_per_stage)
        yield from matrix_operators(run.numerics.optimizer, shared.matrices, times, run.cluster.device)


def optimizer_collectives(run: TransformerRun) -> Iterator[Collective]:
    """Slices of matrices travel to the rank that works on the whole, and slices of the update back."""
    for shared in _shared(run):
        if any_true(shared.ranks > 1):
            payload = WIDTH * shared.weights(run.layers_per_stage) / shared.ranks
            seconds = all_to_all_seconds(payload, shared.ranks, 1.0, run.cluster)
            trips = where(run.numerics.optimizer.multiplies_matrices, 2.0, 0.0)
            yield Collective(
                "matrices made whole for Newton-Schulz",
                "data_parallel",
                seconds,
                trips,
                per_step=True,
                bytes=payload,
                group=shared.ranks,
            )


def _shared(run: TransformerRun) -> Iterator[Shared]:
    """Yield the matrices that are orthogonalized; those of adapters are too narrow to take time."""
    layout = run.layout
    if not any_true(run.numerics.optimizer.multiplies_matrices) or any_true(run.adapter.frozen_bytes > 0):
        return
    sharded = layout.zero >= 1
    matrices = layer_matrices(run.shape)
    dense, experts = (tuple(matrix for matrix in matrices if matrix.routed is routed) for routed in (False, True))
    yield Shared(dense, layout.tp * where(sharded, layout.shard, 1.0))
    if any_true(run.shape.experts > 0):
        group = where(sharded, np.minimum(layout.shard, run.expert_ranks), 1.0)
        yield Shared(experts, layout.ep * layout.etp * group)


INPUTS_FORWARD, INPUTS_BACKWARD = counted("adapter-input-passes-forward"), counted("adapter-input-passes-backward")
OUTPUTS_FORWARD, OUTPUTS_BACKWARD = counted("adapter-output-passes-forward"), counted("adapter-output-passes-backward")
DROPOUT_PASSES = counted("adapter-dropout-passes")


adapter_bytes = formula()


def frozen_base_operators(run: TransformerRun) -> Iterator[Operator]:
    """Yield the kernels that unpack a quantized base, and those of adapters: forward, backward and recomputed."""
    if any_true(run.adapter.unpacking.bytes > 0):
        yield from _unpacking(run)
    if any_true(run.adapter.adapted.matrices > 0):
        yield from _adapters(run)


def _unpacking(run: TransformerRun) -> Iterator[Operator]:
    layout = run.layout
    device = run.cluster.device
    packed_experts = run.expert_parameters_per_layer * (run.adapter.expert_width <= 1)
    weights = run.stacked_parameters_per_layer / layout.tp + packed_experts / (layout.ep * layout.etp)
    moved = unpacking_bytes(weights, run.adapter.frozen_bytes, run.adapter.unpacking.bytes)
    bandwidth = reached_bandwidth(device.bandwidth, device.efficiency.stream)
    layers = run.layers_per_stage
    # Operations on single elements, outside the matrix units.
    rate = device.peaks.get("fp32", run.kernels.attention_peak)
    passes: tuple[tuple[str, Direction, Number], ...] = (
        ("", "forward", layers),
        (", backward", "backward", layers),
        (", recomputed", "recompute", layers * run.recompute.full_layers),
    )
    for label, phase, runs in passes:
        yield Operator(
            f"unpacking of the frozen base{label}",
            "compute",
            phase,
            "layer",
            weights * run.adapter.unpacking.flops,
            moved,
            rate,
            bandwidth,
            runs,
            0.0,
        )


def _adapters(run: TransformerRun) -> Iterator[Operator]:
    layout = run.layout
    device, adapted = run.cluster.device, run.adapter.adapted
    reach = device.efficiency
    bandwidth = reached_bandwidth(device.bandwidth, reach.stream)
    share = run.kernels.attention_reach * reach.sustained * device.clock
    rate = gemm_rate(
        run.tokens,
        adapted.rank,
        run.shape.hidden,
        run.kernels.attention_peak,
        share,
        device.units,
        reach.wave_fill,
        reach.ramp_length,
    )
    tokens = run.tokens * run.passed_matrices
    flops = 2.0 * tokens * adapted.rank * (adapted.inputs + adapted.outputs) / layout.tp
    dropped = DROPOUT_PASSES * adapted.dropout
    # Under automatic mixed precision adapters have their parameters' wide type, and cast what passes them to it.
    width = where(run.autocast > 0, run.numerics.weight_bytes, run.numerics.element_bytes)

    def moved(inputs: float, outputs: float) -> Number:
        fused = run.software.fused_kernels
        # A fused adapter adds its second product to the output as it is made, and reads and writes it once more.
        passes_out = np.minimum(outputs, outputs * (1.0 - fused) + 2.0 * fused)
        return adapter_bytes(
            tokens, width, inputs, dropped, adapted.inputs / layout.tp, passes_out, adapted.outputs / layout.tp
        )

    forward, layers = moved(INPUTS_FORWARD, OUTPUTS_FORWARD), run.layers_per_stage
    yield Operator("adapters", "compute", "forward", "layer", flops, forward, rate, bandwidth, layers, 0.0)
    yield Operator(
        "adapters, backward",
        "compute",
        "backward",
        "layer",
        2.0 * flops,
        moved(INPUTS_BACKWARD, OUTPUTS_BACKWARD),
        rate,
        bandwidth,
        layers,
        0.0,
    )
    yield Operator(
        "adapters, recomputed",
        "compute",
        "recompute",
        "layer",
        flops,
        forward,
        rate,
        bandwidth,
        layers * run.recompute.full_layers,
        0.0,
    )


NORM, ROTARY, GATE = counted("norm-kernels"), counted("rotary-kernels"), counted("gate-kernels")
LAYOUT, UNFUSED_ATTENTION = counted("layout-kernels"), counted("unfused-attention-kernels")
ADAPTER_KERNELS, CAST_KERNELS = counted("adapter-kernels"), counted("cast-kernels")
# Queries, keys and values, and a feed-forward's gate beside its other product, where they are products of their own.
SEPARATE_PROJECTIONS, SEPARATE_GATES = 2.0, 1.0


kernels_of = formula()
layer_kernels = formula()
mixture_kernels = formula()  # Further kernels of a mixture layer's forward pass
launch_seconds = formula()  # Seconds of host time for each kernel that eager code would launch


def host_launch_seconds(run: TransformerRun) -> Number:
    """Return the host's time for a launch of a run."""
    software = run.software
    captured = where(run.software.captured > 0, software.captured_launches, 1.0)
    compiled = where((run.software.compiled > 0) & (run.software.captured <= 0), software.compiled_launches, 1.0)
    return launch_seconds(software.host_launch_seconds, compiled, captured)


def _unpacked_matrices(run: TransformerRun) -> Number:
    """Matrices of a layer that are unpacked one by one, those of the experts on the device too."""
    matrices = (one for one in layer_matrices(run.shape) if run.adapter.expert_width <= 1 or not one.routed)
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
    if any_true(run.shape.moe_share > 0):
        launches = launches + run.shape.moe_share * mixture_kernels(
            software.moe_launches, software.expert_launches, shape.experts / run.layout.ep
        )
    if any_true(run.adapter.adapted.matrices > 0):
        alone = where(software.expert_launches > 0, shape.experts / run.layout.ep - 1.0, 0.0)
        adapted = run.adapter.adapted.matrices + run.adapter.adapted.routed * alone
        launches = launches + adapted * kernels_of(fused, ADAPTER_KERNELS)
    if any_true(run.adapter.unpacking.kernels > 0):
        launches = launches + run.adapter.unpacking.kernels * _unpacked_matrices(run)
    if any_true(run.autocast > 0):
        launches = launches + run.autocast * CAST_KERNELS * (attentions + blocks)
    if any_true(software.gather_launches > 0):
        launches = launches + where(run.layout.zero >= 3, software.gather_launches * _gathered_matrices(run), 0.0)
    return launches
