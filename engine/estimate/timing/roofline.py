"""Roofline: how long one kernel takes on one device, from its shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.work import Operator, Work
from capacity_tui.engine.numeric import Curve, Number, any_true, where

TILE_ROWS, TILE_COLUMNS = counted("tile-rows"), counted("tile-columns")
FULL_LINE, FULL_FRAGMENT = counted("full-line"), counted("full-fragment")


reached_share = formula()


@equation
def gemm_rate(
    m: Number, n: Number, k: Number, peak: Number, reach: Number, units: Number, fill: Number, ramp: Number
) -> Number:
    """FLOP/s a matrix product (m × k)·(k × n) reaches."""
    tiles = np.maximum(m * (1.0 / TILE_ROWS), 1.0) * np.maximum(n * (1.0 / TILE_COLUMNS), 1.0)
    k = np.maximum(k, 1.0)  # of no inner length there is nothing to multiply, at whatever rate
    return peak * reach * (tiles * k / ((tiles + fill * units) * (k + ramp)))


@equation
def grouped_share(reach: Number, rows: Number, groups: Number, tile: Number) -> Number:
    """Share of the peak that groups of rows leave of what one product reaches: their last tiles are partly filled."""
    return reach * where(groups > 1, rows / (rows + 0.5 * np.minimum(rows, tile)), 1.0)


@equation
def busiest_load(spread: Number, ranks: Number, experts: Number) -> Number:
    """Tokens that the busiest rank of an expert-parallel group gets, over the mean."""
    return 1.0 + spread * np.sqrt(ranks / np.maximum(experts, 1.0)) * np.sqrt(2.0 * np.log(ranks))


@equation
def tiled_rows(rows: Number, groups: Number, tile: Number) -> Number:
    """Rows that the tiles of groups of rows have room for."""
    return where(groups > 1, (rows + 0.5 * np.minimum(rows, tile)) * groups, rows)


@equation
def alignment(dimension: Number, misaligned: Number, unaligned: Number) -> Number:
    """Share of the rate that a ``dimension`` of so many elements leaves."""
    rest = np.mod(dimension, FULL_LINE)
    return where(rest > 0, where(np.mod(rest, FULL_FRAGMENT) > 0, unaligned, misaligned), 1.0)


@equation
def padded(dimension: Number) -> Number:
    """Elements of a dimension that is padded to full lines."""
    return FULL_LINE * np.ceil(dimension / FULL_LINE)


gemm_bytes = formula()  # Device memory traffic of a matrix product, in bytes, with elements of ``element_bytes`` bytes
reached_bandwidth = formula()


def operator_seconds(operator: Operator) -> Number:
    """Seconds of one run: the larger of arithmetic and memory time (roofline)."""
    return np.maximum(operator.flops / operator.rate, operator.bytes / operator.bandwidth)


# Passes over the residual stream around attention and around the feed-forward, one kernel an operation.
FORWARD_PASSES, BACKWARD_PASSES = counted("norm-passes-forward"), counted("norm-passes-backward")

PLAIN_PASSES = counted("activation-passes")
GATE_FORWARD, GATE_BACKWARD = counted("gate-passes-forward"), counted("gate-passes-backward")


def activation_passes(gated: bool, *, backward: bool) -> Number:
    """Passes over the width of a feed-forward between its products, its activation's and its gate's."""
    return PLAIN_PASSES + gated * (GATE_BACKWARD if backward else GATE_FORWARD)


layer_elements = formula()
elementwise_bytes = formula()


HOST_DEVICES = counted("host-devices")


host_share = formula()  # Bytes of host memory that an optimizer's step moves in a second for one device


def optimizer_bandwidth(cluster: Cluster, offloaded: Number) -> Number:
    """Bytes an optimizer's step moves in a second: in device memory, or in that of the host where it is offloaded."""
    device = cluster.device
    reach = device.efficiency
    own = reached_bandwidth(device.bandwidth, reach.stream * reach.optimizer_stream)
    if not any_true(np.asarray(offloaded) > 0):
        return own
    sharing = np.minimum(np.minimum(cluster.per_node, cluster.devices), HOST_DEVICES)
    shared = host_share(reach.host_optimizer_alone, reach.host_optimizer, sharing)
    return where(np.asarray(offloaded) > 0, shared, own)


def host_link_bandwidth(device: Device) -> Number:
    """Bytes that copies between a device and pinned host memory move in a second."""
    return reached_bandwidth(device.host_bandwidth, device.efficiency.host_stream)


unpacking_bytes = formula()  # Bytes of memory traffic that unpacking weights takes, before their product reads them


def as_measured(work: Work, device: Device, precision: str) -> Work:
    """Return the work with measured rates; the roofline stays where a size was not sampled, and is named."""
    curves = {curve.name: curve for curve in device.efficiency.curves}
    if not curves:
        return work
    native = device.native(precision)
    unsampled: list[str] = []

    def timed(operator: Operator) -> Operator:
        curve = curves.get(curve_name(operator, native))
        if curve is None:
            return operator
        if not np.all(np.asarray(curve.covers(_sampled_size(operator, curve))) > 0):
            unsampled.append(operator.name)
        return _timed(operator, curve, device.bandwidth)

    phases = tuple(replace(phase, operators=tuple(map(timed, phase.operators))) for phase in work.phases)
    note = (f"outside the sampled sizes, by roofline: {', '.join(unsampled)}",) if unsampled else ()
    return replace(work, phases=phases, assumed=(*work.assumed, *note))


def curve_name(operator: Operator, precision: str) -> str:
    """Return the curve that speaks of an operator."""
    if operator.part == "attention":
        return f"attention{'_backward' if operator.phase == 'backward' else ''}.{precision}"
    return f"gemm.{precision}" if _computes(operator) else operator.name


def _computes(operator: Operator) -> bool:
    return operator.part != "optimizer" and any_true(operator.flops > 0)


def _sampled_size(operator: Operator, curve: Curve) -> Number:
    """Return the size that a curve is asked for: what is bound by memory is no faster beyond the largest sampled."""
    return operator.flops if _computes(operator) else np.minimum(operator.bytes, curve.sizes[-1])


def _timed(operator: Operator, curve: Curve, nominal: Number) -> Operator:
    """Return an operator at the speed measured for its size; memory-bound ones by the nominal bandwidth."""
    if _computes(operator):
        return replace(operator, rate=operator.rate * curve.at(operator.flops))
    size = _sampled_size(operator, curve)
    bandwidth = where(curve.covers(size) > 0, nominal * curve.at(size), operator.bandwidth)
    return replace(operator, bandwidth=bandwidth)
