"""Roofline: how long one kernel takes on one device, from its shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.work import Operator, Work
from capacity_tui.engine.keys import DeviceFact
from capacity_tui.engine.numeric import Curve, Number, any_true, where

TILE_ROWS, TILE_COLUMNS = counted("tile-rows"), counted("tile-columns")
FULL_LINE, FULL_FRAGMENT = counted("full-line"), counted("full-fragment")


reached_share = formula(
    "share = gemm · sustained · clock · rows · columns",
    unit="",
    source="efficiency.yaml: large products in benchmarks, in training without pause, and off the units' grid",
    gemm="share of the peak that large products reach in short benchmarks",
    sustained="share of that left where matrix units run without pause",
    clock="share of the full clock that a power limit leaves",
    rows=("share of the rate that the alignment of the inner length leaves", "", "alignment.rows"),
    columns=("share of the rate that the alignment of the outputs leaves", "", "alignment.columns"),
)


@equation(
    "rate = peak · reach · tiles / (tiles + fill · units) · k / (k + ramp), tiles = max(m / 128, 1) · max(n / 128, 1)",
    unit="FLOP/s",
    source="Williams et al. 2009; wave quantization smoothed; constants fitted to published operator timings",
    m=("rows", "", "tiled_rows"),
    n=("columns", "", "padded"),
    k=("inner length", "", "padded"),
    peak=("dense peak, FLOP/s", "FLOP/s", DeviceFact.PEAKS),
    reach=("share of the peak that large products sustain", "", ("reached_share", "grouped_share")),
    units=("processors of the device that work on tiles side by side", "", DeviceFact.UNITS),
    fill="waves of tiles lost to the last, partly filled one",
    ramp="inner length at which half the rate is reached",
)
def gemm_rate(
    m: Number, n: Number, k: Number, peak: Number, reach: Number, units: Number, fill: Number, ramp: Number
) -> Number:
    """FLOP/s a matrix product (m × k)·(k × n) reaches."""
    tiles = np.maximum(m * (1.0 / TILE_ROWS), 1.0) * np.maximum(n * (1.0 / TILE_COLUMNS), 1.0)
    k = np.maximum(k, 1.0)  # of no inner length there is nothing to multiply, at whatever rate
    return peak * reach * (tiles * k / ((tiles + fill * units) * (k + ramp)))


@equation(
    "share = reach · rows / (rows + min(rows, tile) / 2) if groups > 1 else reach",
    unit="",
    source="the last tile of each group is half full in the mean, and no larger than its rows; published timings of "
    "grouped products",
    reach=("share of the peak that large products sustain", "", "reached_share"),
    rows="rows of a group",
    groups="products side by side",
    tile=("rows of a tile", "", "counts.tile-rows"),
)
def grouped_share(reach: Number, rows: Number, groups: Number, tile: Number) -> Number:
    """Share of the peak that groups of rows leave of what one product reaches: their last tiles are partly filled."""
    return reach * where(groups > 1, rows / (rows + 0.5 * np.minimum(rows, tile)), 1.0)


@equation(
    "load = 1 + spread · sqrt(ranks / experts) · sqrt(2 · ln(ranks))",
    unit="",
    source="the largest of so many independent means of experts' loads; Wang et al. 2024 on violations of balance",
    spread="standard deviation of an expert's tokens over their mean",
    ranks="ranks of the group",
    experts="routed experts of a layer",
)
def busiest_load(spread: Number, ranks: Number, experts: Number) -> Number:
    """Tokens that the busiest rank of an expert-parallel group gets, over the mean."""
    return 1.0 + spread * np.sqrt(ranks / np.maximum(experts, 1.0)) * np.sqrt(2.0 * np.log(ranks))


@equation(
    "rows = (rows + min(rows, tile) / 2) · groups if groups > 1 else rows",
    unit="rows",
    source="the last tile of each group is half full in the mean, and no larger than its rows",
    rows="rows of a group",
    groups="products side by side",
    tile=("rows of a tile", "", "counts.tile-rows"),
)
def tiled_rows(rows: Number, groups: Number, tile: Number) -> Number:
    """Rows that the tiles of groups of rows have room for."""
    return where(groups > 1, (rows + 0.5 * np.minimum(rows, tile)) * groups, rows)


@equation(
    "share = 1 if 64 divides dimension else misaligned if 8 divides dimension else unaligned",
    unit="",
    source="vendors' matrix performance guides; products of 2-byte types off 16 bytes leave the matrix units",
    dimension=("elements of the dimension", "", "padded"),
    misaligned="share of the rate off full lines",
    unaligned="share of the rate off what matrix units load at once",
)
def alignment(dimension: Number, misaligned: Number, unaligned: Number) -> Number:
    """Share of the rate that a ``dimension`` of so many elements leaves."""
    rest = np.mod(dimension, FULL_LINE)
    return where(rest > 0, where(np.mod(rest, FULL_FRAGMENT) > 0, unaligned, misaligned), 1.0)


@equation(
    "padded = 64 · ceil(dimension / 64)",
    unit="",
    source="frameworks pad the vocabulary to full lines",
    dimension="elements before padding",
)
def padded(dimension: Number) -> Number:
    """Elements of a dimension that is padded to full lines."""
    return FULL_LINE * np.ceil(dimension / FULL_LINE)


# Device memory traffic of a matrix product, in bytes, with elements of ``element_bytes`` bytes.
gemm_bytes = formula(
    "bytes = element_bytes · (m·k + k·n + m·n)",
    unit="B",
    source="each operand moved once",
    m="rows",
    n=("columns", "", "padded"),
    k=("inner length", "", "padded"),
    element_bytes=("bytes of an element", "B"),
)

reached_bandwidth = formula(
    "bandwidth = datasheet · share",
    unit="B/s",
    source="efficiency.yaml: what copies and element-wise kernels reach of memory, and of the link to the host",
    datasheet=("bandwidth of the datasheet, B/s", "B/s", (DeviceFact.HOST_BANDWIDTH, DeviceFact.BANDWIDTH)),
    share=("share of it that such kernels reach", "", "coefficients.host-stream"),
)


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


layer_elements = formula(
    "elements = passes · sublayers · hidden + 2 · rotary + traffic · activation · ffn + routing · routed",
    unit="elements",
    source="each operation reads and writes its operands once; the feed-forward's share in caches is fitted",
    passes=(
        "passes over the residual stream around one attention or feed-forward",
        "",
        ("counts.norm-passes-forward", "counts.norm-passes-backward"),
    ),
    sublayers="attentions and feed-forwards of a layer",
    hidden="elements of the residual stream on the device",
    rotary="elements of queries, keys and values, read and written to turn them",
    traffic=(
        "share of the feed-forward's element-wise traffic that reaches memory",
        "",
        "coefficients.feed-forward-traffic",
    ),
    activation="passes over the width of the feed-forward",
    ffn="width of the feed-forward that a token passes on the device",
    routing="passes that sort routed tokens and bring them back",
    routed="elements of the copies of a token that go to experts",
)

elementwise_bytes = formula(
    "bytes = passes · tokens · element_bytes · elements",
    unit="B",
    source="frameworks.yaml: passes of the software over those of one kernel an operation",
    passes="passes of the software's kernels, relative to one kernel an operation",
    tokens="tokens of a micro-batch on the device",
    element_bytes=("bytes of an element", "B"),
    elements=("elements they move for a token, one kernel an operation", "", "layer_elements"),
)


HOST_DEVICES = counted("host-devices")


# Bytes of host memory that an optimizer's step moves in a second for one device.
host_share = formula(
    "bandwidth = min(alone, node / sharing)",
    unit="B/s",
    source="Ren et al. 2021, ZeRO-Offload: a vectorised optimizer on two sockets, which all devices of a host share",
    alone=("most that what stands beside a single device moves, B/s", "B/s"),
    node=("what all processors of a host move together, B/s", "B/s"),
    sharing="devices that share them",
)


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


# Bytes of memory traffic that unpacking weights takes, before their product reads them.
unpacking_bytes = formula(
    "bytes = weights · (packed + moved)",
    unit="B",
    source="packed weights are read, what kernels make of them is written and read; the product reads the last",
    weights="how many",
    packed=("bytes of a packed weight", "B", "stored_weight_bytes"),
    moved=("bytes moved for a weight besides", "B"),
)


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
