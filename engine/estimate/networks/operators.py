"""The kernels of one step of a network: products by roofline, everything else by bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.networks.run import NetworkRun
from capacity_tui.engine.estimate.run import matrix_operators, update_operators
from capacity_tui.engine.estimate.timing.roofline import (
    TILE_COLUMNS,
    TILE_ROWS,
    attention_rate,
    gemm_rate,
    host_link_bandwidth,
    reached_bandwidth,
    unpacking_bytes,
)
from capacity_tui.engine.estimate.work import Direction, Operator
from capacity_tui.engine.models.networks import Layer
from capacity_tui.engine.numeric import Number, any_true

BACKWARD_ATTENTION = counted("fused-attention-backward")
# Kernels that a product's backward pass consists of: the gradients of its input and of its weights.
BACKWARD_HALVES = 2.0
HOST_COPIES = counted("part-copies")
SPLIT_WAVES, SHORTEST_PART = counted("split-waves"), counted("shortest-split")


def network_operators(run: NetworkRun) -> tuple[Operator, ...]:
    """Return every kernel of a step; counts are runs for one micro-batch."""
    return (*_layers(run), *_optimizer(run))


def waiting_operators(run: NetworkRun) -> Iterator[Operator]:
    """Yield the kernels of the networks around this one, and the copies that bring what waits on the host.

    Each part is copied to the device before it works and back behind it, as Diffusers does (enable_model_cpu_offload).
    """
    for part in run.aside:
        yield from _layers(part)
    if run.waits_on_host:
        moved, link = HOST_COPIES * run.stored_bytes, host_link_bandwidth(run.cluster.device)
        yield Operator("parts to the device and back", "compute", "forward", "layer", 0.0, moved, 1.0, link)


def _layers(run: NetworkRun) -> Iterator[Operator]:
    yield from _unpacked(run)
    alike: dict[Layer, int] = {}
    for layer in run.network.layers:
        alike[layer] = alike.get(layer, 0) + 1
    for layer, count in alike.items():
        if layer.flops:
            yield from _product(run, layer, float(count))
        elif layer.moves.forward:
            yield from _moves(run, layer, float(count))


def _unpacked(run: NetworkRun) -> Iterator[Operator]:
    """Quantized weights unpacked before each product: in the forward pass, and again in each that needs them."""
    if not any_true(run.unpacking.bytes > 0):
        return
    device = run.cluster.device
    weights = float(run.network.parameters)
    moved = unpacking_bytes(weights, run.frozen_bytes, run.unpacking.bytes)
    bandwidth = reached_bandwidth(device.bandwidth, device.efficiency.stream)
    rate = device.peaks.get("fp32", run.kernels.peak)
    passes: tuple[tuple[Direction, bool], ...] = (
        ("forward", True),
        ("backward", run.trains),
        ("recompute", run.recomputed),
    )
    for phase in (phase for phase, runs in passes if runs):
        name = f"unpacking of the weights, {phase}"
        yield Operator(name, "compute", phase, "layer", weights * run.unpacking.flops, moved, rate, bandwidth)


def _product(run: NetworkRun, layer: Layer, count: float) -> Iterator[Operator]:
    """A convolution as the product of its unfolded input with its weights, attention as two products."""
    rows, columns, depth = run.data.micro_batch * layer.positions, float(layer.columns), float(layer.depth)
    passes: list[tuple[str, Direction, Number, Number, Number]] = [("", "forward", rows, columns, depth)]
    if run.trains and not layer.frozen:
        passes.append((", input gradient", "backward", rows, depth, columns))
        if not run.adapters or layer.kind == "attention":
            passes.append((", weight gradient", "backward", depth, columns, rows))
        if run.recomputed:
            passes.append((", recomputed", "recompute", rows, columns, depth))
    multiplied = _attended if layer.kind == "attention" else _multiplied
    for suffix, phase, m, n, k in passes:
        yield multiplied(run, layer, f"{layer.name}{suffix}", phase, m, n, k, count)
        if layer.unfolded and layer.groups == 1 and any_true(run.reordered):
            yield _reordered(run, layer, f"{layer.name}{suffix}, order of channels", phase, count)


def _multiplied(
    run: NetworkRun, layer: Layer, name: str, phase: Direction, m: Number, n: Number, k: Number, count: float
) -> Operator:
    kernels = run.kernels
    device, shares = run.cluster.device, run.shares
    reach, element_bytes = device.efficiency, run.numerics.element_bytes
    ramp = reach.ramp_length * 2.0 / element_bytes
    flops = 2.0 * m * n * k * layer.groups
    bandwidth = reached_bandwidth(device.bandwidth, reach.stream)
    if layer.columns == 1 and layer.groups > 1:
        bandwidth = depthwise_bandwidth(bandwidth, shares.depthwise_stream)
        rate: Number = kernels.vector_peak
    else:
        gathered = layer.unfolded and run.reach_given is None and np.all(np.isfinite(reach.gather_rate))
        reached = device.clock * (shares.full if gathered else kernels.gemm_reach * reach.sustained)
        parts = split_depth(m * layer.groups, n, k, device.units)
        full = gemm_rate(
            m * layer.groups * parts, n, k / parts, kernels.peak, reached, device.units, reach.wave_fill, ramp
        )
        fed = fed_rate(full, device.units, reach.gather_rate, element_bytes) if gathered else full
        # Libraries of processors take every product (oneDNN's direct convolutions, which PyTorch asks for).
        saves = layer.overlapping and kernels.peak <= kernels.vector_peak and not device.is_processor
        fewer = shares.fewer_products if saves else 1.0
        library = run.software.convolution_share * reach.convolutions if layer.unfolded else 1.0
        rate = narrow_rate(fed, n, shares.half_columns) * (fewer * library)
    weights = layer.columns * layer.depth * layer.groups
    # The windows of a kernel overlap: caches deliver the unfolded input, memory each element once.
    moved = element_bytes * (run.data.micro_batch * (layer.read + layer.output.elements) + weights)
    return Operator(name, "compute", phase, "layer", flops, moved, rate, bandwidth, count)


fed_rate = formula()
narrow_rate = formula()
depthwise_bandwidth = formula()


def _attended(
    run: NetworkRun, layer: Layer, name: str, phase: Direction, m: Number, n: Number, k: Number, count: float
) -> Operator:
    """Attention between positions; its backward pass is counted in two halves, as a product's is."""
    del m, n, k
    device, kernel = run.cluster.device, run.kernels.attention
    backward, element_bytes = phase == "backward", run.numerics.element_bytes
    reach, half, width = (
        (kernel.backward_reach, kernel.backward_half, kernel.backward_width)
        if backward
        else (kernel.reach, kernel.half, kernel.width)
    )
    peak = run.kernels.peak * device.clock
    rate = attention_rate(float(layer.depth), float(layer.columns), peak, reach, half * kernel.unmasked, width)
    flops = run.data.micro_batch * layer.flops * (BACKWARD_ATTENTION / BACKWARD_HALVES if backward else 1.0)
    moved = element_bytes * run.data.micro_batch * (layer.read + layer.output.elements)
    bandwidth = reached_bandwidth(device.bandwidth, device.efficiency.stream)
    return Operator(name, "attention", phase, "layer", flops, moved, rate, bandwidth, count)


def _reordered(run: NetworkRun, layer: Layer, name: str, phase: Direction, count: float) -> Operator:
    """Input and output of a convolution brought into the order of its kernel and back."""
    device, element_bytes = run.cluster.device, run.numerics.element_bytes
    moved = order_bytes(run.data.micro_batch, float(layer.read + layer.output.elements), element_bytes, run.reordered)
    stream = reached_bandwidth(device.bandwidth, device.efficiency.stream)
    bandwidth = network_bandwidth(stream, device.units, run.shares.unit_elements, element_bytes)
    return Operator(name, "compute", phase, "layer", 0.0, moved, 1.0, bandwidth, count, launches=0.0)


order_bytes = formula()  # Bytes moved to bring a convolution's input and output into another order


@equation
def split_depth(m: Number, n: Number, k: Number, units: Number) -> Number:
    """Parts into which the inner length is split, so that every processor has tiles to work on."""
    tiles = np.maximum(m / TILE_ROWS, 1.0) * np.maximum(n / TILE_COLUMNS, 1.0)
    return np.maximum(1.0, np.minimum(SPLIT_WAVES * units / tiles, k / SHORTEST_PART))


def _moves(run: NetworkRun, layer: Layer, count: float) -> Iterator[Operator]:
    """A kernel bound by memory: norms, activations, pooling, sums and copies."""
    device, moves = run.cluster.device, layer.moves
    forward, backward, alone = moves.fused if run.compiled else (moves.forward, moves.backward, moves.inference)
    passes: list[tuple[str, Direction, int]] = [("", "forward", forward if run.trains else alone)]
    if run.trains and not layer.frozen:
        passes.append((", backward", "backward", backward))
        if run.recomputed:
            passes.append((", recomputed", "recompute", forward))
    stream, element_bytes = reached_bandwidth(device.bandwidth, device.efficiency.stream), run.element_bytes(layer)
    bandwidth = network_bandwidth(stream, device.units, run.shares.unit_elements, element_bytes)
    for suffix, phase, elements in passes:
        if elements:
            moved = moved_bytes(run.data.micro_batch, float(elements), element_bytes)
            yield Operator(f"{layer.name}{suffix}", "compute", phase, "layer", 0.0, moved, 1.0, bandwidth, count)


moved_bytes = formula()  # Bytes that a kernel bound by memory moves
network_bandwidth = formula()  # Bytes that norms, activations and sums move in a second


def _optimizer(run: NetworkRun) -> Iterator[Operator]:
    """Yield the kernels of the optimizer's step: element by element, and on whole matrices."""
    if not run.trains:
        return
    ranks = run.layout.shard if run.layout.zero >= 1 else 1.0
    updated = run.trained_parameters / ranks
    yield from update_operators(run.numerics, updated, 0.0, run.cluster, run.layout.offload_optimizer)
    times = 1.0 / min(ranks, len(run.matrices) or 1.0)
    yield from matrix_operators(run.numerics.optimizer, run.matrices, times, run.cluster.device)
