"""Matrix products on the processor, through the BLAS library that NumPy was built with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.machine.benchmark.measurement import Conditions, Measurement, rates

SIZE = 2048  # beyond this the rate of common libraries grows by a few per cent at most
SMALLER = 1024  # for machines where one product of the size above takes long
SLOW_CORES = 4


def measure_processor(conditions: Conditions) -> Iterator[Measurement]:
    """Yield the rate of square products in FLOP/s: 2n³ operations over their time."""
    size = SIZE if conditions.threads > SLOW_CORES else SMALLER
    for name, kind in (("fp32", np.float32), ("fp64", np.float64)):
        conditions.check()
        numbers = np.random.default_rng(0)
        left, right = (numbers.random((size, size)).astype(kind) for _ in range(2))
        target = np.empty_like(left)
        flop_rates = rates(lambda a=left, b=right, c=target: np.matmul(a, b, out=c), 2.0 * size**3, conditions)  # type: ignore[misc]
        how = f"{size}×{size}, NumPy's BLAS"
        yield Measurement(f"cpu.gemm.{name}", f"CPU matrix product, {name}", "FLOP/s", flop_rates, how)
