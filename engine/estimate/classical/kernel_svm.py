"""Support vector machine with a kernel, by sequential minimal optimization."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.classical.fit import Fit, data_bytes, kept_numbers, memory_parts, prediction_flops
from capacity_tui.engine.estimate.classical.rates import Rates
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.models.classical import KernelSVM
from capacity_tui.engine.numeric import Number

# The cache keeps kernel values in single precision.
CACHED_BYTES = 4.0


@equation(
    "columns = support · (1 + again · max(0, 1 - cached / support))",
    unit="columns",
    source="least recently used cache of kernel columns (Chang and Lin 2011), surplus as measured",
)
def kernel_columns(support: Number, cached: Number, again: Number) -> Number:
    """Columns of the kernel matrix that are computed, those the cache lost several times.

    Args:
        support: support vectors, whose kernel columns are computed.
        cached: columns the cache holds.
        again: times a column beyond the cache is computed again.
    """
    return support * (1.0 + again * np.maximum(0.0, 1.0 - cached / support))


def minimal_optimization(spec: KernelSVM, rates: Rates) -> Fit:
    """Iterations grow with the support vectors; each looks at all rows and needs two kernel columns."""
    n, p, support = float(spec.n), float(spec.p), spec.support_vectors
    row, element_bytes = rates.row, rates.element_bytes
    values = n * p * spec.density
    data, cache = data_bytes(spec, element_bytes), spec.cache_mb * 2.0**20
    iterations = row.ratios["iterations"] * support
    columns = kernel_columns(row.ratios["columns"] * support, cache / (CACHED_BYTES * n), row.ratios["again"])
    return Fit(
        parameters=kept_numbers(**{"support vectors": support * p, "their weights": support, "intercept": 1.0}),
        inference_flops=prediction_flops(distances=support * 3.0 * p, kernels=support * 10.0),
        operators=(
            rates.loop("kernel products", columns * values, "value", flops=2.0),
            rates.loop("kernel values", columns * n, "kernel", flops=12.0),
            rates.loop("working sets and gradients", iterations * n, "row", flops=6.0),
        ),
        memory=memory_parts(
            data={"table": data, "targets": 8.0 * n},
            copies={"copy of the table": 8.0 * values if spec.density >= 1.0 else 12.0 * values},
            work={
                "cached kernel columns": np.minimum(cache, CACHED_BYTES * n * np.minimum(columns, n)),
                "vectors over the rows": row.bytes["row"] * n,
            },
            model={"support vectors": support * p * 8.0, "their weights and indices": support * 16.0},
        ),
        peak="while the kernel cache is full",
    )
