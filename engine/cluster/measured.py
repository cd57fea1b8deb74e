"""Devices with what was measured on them: here, on the nodes of a cluster, or by benchmarks."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import MeasuredCurve, MeasuredDevice, MeasuredError
from capacity_tui.engine.cluster.cluster import Device, Efficiency
from capacity_tui.engine.cluster.hardware_match import HardwareMatch

if TYPE_CHECKING:
    from capacity_tui.engine.machine import FitError, MeasuredEfficiency, MeasuredFacts
    from capacity_tui.engine.numeric import Curve

_CONSTANTS = frozenset(part.name for part in fields(Efficiency)) - {"gemm", "source", "curves", "errors"}


def device_key(device: Device) -> str:
    """Return the name a device's measurements go by: its catalogue id, or CPU model and usable cores."""
    if device.kind != "cpu":
        return device.id
    words = re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")
    return f"cpu-{words}-{device.units:g}"


def with_measured(device: Device, measurements: tuple[MeasuredEfficiency, ...], where: str = "this machine") -> Device:
    """Return a device with what was measured on it, if anything was.

    Args:
        device: as the catalogue knows it.
        measurements: what was measured on devices.
        where: on what, in words.
    """
    key = device_key(device)
    match = next((measured for measured in measurements if measured.device == key), None)
    return device if match is None else replace(device, efficiency=_with_constants(device.efficiency, match, where))


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


def with_benchmarks(device: Device, benchmarks: MeasuredFacts | None) -> Device:
    """Return a processor with what was measured on it: its memory bandwidth, and the shares of its peaks it reaches.

    Peaks stay those of the datasheet or of the clock; what is measured is the share of them that is reached. All of a
    measured bandwidth is reached, and by elementwise work as much of it as before.
    """
    if benchmarks is None:
        return device
    efficiency = device.efficiency
    rates = {"fp32": benchmarks.fp32_flops, "fp64": benchmarks.fp64_flops}
    measured = {name: fact for name, fact in rates.items() if fact.value and name in device.peaks}
    shares = {name: (fact.value or 0.0) / device.peaks[name] for name, fact in measured.items()}
    bandwidth = benchmarks.memory_bandwidth
    if bandwidth.value:
        device = device.with_bandwidth(bandwidth.value, bandwidth.provenance)
        efficiency = replace(efficiency, stream=1.0, elementwise=efficiency.elementwise / efficiency.stream)
    sources = [fact.source for fact in (*measured.values(), bandwidth) if fact.value]
    if not sources:
        return device
    gemm = {**efficiency.gemm, **shares}
    return replace(device, efficiency=replace(efficiency, gemm=gemm, source=f"measured here: {'; '.join(sources)}"))


def with_cluster_measurements(match: HardwareMatch, name: str, catalog: Catalog) -> HardwareMatch:
    """Return hardware with what was measured on the cluster of a name, where that is one and something was.

    Args:
        match: the devices.
        name: what the plan calls its hardware.
        catalog: rows of clusters, and of devices as they were measured.
    """
    cluster = catalog.clusters.find_id(name)
    rows = [row for row in catalog.measured_devices.values() if row.cluster == cluster]
    if cluster is None or not rows:
        return match
    return replace(match, device=with_measured(match.device, tuple(map(_constants, rows)), cluster))


def _constants(row: MeasuredDevice) -> MeasuredEfficiency:
    from capacity_tui.engine.machine import MeasuredEfficiency  # noqa: PLC0415 - few were measured

    return MeasuredEfficiency(
        device=row.device,
        date=str(row.checked),
        software=row.software,
        gemm=row.gemm,
        constants=row.constants,
        curves=tuple(map(_curve, row.curves)),
        errors=tuple(map(_error, row.errors)),
    )


def _curve(row: MeasuredCurve) -> Curve:
    from capacity_tui.engine.numeric import Curve  # noqa: PLC0415 - few were measured

    return Curve(row.name, row.sizes, row.ratios)


def _error(row: MeasuredError) -> FitError:
    from capacity_tui.engine.machine import FitError  # noqa: PLC0415 - few were measured

    return FitError(row.name, row.count, row.median, row.worst, row.interpolated)
