"""What benchmarks of the processor change in an estimate: the shares of peak and bandwidth that it reaches."""

from __future__ import annotations

from dataclasses import replace

from capacity_tui.engine.hardware.benchmark.report import MeasuredFacts
from capacity_tui.engine.hardware.cluster import Device


def with_benchmarks(device: Device, found: MeasuredFacts | None) -> Device:
    """Return a processor with what was measured on it in place of the shares its generation usually reaches.

    Rates stay those of the datasheet or of the clock; what is measured is the share of them that is reached.
    """
    if found is None:
        return device
    reach = device.reach
    rates = {"fp32": found.fp32_flops.value, "fp64": found.fp64_flops.value}
    shares = {name: rate / device.peaks[name] for name, rate in rates.items() if rate and name in device.peaks}
    bandwidth = found.memory_bandwidth.value
    if bandwidth:
        stream = bandwidth / device.bandwidth
        reach = replace(reach, stream=stream, elementwise=reach.elementwise * stream / reach.stream)
    if not shares and not bandwidth:
        return device
    source = next(fact.source for fact in (found.fp32_flops, found.fp64_flops, found.memory_bandwidth) if fact.value)
    return replace(device, reach=replace(reach, gemm={**reach.gemm, **shares}, source=f"measured: {source}"))
