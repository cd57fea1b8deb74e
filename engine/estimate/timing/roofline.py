"""Roofline: how long one kernel takes on one device, from its shape, attention kernels of several waves among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import OTHER, AttentionKernel, Framework
from capacity_tui.engine.cluster import Cluster, Device, device_setting
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.work import Operator, Work
from capacity_tui.engine.machine import Setting
from capacity_tui.engine.numeric import Curve, Number, any_true, where
from capacity_tui.engine.plan import FASTEST, UNNAMED
from capacity_tui.engine.record import dataclass

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


STORED, SETTING = "eager", "attention"
FORWARD_SCORE = counted("score-flops")
FUSED_BACKWARD = counted("fused-attention-backward")


@dataclass(frozen=True, slots=True)
class AttentionRates:
    """What a kernel of attention reaches on one device."""

    fused: float  # 1 where scores are never stored
    reach: Number  # share of the dense peak at unlimited length and with unlimited heads
    width: Number  # width of a head at which exponentials take as long as products
    half: Number  # tokens at which half of the rate is reached, causal
    unmasked: Number  # share of that where no mask leaves parts of tiles out
    # backward_reach, backward_width, backward_half: the same in the backward pass
    backward_reach: Number
    backward_width: Number
    backward_half: Number


exponential_width = formula()


@equation
def attention_rate(span: Number, head_dim: Number, peak: Number, reach: Number, half: Number, width: Number) -> Number:
    """FLOP/s of fused attention over ``span`` tokens with heads of ``head_dim``."""
    return peak * reach * (span / (span + half)) * (head_dim / (head_dim + width))


def attention_rates(row: AttentionKernel, device: Device, catalog: Catalog) -> AttentionRates:
    """Return what a kernel reaches on a device; what was measured on it counts before the catalogue."""
    efficiency = device.efficiency
    unmasked = catalog.coefficients["unmasked-half-length"].value
    if not row.fused:
        return AttentionRates(0.0, 1.0, 0.0, 1.0, unmasked, 1.0, 0.0, 1.0)

    def of(entries: Mapping[str, float], measured: Number | None) -> Number:
        return entries.get(efficiency.row, entries[OTHER]) if measured is None else measured

    reach, backward = of(row.reach, None), of(row.backward_reach, None)
    exposed = of(row.exposed, None)
    width = exponential_width(reach, exposed, efficiency.exponential_flops, FORWARD_SCORE)
    back_width = exponential_width(backward, exposed, efficiency.exponential_flops, FORWARD_SCORE * FUSED_BACKWARD)
    own = efficiency
    return AttentionRates(
        fused=float(row.fused),
        reach=reach if own.attention_reach is None else own.attention_reach,
        width=width if own.attention_half_width is None else own.attention_half_width,
        half=of(row.half_length, own.attention_half_length),
        unmasked=unmasked,
        backward_reach=backward if own.attention_backward_reach is None else own.attention_backward_reach,
        backward_width=back_width if own.attention_backward_half_width is None else own.attention_backward_half_width,
        backward_half=of(row.backward_half_length, own.attention_backward_half_length),
    )


def attention_kernel(wanted: str, device: Device, software: Framework | None, catalog: Catalog) -> AttentionKernel:
    """Return the kernel that runs where a plan wants one, or the best (``flash``); the framework's own come first."""
    table, row = catalog.attention_kernels, device.efficiency.row
    setting = device_setting(SETTING, device, catalog)
    named = table.get(wanted)
    if named is not None and named.runs_on(row) and (setting is None or setting.value != STORED or not named.fused):
        return named
    if setting is not None and setting.value in table:
        return table[setting.value]
    own = () if software is None else software.attention or catalog.frameworks[UNNAMED].attention
    preferred = [table[name] for name in own if name in table]
    return next(kernel for kernel in chain(preferred, table.values()) if kernel.runs_on(row))


def fastest_kernel(device: Device, catalog: Catalog) -> AttentionKernel:
    """Return the fastest kernel that never stores scores on a device: what inference engines bring."""
    row = device.efficiency.row
    return next(kernel for kernel in catalog.attention_kernels.values() if kernel.fused and kernel.runs_on(row))


def attention_in_place_of(wanted: str, device: Device, catalog: Catalog) -> Setting | None:
    """Return what runs in place of a kernel that a device has not, with the reason; None where a plan's choice runs."""
    runs = attention_kernel(wanted, device, None, catalog)
    setting = device_setting(SETTING, device, catalog)
    if wanted == FASTEST:
        return setting if setting is not None and setting.value != FASTEST else None
    if runs.id == wanted:
        return None
    if setting is not None and setting.value == runs.id:
        return setting
    named = catalog.attention_kernels.get(wanted)
    words = [catalog.efficiencies[row].name for row in named.generations] if named is not None else []
    return Setting(SETTING, runs.id, f"{named.name if named else wanted} is for {', '.join(words)}")


copied_cache_bytes = formula()  # Bytes that a step of decode moves before attention reads keys and values
busy_units = formula()  # Share of the device that attention for single tokens keeps busy
unpacking_flops = formula()  # Operations of vector units in which a token attends to packed keys and values
