"""Roofline: how long one kernel takes on one device, from its shape."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.numeric import Number, where

TILE_ROWS, TILE_COLUMNS = counted("tile-rows"), counted("tile-columns")
FULL_LINE, FULL_FRAGMENT = counted("full-line"), counted("full-fragment")


@equation(
    "share = gemm · sustained · clock · rows · columns",
    unit="",
    source="efficiency.yaml: large products in benchmarks, in training without pause, and off the units' grid",
    origins={"rows": "alignment.rows", "columns": "alignment.columns"},
)
def reached_share(gemm: Number, sustained: Number, clock: Number, rows: Number, columns: Number) -> Number:
    """Share of the peak that large products sustain in a run.

    Args:
        gemm: share of the peak that large products reach in short benchmarks.
        sustained: share of that left where matrix units run without pause.
        clock: share of the full clock that a power limit leaves.
        rows: share of the rate that the alignment of the inner length leaves.
        columns: share of the rate that the alignment of the outputs leaves.
    """
    return gemm * sustained * clock * rows * columns


@equation(
    "rate = peak · reach · tiles / (tiles + fill · units) · k / (k + ramp), tiles = max(m / 128, 1) · max(n / 128, 1)",
    unit="FLOP/s",
    source="Williams et al. 2009; wave quantization smoothed; constants fitted to published operator timings",
    units={"peak": "FLOP/s"},
    origins={
        "n": "padded",
        "k": "padded",
        "peak": "hardware.peaks",
        "reach": ("reached_share", "grouped_share"),
        "units": "hardware.units",
    },
)
def gemm_rate(
    m: Number, n: Number, k: Number, peak: Number, reach: Number, units: Number, fill: Number, ramp: Number
) -> Number:
    """FLOP/s a matrix product (m × k)·(k × n) reaches.

    Args:
        m: rows.
        n: columns.
        k: inner length.
        peak: dense peak, FLOP/s.
        reach: share of the peak that large products sustain.
        units: processors of the device that work on tiles side by side.
        fill: waves of tiles lost to the last, partly filled one.
        ramp: inner length at which half the rate is reached.
    """
    tiles = np.maximum(m * (1.0 / TILE_ROWS), 1.0) * np.maximum(n * (1.0 / TILE_COLUMNS), 1.0)
    return peak * reach * (tiles * k / ((tiles + fill * units) * (k + ramp)))


@equation(
    "share = reach · rows / (rows + 128 / 2) if groups > 1 else reach",
    unit="",
    source="the last tile of each group is half full in the mean; published timings of grouped products",
    origins={"reach": "reached_share"},
)
def grouped_share(reach: Number, rows: Number, groups: Number) -> Number:
    """Share of the peak that groups of rows leave of what one product reaches: their last tiles are partly filled.

    Args:
        reach: share of the peak that large products sustain.
        rows: rows of a group.
        groups: products side by side.
    """
    return reach * where(groups > 1, rows / (rows + 0.5 * TILE_ROWS), 1.0)


@equation(
    "share = 1 if 64 divides dimension else misaligned if 8 divides dimension else unaligned",
    unit="",
    source="vendors' matrix performance guides; products of 2-byte types off 16 bytes leave the matrix units",
    origins={"dimension": "padded"},
)
def alignment(dimension: Number, misaligned: Number, unaligned: Number) -> Number:
    """Share of the rate that a ``dimension`` of so many elements leaves.

    Args:
        dimension: elements of the dimension.
        misaligned: share of the rate off full lines.
        unaligned: share of the rate off what matrix units load at once.
    """
    rest = np.mod(dimension, FULL_LINE)
    return where(rest > 0, where(np.mod(rest, FULL_FRAGMENT) > 0, unaligned, misaligned), 1.0)


@equation("padded = 64 · ceil(dimension / 64)", unit="", source="frameworks pad the vocabulary to full lines")
def padded(dimension: Number) -> Number:
    """Elements of a dimension that is padded to full lines.

    Args:
        dimension: elements before padding.
    """
    return FULL_LINE * np.ceil(dimension / FULL_LINE)


@equation(
    "bytes = element_bytes · (m·k + k·n + m·n)",
    unit="B",
    source="each operand moved once",
    units={"element_bytes": "B"},
    origins={"n": "padded", "k": "padded"},
)
def gemm_bytes(m: Number, n: Number, k: Number, element_bytes: Number) -> Number:
    """Device memory traffic of a matrix product, in bytes, with elements of ``element_bytes`` bytes.

    Args:
        m: rows.
        n: columns.
        k: inner length.
        element_bytes: bytes of an element.
    """
    return element_bytes * (m * k + k * n + m * n)


@equation(
    "bandwidth = datasheet · share",
    unit="B/s",
    source="efficiency.yaml: what copies and element-wise kernels reach of memory, and of the link to the host",
    units={"datasheet": "B/s"},
    origins={"datasheet": ("hardware.host_bandwidth", "hardware.bandwidth"), "share": "coefficients.host-stream"},
)
def reached_bandwidth(datasheet: Number, share: Number) -> Number:
    """Bytes a kernel moves in a second.

    Args:
        datasheet: bandwidth of the datasheet, B/s.
        share: share of it that such kernels reach.
    """
    return datasheet * share


def operator_seconds(operator: Operator) -> Number:
    """Seconds of one run: the larger of arithmetic and memory time (roofline)."""
    return np.maximum(operator.flops / operator.rate, operator.bytes / operator.bandwidth)
