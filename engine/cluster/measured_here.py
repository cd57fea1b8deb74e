"""A device with what was measured on it: fitted constants, and the shares of peak and bandwidth of benchmarks."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from capacity_tui.engine.cluster.cluster import Device, Efficiency

if TYPE_CHECKING:
    from capacity_tui.engine.machine import MeasuredEfficiency, MeasuredFacts

_CONSTANTS = frozenset(part.name for part in fields(Efficiency)) - {"gemm", "source", "curves", "errors"}


def device_key(device: Device) -> str:
    """Return the name a device's measurements go by: its catalogue id, or CPU model and usable cores."""
    if device.kind != "cpu":
        return device.id
    words = re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")
    return f"cpu-{words}-{device.units:g}"


def with_measured(device: Device, found: tuple[MeasuredEfficiency, ...], where: str = "this machine") -> Device:
    """Return a device with what was measured on it, if anything was.

    Args:
        device: as the catalogue knows it.
        found: what was measured on devices.
        where: on what, in words.
    """
    key = device_key(device)
    own = next((measured for measured in found if measured.device == key), None)
    return device if own is None else replace(device, efficiency=_with_constants(device.efficiency, own, where))


def _with_constants(efficiency: Efficiency, measured: MeasuredEfficiency, where: str) -> Efficiency:
    """Return what a device reaches, with what was measured in place of the catalogue's constants."""
    numbers = {name: value for name, value in measured.constants.items() if name in _CONSTANTS}
    changed = replace(efficiency, **numbers)  # type: ignore[arg-type]  # only names of numeric fields
    source = f"measured on {where}, {measured.date}"
    return replace(
        changed,
        gemm={**efficiency.gemm, **measured.gemm},
        source=source,
        curves=measured.curves,
        errors=measured.errors,
    )


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
