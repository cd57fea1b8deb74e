"""Support vector machine with a kernel, by sequential minimal optimization."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.classical.fit import Fit, data_bytes
from capacity_tui.engine.estimate.classical.rates import Rates
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.workload.classical.specs import KernelSVM

# The cache keeps kernel values in single precision.
CACHED_BYTES = 4.0


@equation(
    "columns = support · (1 + again · max(0, 1 - cached / support))",
    unit="columns",
    source="least recently used cache of kernel columns (Chang and Lin 2011), surplus as measured",
)
def kernel_columns(support: Number, cached: Number, again: Number) -> Number:
    """Columns of the kernel matrix that are computed, those the cache lost several times."""
    return support * (1.0 + again * np.maximum(0.0, 1.0 - cached / support))


def minimal_optimization(spec: KernelSVM, rates: Rates) -> Fit:
    """Iterations grow with the support vectors; each looks at all rows and needs two kernel columns."""
    n, p, support = float(spec.n), float(spec.p), spec.support_vectors
    row, width = rates.row, rates.width
    values = n * p * spec.density
    data, cache = data_bytes(spec, width), spec.cache_mb * 2.0**20
    iterations = row.ratios["iterations"] * support
    columns = kernel_columns(row.ratios["columns"] * support, cache / (CACHED_BYTES * n), row.ratios["again"])
    return Fit(
        parameters=support * (p + 1.0) + 1.0,
        inference_flops=support * (3.0 * p + 10.0),
        operators=(
            rates.loop("kernel products", columns * values, "value", flops=2.0),
            rates.loop("kernel values", columns * n, "kernel", flops=12.0),
            rates.loop("working sets and gradients", iterations * n, "row", flops=6.0),
        ),
        memory={
            "data": data + 8.0 * n,
            "copies": 8.0 * values if spec.density >= 1.0 else 12.0 * values,
            "work": np.minimum(cache, CACHED_BYTES * n * np.minimum(columns, n)) + row.bytes["row"] * n,
            "model": support * (p + 2.0) * 8.0,
        },
        peak="while the kernel cache is full",
    )
