"""A snapshot as gauges, for those who collect metrics."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.observe.exporting import Gauge
from capacity_tui.engine.observe.profile.snapshots import GPU_NUMBERS, NUMBERS, ResourceSnapshot


def gauges_of(snapshot: ResourceSnapshot) -> Iterator[Gauge]:
    """Yield every number of a snapshot that could be had."""
    for name in NUMBERS:
        value = getattr(snapshot, name)
        if value is not None:
            yield Gauge(name, float(value))
    for number, percent in enumerate(snapshot.cpu_per_core_percent or ()):
        yield Gauge("core_percent", percent, {"core": str(number)})
    for gpu in snapshot.gpus:
        for name in GPU_NUMBERS:
            value = getattr(gpu, name)
            if value is not None:
                yield Gauge(f"gpu_{name}", float(value), {"gpu": str(gpu.index)})
        for reason in gpu.throttle or ():
            yield Gauge("gpu_throttled", 1.0, {"gpu": str(gpu.index), "reason": reason})
