"""One device as formulas see it: from its catalogue row and what its generation reaches."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capacity_tui.engine.catalog import Accelerator, Catalog, Processor
from capacity_tui.engine.catalog.rows import MIB
from capacity_tui.engine.errors import CatalogError, Place
from capacity_tui.engine.hardware.cluster import Device, Price, Reach

PEAKS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
# One lane carries this much in one direction, by PCIe generation (GB/s; PCI-SIG, after encoding).
PCIE_LANE_GBS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563, 7: 15.13}


@dataclass(frozen=True, slots=True)
class Found:
    """A device with what its row says about its surroundings."""

    device: Device
    devices: int
    per_node: int
    host_memory_bytes: float | None
    price: Price
    interconnect: str
    assumed: tuple[str, ...] = ()


def reach_of(generation: str, catalog: Catalog) -> Reach:
    """Return what a hardware generation reaches of its datasheet; the row ``other`` where none covers it."""
    table = catalog.efficiencies
    row = next((row for row in table.values() if generation in row.generations), table["other"])
    return Reach(
        gemm=row.gemm,
        sustained=row.sustained,
        wave_fill=row.wave_fill,
        ramp_length=row.ramp_length,
        misaligned=row.misaligned,
        unaligned=row.unaligned,
        attention_forward=row.attention_forward,
        attention_portable=row.attention_portable,
        attention_half_length=row.attention_half_length,
        attention_backward=row.attention_backward,
        attention_unfused=row.attention_unfused,
        stream=row.stream,
        elementwise=row.elementwise,
        launch_seconds=row.launch_us * 1e-6,
        collective_share=row.collective_share,
        switch_reduction=row.switch_reduction,
        collective_half_bytes=row.collective_half_mib * MIB,
        network_share=row.network_share,
        collective_hop_seconds=row.collective_hop_us * 1e-6,
        communicator_bytes=row.communicator_mib * MIB,
        context_bytes=row.context_mib * MIB,
        idle_share=row.idle_share,
        source=f"{row.name}: {row.source} ({row.confidence})",
        row=row.id,
    )


def accelerator_device(row: Accelerator, catalog: Catalog) -> Device:
    """Return a catalogue accelerator as formulas see it."""
    fields = {"fp64": "fp64_tflops"} | {name: kept.peak_field for name, kept in catalog.precisions.items()}
    peaks = {name: peak for name, field in fields.items() if (peak := row.peak_flops(field))}
    if not peaks or row.bandwidth_gbs is None:
        raise CatalogError(
            "peaks or bandwidth of this accelerator are not published",
            row.id,
            "give them in hardware.spec: bf16_tflops, bandwidth_gbs",
            Place(field="hardware.name"),
        )
    host = PCIE_LANE_GBS.get(row.pcie_gen or 4, PCIE_LANE_GBS[4]) * (row.pcie_lanes or 16) * 1e9
    bandwidth = row.bandwidth_gbs * 1e9
    return Device(
        id=row.id,
        name=row.name,
        kind="tpu" if row.vendor in {"Google", "AWS"} else "gpu",
        memory_bytes=float(row.memory_bytes),
        bandwidth=bandwidth,
        peaks=peaks,
        units=float(row.units or 64),
        tdp_watts=row.tdp_w,
        clock=1.0,
        link_bandwidth=row.link_gbs * 1e9 if row.link_gbs else host,
        host_bandwidth=bandwidth if row.unified_memory else host,
        reach=reach_of(row.generation or "", catalog),
        checked=row.checked.isoformat(),
        confidence=row.confidence,
    )


def processor_device(row: Processor, catalog: Catalog) -> Device:
    """Return one socket of a catalogue CPU as formulas see it; its memory is not known."""
    clock = (row.base_ghz or 2.5) * 1e9
    cores = row.cores + row.efficiency_cores
    fp32 = (row.fp32_flops_per_cycle or 32.0) * cores * clock
    peaks = {"fp32": fp32, "fp64": (row.fp64_flops_per_cycle or 16.0) * cores * clock}
    if row.bf16_matrix_flops_per_cycle:
        peaks["bf16"] = row.bf16_matrix_flops_per_cycle * cores * clock
    bandwidth = (row.bandwidth_gbs or 40.0) * 1e9
    return Device(
        id=row.id,
        name=row.name,
        kind="cpu",
        memory_bytes=None,
        bandwidth=bandwidth,
        peaks=peaks,
        units=float(cores),
        tdp_watts=row.tdp_w,
        clock=1.0,
        link_bandwidth=bandwidth * 0.5,
        host_bandwidth=bandwidth,
        reach=reach_of("CPU", catalog),
        checked=row.checked.isoformat(),
        confidence=row.confidence,
    )


def power_limited(device: Device, limit: float) -> Device:
    """Lower the clock to what a power limit leaves: dynamic power grows with its third power."""
    if device.tdp_watts is None:
        return replace(device, tdp_watts=limit)
    clock = min(1.0, (limit / device.tdp_watts) ** (1.0 / 3.0))
    return replace(device, tdp_watts=min(limit, float(device.tdp_watts)) if clock < 1 else limit, clock=clock)
