"""What benchmarks of the processor change in an estimate: the shares of peak and bandwidth that it reaches."""

from __future__ import annotations

from dataclasses import replace

from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.machine.benchmark.benchmark_report import MeasuredFacts


def with_benchmarks(device: Device, found: MeasuredFacts | None) -> Device:
    """Return a processor with what was measured on it: its memory bandwidth, and the shares of its peaks it reaches.

    Peaks stay those of the datasheet or of the clock; what is measured is the share of them that is reached. All of a
    measured bandwidth is reached, and by elementwise work as much of it as before.
    """
    if found is None:
        return device
    reach = device.efficiency
    rates = {"fp32": found.fp32_flops, "fp64": found.fp64_flops}
    measured = {name: fact for name, fact in rates.items() if fact.value and name in device.peaks}
    shares = {name: (fact.value or 0.0) / device.peaks[name] for name, fact in measured.items()}
    bandwidth = found.memory_bandwidth
    if bandwidth.value:
        device = device.with_bandwidth(bandwidth.value, bandwidth.provenance)
        reach = replace(reach, stream=1.0, elementwise=reach.elementwise / reach.stream)
    sources = [fact.source for fact in (*measured.values(), bandwidth) if fact.value]
    if not sources:
        return device
    gemm = {**reach.gemm, **shares}
    return replace(device, efficiency=replace(reach, gemm=gemm, source=f"measured here: {'; '.join(sources)}"))
