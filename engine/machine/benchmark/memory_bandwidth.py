"""Memory bandwidth: copy and triad over arrays that no cache holds, on all threads at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from capacity_tui.engine.machine.benchmark.measurement import Conditions, Measurement, rates

CACHES_DEEP = 4  # STREAM's rule: arrays at least four times the last-level cache
LEAST_BYTES, MOST_BYTES = 64 << 20, 1 << 30
SHARE_OF_MEMORY = 0.1  # of what is free, for all arrays


def measure_memory(conditions: Conditions) -> Iterator[Measurement]:
    """Yield bandwidths in bytes a second, reads and writes counted as STREAM counts them (McCalpin 1995)."""
    wanted = max(LEAST_BYTES, CACHES_DEEP * conditions.cache_bytes)
    size = int(min(wanted, MOST_BYTES, conditions.memory_bytes * SHARE_OF_MEMORY / 3)) // 8
    threads = max(1, conditions.threads)
    first, second, target = (np.ones(size) for _ in range(3))
    parts = [slice(start, start + -(-size // threads)) for start in range(0, size, -(-size // threads))]
    how = f"{threads} threads over arrays of {size * 8 >> 20} MiB, NumPy"
    with ThreadPoolExecutor(threads) as pool:

        def together(work: Callable[[slice], None]) -> Callable[[], object]:
            return lambda: list(pool.map(work, parts))

        def copy(part: slice) -> None:
            np.copyto(target[part], first[part])

        def triad(part: slice) -> None:
            np.multiply(second[part], 3.0, out=target[part])
            np.add(target[part], first[part], out=target[part])

        bandwidths = rates(together(copy), 2 * 8 * size, conditions)
        yield Measurement("memory.copy", "memory copy", "B/s", bandwidths, how)
        conditions.check()
        bandwidths = rates(together(triad), 5 * 8 * size, conditions)
        yield Measurement("memory.triad", "memory triad", "B/s", bandwidths, f"{how}, in two passes")
