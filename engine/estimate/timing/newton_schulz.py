"""Newton-Schulz iterations: the matrix products by which Muon orthogonalizes an update.

One iteration multiplies X by its transpose, squares that, and applies their sum to X: ``4 n² w + 2 n³`` FLOPs for a
matrix of n × w elements, n the smaller (Jordan et al. 2024).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.timing.roofline import gemm_bytes, gemm_rate, reached_share
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.numeric import Number

# The type the iterations run in, and its bytes.
TYPE, WIDTH = "bf16", 2.0


def iterations(name: str, rows: Number, columns: Number, runs: Number, device: Device) -> Iterator[Operator]:
    """Yield the three products of an iteration on one matrix; they run once a step.

    Args:
        name: what the matrix is.
        rows: its rows.
        columns: its columns.
        runs: iterations of all such matrices on the device in one step.
        device: where they run.
    """
    reach, narrow, wide = device.efficiency, np.minimum(rows, columns), np.maximum(rows, columns)
    share = reached_share(device.gemm_reach(TYPE), reach.sustained, device.clock, 1.0, 1.0)

    def product(label: str, n: Number, k: Number) -> Operator:
        rate = gemm_rate(narrow, n, k, device.peak(TYPE), share, device.units, reach.wave_fill, reach.ramp_length)
        traffic = gemm_bytes(narrow, n, k, WIDTH)
        return Operator(f"Newton-Schulz, {name}, {label}", "optimizer", "step", "step", 2.0 * narrow * n * k, traffic,
                        rate, device.bandwidth * reach.stream, runs)  # fmt: skip

    yield product("with itself", narrow, wide)
    yield product("squared", narrow, narrow)
    yield product("applied", wide, narrow)
