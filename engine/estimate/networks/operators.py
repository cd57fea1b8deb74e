"""The kernels of one step of a network: products by roofline, everything else by bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog.counts import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.networks.run import NetworkRun
from capacity_tui.engine.estimate.timing.host import optimizer_bandwidth
from capacity_tui.engine.estimate.timing.newton_schulz import iterations
from capacity_tui.engine.estimate.timing.roofline import (
    TILE_COLUMNS,
    TILE_ROWS,
    gemm_rate,
    reached_bandwidth,
)
from capacity_tui.engine.estimate.work import Direction, Operator
from capacity_tui.engine.models.networks.layers import Layer
from capacity_tui.engine.numeric import Number

BACKWARD_MOVES = counted("network-backward-passes")
SPLIT_WAVES, SHORTEST_PART = counted("split-waves"), counted("shortest-split")


def network_operators(run: NetworkRun) -> tuple[Operator, ...]:
    """Return every kernel of a step; counts are runs for one micro-batch."""
    return (*_layers(run), *_optimizer(run))


def _layers(run: NetworkRun) -> Iterator[Operator]:
    alike: dict[Layer, int] = {}
    for layer in run.network.layers:
        alike[layer] = alike.get(layer, 0) + 1
    for layer, count in alike.items():
        yield from _product(run, layer, float(count)) if layer.kind == "product" else _moves(run, layer, float(count))


def _product(run: NetworkRun, layer: Layer, count: float) -> Iterator[Operator]:
    """A convolution as the product of its unfolded input with its weights."""
    rows = run.micro_batch * layer.positions
    columns, depth = float(layer.columns), float(layer.depth)
    yield _multiplied(run, layer, layer.name, "forward", rows, columns, depth, count)
    if not run.trains:
        return
    yield _multiplied(run, layer, f"{layer.name}, input gradient", "backward", rows, depth, columns, count)
    yield _multiplied(run, layer, f"{layer.name}, weight gradient", "backward", depth, columns, rows, count)
    if run.recomputed:
        yield _multiplied(run, layer, f"{layer.name}, recomputed", "recompute", rows, columns, depth, count)


def _multiplied(
    run: NetworkRun, layer: Layer, name: str, phase: Direction, m: Number, n: Number, k: Number, count: float
) -> Operator:
    device = run.cluster.device
    reach, element_bytes = device.efficiency, run.numerics.element_bytes
    reached = run.reach * reach.sustained * device.clock
    ramp = reach.ramp_length * 2.0 / element_bytes
    parts = split_depth(m * layer.groups, n, k, device.units)
    rate = gemm_rate(m * layer.groups * parts, n, k / parts, run.peak, reached, device.units, reach.wave_fill, ramp)
    weights = layer.columns * layer.depth * layer.groups
    # The windows of a kernel overlap: caches deliver the unfolded input, memory each element once.
    moved = element_bytes * (run.micro_batch * (layer.moved + layer.output.elements) + weights)
    flops = 2.0 * m * n * k * layer.groups
    return Operator(
        name, "compute", phase, "layer", flops, moved, rate, reached_bandwidth(device.bandwidth, reach.stream), count
    )


@equation(
    "parts = clip(4 · units / tiles, 1, k / 512), tiles = max(m / 128, 1) · max(n / 128, 1)",
    unit="",
    source="libraries split the inner length of products with few output tiles, as weight gradients have",
)
def split_depth(m: Number, n: Number, k: Number, units: Number) -> Number:
    """Parts into which the inner length is split, so that every processor has tiles to work on.

    Args:
        m: rows.
        n: columns.
        k: inner length.
        units: processors of the device that work on tiles side by side.
    """
    tiles = np.maximum(m / TILE_ROWS, 1.0) * np.maximum(n / TILE_COLUMNS, 1.0)
    return np.maximum(1.0, np.minimum(SPLIT_WAVES * units / tiles, k / SHORTEST_PART))


def _moves(run: NetworkRun, layer: Layer, count: float) -> Iterator[Operator]:
    """A kernel bound by memory: norms, activations, pooling, sums and copies."""
    device, row = run.cluster.device, run.framework
    fused = row.compiled_passes if run.compiled else 1.0
    moved = run.micro_batch * layer.moved * run.numerics.element_bytes * fused
    bandwidth = reached_bandwidth(device.bandwidth, device.efficiency.elementwise)
    yield Operator(layer.name, "compute", "forward", "layer", 0.0, moved, 1.0, bandwidth, count)
    if run.trains:
        yield Operator(
            f"{layer.name}, backward",
            "compute",
            "backward",
            "layer",
            0.0,
            moved * BACKWARD_MOVES,
            1.0,
            bandwidth,
            count,
        )
    if run.recomputed:
        yield Operator(f"{layer.name}, recomputed", "compute", "recompute", "layer", 0.0, moved, 1.0, bandwidth, count)


def _optimizer(run: NetworkRun) -> Iterator[Operator]:
    """Read gradients and states, write parameters and states, once a step."""
    if not run.trains:
        return
    device = run.cluster.device
    ranks = run.shard if run.zero >= 1 else 1.0
    updated = run.network.parameters / ranks
    bandwidth = optimizer_bandwidth(run.cluster, run.offload_optimizer)
    yield Operator(
        "optimizer", "optimizer", "step", "step", 0.0, updated * run.numerics.optimizer_traffic, 1.0, bandwidth
    )
    if run.numerics.newton_schulz_steps:
        for matrix in run.matrices:
            runs = run.numerics.newton_schulz_steps * matrix.number / min(ranks, len(run.matrices))
            yield from iterations(matrix.name, matrix.rows, matrix.columns, runs, device)
