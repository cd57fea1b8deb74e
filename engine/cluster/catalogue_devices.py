"""One device as formulas see it: from its catalogue row and what its generation reaches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from capacity_tui.engine.catalog import Accelerator, Catalog, Processor
from capacity_tui.engine.catalog.rows import FROM_USER, MIB, Assumption, Row
from capacity_tui.engine.cluster.cluster import SIXTEEN_BIT, Device, Efficiency
from capacity_tui.engine.errors import CatalogError, Place
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Provenance, Setting, find_generation, usable_memory
from capacity_tui.engine.units import TERA

# One lane carries this much in one direction, by PCIe generation (GB/s; PCI-SIG, after encoding).
PCIE_LANE_GBS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563, 7: 15.13}


SPEC_FIGURES = {
    "memory_mib": "memory_bytes",
    "usable_memory_mib": "memory_bytes",
    "bandwidth_gbs": "bandwidth",
    "tdp_w": "tdp_watts",
    "link_gbs": "link_bandwidth",
    "units": "units",
    "host_gbs": "host_bandwidth",
    "node_gbs": "node_bandwidth",
    "host_memory_gib": "host_memory_bytes",
    "fp64_tflops": "peaks.fp64",
    "fp32_tflops": "peaks.fp32",
    "tf32_tflops": "peaks.tf32",
    "fp16_tflops": "peaks.fp16",
    "bf16_tflops": "peaks.bf16",
    "fp8_tflops": "peaks.fp8",
    "int8_tops": "peaks.int8",
    "fp4_tflops": "peaks.fp4",
}
"""The figure that each key of a plan's hardware.spec, or of a catalogue row, gives."""
CLUSTER_FIGURES = ("node_bandwidth", "host_memory_bytes")
# Dynamic power grows with the third power of the clock.
CLOCK_OF_POWER = 1.0 / 3.0
UNKNOWN_SOURCE = Provenance("assumed", "nothing tells")
DEVICE_FIGURES = ("memory_bytes", "bandwidth", "peaks", "units", "tdp_watts", "link_bandwidth", "host_bandwidth")


def efficiency_of(generation: str, catalog: Catalog) -> Efficiency:
    """Return what a hardware generation reaches of its datasheet; the row ``other`` where none covers it."""
    table = catalog.efficiencies
    row = next((row for row in table.values() if generation in row.generations), table["other"])
    return Efficiency(
        gemm=row.gemm,
        grouped=row.grouped,
        sustained=row.sustained,
        wave_fill=row.wave_fill,
        ramp_length=row.ramp_length,
        gather_rate=(row.gather_tflops or math.inf) * TERA,
        convolutions=row.convolutions,
        misaligned=row.misaligned,
        unaligned=row.unaligned,
        exponential_flops=row.exponential_flops,
        attention_unfused=row.attention_unfused,
        stream=row.stream,
        elementwise=row.elementwise,
        kernel_launch_seconds=row.launch_us * 1e-6,
        collective_share=row.collective_share,
        switch_reduction=row.switch_reduction,
        collective_half_bytes=row.collective_half_mib * MIB,
        network_share=row.network_share,
        collective_hop_seconds=row.collective_hop_us * 1e-6,
        full_mesh=float(row.full_mesh),
        emulated=1.0,
        communicator_bytes=row.communicator_mib * MIB,
        context_bytes=row.context_mib * MIB,
        idle_share=row.idle_share,
        optimizer_stream=catalog.coefficients["optimizer-stream"].value,
        host_stream=catalog.coefficients["host-stream"].value,
        host_optimizer=catalog.coefficients["host-optimizer"].value * 1e9,
        host_optimizer_alone=catalog.coefficients["host-optimizer-alone"].value * 1e9,
        arithmetic_power=catalog.coefficients["arithmetic-power"].value,
        memory_power=catalog.coefficients["memory-power"].value,
        waiting_power=catalog.coefficients["waiting-power"].value,
        host_power=catalog.coefficients["host-power"].value,
        cooling_power=catalog.coefficients["cooling-power"].value,
        network_power=catalog.coefficients["network-power"].value,
        source=f"{row.name}: {row.source} ({row.confidence})",
        row=row.id,
        boost=row.boost,
    )


def under_power(efficiency: Efficiency, watts: float | None, peak: float, measured: float) -> Efficiency:
    """Return what matrix products reach at the clock that the power of a device leaves them.

    Args:
        peak: its dense 16-bit peak, FLOP/s.
        measured: watts for a TFLOP/s of the part that was measured; 0 where power has no say.
    """
    if not measured or watts is None:
        return efficiency
    room = (watts / (peak / TERA) / measured) ** CLOCK_OF_POWER
    clock = boosted(room, efficiency.boost)
    gemm = {name: share * clock for name, share in efficiency.gemm.items()}
    return replace(efficiency, gemm=gemm, power_room=room)


def boosted(room: float, boost: float) -> float:
    """Return the clock, over that of the part that was measured, which so much room for power gives; boost at most."""
    return min(room, boost)


def stand_ins(catalog: Catalog) -> dict[str, str]:
    """Return the precision that devices without one compute in instead, by its name."""
    return {name: row.runs_as for name, row in catalog.precisions.items() if row.runs_as is not None}


def accelerator_device(row: Accelerator, catalog: Catalog) -> Device:
    """Return a catalogue accelerator as formulas see it."""
    fields = {"fp64": "fp64_tflops"} | {name: precision.peak_field for name, precision in catalog.precisions.items()}
    peaks = {name: peak for name, field in fields.items() if (peak := row.peak_flops(field))}
    if not peaks or row.bandwidth_gbs is None:
        raise CatalogError(
            "peaks or bandwidth of this accelerator are not published",
            row.id,
            "give them in hardware.spec: bf16_tflops, bandwidth_gbs",
            Place(field=Key.HARDWARE_NAME),
        )
    provenance = row_provenance(row)
    generation, lanes, units = row.pcie_gen, row.pcie_lanes, row.units
    guesses = catalog.assumptions
    host = PCIE_LANE_GBS[generation or int(guesses["pcie-generation"].value)] * 1e9
    host *= lanes or guesses["pcie-lanes"].value
    host = row.host_link_gbs * 1e9 if row.host_link_gbs else host
    bandwidth = row.bandwidth_gbs * 1e9
    bus = host * (1.0 if row.peer_access else catalog.coefficients["staged-share"].value)
    in_pairs = row.link is not None and catalog.links[row.link].per == "pair"
    device = Device(
        id=row.id,
        name=row.name,
        kind=row.kind,
        memory_bytes=float(row.memory_bytes),
        bandwidth=bandwidth,
        peaks=peaks,
        units=float(units or guesses["accelerator-units"].value),
        tdp_watts=row.tdp_w,
        clock=1.0,
        link_bandwidth=row.link_gbs * 1e9 if row.link_gbs else bus,
        bus_bandwidth=bus if in_pairs else math.inf,
        host_bandwidth=bandwidth if row.unified_memory else host,
        efficiency=_efficiency(row, peaks, catalog),
        checked=row.checked.isoformat(),
        confidence=row.confidence,
        runs_as=stand_ins(catalog),
        has_own_memory=not row.unified_memory,
    ).with_provenance(provenance, *DEVICE_FIGURES)
    if not row.unified_memory and not row.host_link_gbs and not (generation and lanes):
        guess = assumed_by(guesses["pcie-lanes" if generation else "pcie-generation"])
        device = device.with_provenance(guess, "host_bandwidth", *(() if row.link_gbs else ("link_bandwidth",)))
    if row.memory_mib_assumed:
        device = device.with_provenance(
            Provenance("assumed", f"what drivers leave of the marketed size; {provenance.source}"), "memory_bytes"
        )
    if row.overrides:
        given = Provenance("given", f"your own catalogue file, row {row.id}")
        device = device.with_provenance(given, *(name for key, name in SPEC_FIGURES.items() if key in row.overrides))
    device = sharing_memory(device, row)
    return device if units else device.with_provenance(assumed_by(guesses["accelerator-units"]), "units")


def sharing_memory(device: Device, row: Accelerator | None) -> Device:
    """Return a device with what it may use of its memory where that is the machine's; others as they are."""
    if row is None or not row.unified_memory or device.memory_bytes is None:
        return device
    usable, why = usable_memory(row.vendor, row.name, float(device.memory_bytes))
    provenance = Provenance("assumed", why)
    limited = replace(device, memory_bytes=usable, shared_bytes=device.memory_bytes)
    return limited.with_provenance(provenance, "memory_bytes") if why else device


def part_words(share: float) -> str:
    """Return a part of a device in front of its name, as ``1/8 ``; empty for whole ones."""
    return "" if share >= 1.0 else f"{Fraction(share).limit_denominator(16)} "


def part_of_device(device: Device, share: float) -> Device:
    """Return a part of a device, as clouds rent it, with that share of its memory too."""
    if share >= 1.0:
        return device
    memory = None if device.memory_bytes is None else device.memory_bytes * share
    return replace(shared(device, share, share), name=f"{part_words(share)}{device.name}", memory_bytes=memory)


def shared(device: Device, arithmetic: float, bandwidth: float) -> Device:
    """Return what shares of arithmetic, with its power, and of memory bandwidth leave of a device, without links."""
    return replace(
        device,
        peaks={name: peak * arithmetic for name, peak in device.peaks.items()},
        units=device.units * arithmetic,
        bandwidth=device.bandwidth * bandwidth,
        tdp_watts=None if device.tdp_watts is None else device.tdp_watts * arithmetic,
        link_bandwidth=device.host_bandwidth,
    )


def with_vectors(device: Device, vectors: Iterable[str], catalog: Catalog) -> Device:
    """Return a processor whose 16-bit products without units run as the last known of its vector units let them.

    Args:
        vectors: names of vector units, the narrower ones first.
    """
    rates = catalog.efficiencies[device.efficiency.row].emulated
    known = [rates[name] for name in vectors if name in rates]
    return replace(device, efficiency=replace(device.efficiency, emulated=known[-1] if known else 1.0))


def with_host_processor(device: Device, row: Processor, catalog: Catalog) -> Device:
    """Return a device whose host has a processor of the catalogue: what that moves for steps of an optimizer."""
    moved = processor_device(row, catalog).bandwidth * catalog.coefficients["host-optimizer-share"].value
    return replace(device, efficiency=replace(device.efficiency, host_optimizer=moved, host_optimizer_alone=moved))


def processor_device(row: Processor, catalog: Catalog) -> Device:
    """Return one socket of a catalogue CPU as formulas see it; only a row of a whole machine has memory."""
    guesses = catalog.assumptions
    clock = (row.base_ghz or row.boost_ghz or guesses["cpu-clock"].value) * 1e9
    cores = row.cores + row.efficiency_cores
    single = row.fp32_flops_per_cycle or guesses["cpu-fp32-flops-per-cycle"].value
    double = row.fp64_flops_per_cycle or guesses["cpu-fp64-flops-per-cycle"].value
    peaks = {"fp32": single * cores * clock, "fp64": double * cores * clock}
    if row.bf16_matrix_flops_per_cycle:
        peaks["bf16"] = row.bf16_matrix_flops_per_cycle * cores * clock
    bandwidth = (row.bandwidth_gbs or guesses["cpu-bandwidth"].value) * 1e9
    device = Device(
        id=row.id,
        name=row.name,
        kind="cpu",
        memory_bytes=None if row.memory_gib is None else row.memory_gib * 2**30,
        bandwidth=bandwidth,
        peaks=peaks,
        units=float(cores),
        tdp_watts=row.tdp_w,
        clock=1.0,
        link_bandwidth=bandwidth * 0.5,
        host_bandwidth=bandwidth,
        efficiency=efficiency_of(_generation(row, catalog), catalog),
        checked=row.checked.isoformat(),
        confidence=row.confidence,
        runs_as=stand_ins(catalog),
        has_own_memory=False,
    ).with_provenance(row_provenance(row), *DEVICE_FIGURES)
    device = with_vectors(device, (row.simd or "").split("+"), catalog)
    lacking = {
        "peaks": () if row.base_ghz or row.boost_ghz else ("cpu-clock",),
        "peaks.fp32": () if row.fp32_flops_per_cycle else ("cpu-fp32-flops-per-cycle",),
        "peaks.fp64": () if row.fp64_flops_per_cycle else ("cpu-fp64-flops-per-cycle",),
        "bandwidth": () if row.bandwidth_gbs else ("cpu-bandwidth",),
    }
    for name, guessed in lacking.items():
        for guess in guessed:
            device = device.with_provenance(assumed_by(guesses[guess]), name)
    return device


def _generation(row: Processor, catalog: Catalog) -> str:
    """Return the microarchitecture of a CPU where it has a row of its own, else that of all of them."""
    kind = row.microarchitecture or ""
    return kind if any(kind in efficiency.generations for efficiency in catalog.efficiencies.values()) else "CPU"


def _efficiency(row: Accelerator, peaks: Mapping[str, float], catalog: Catalog) -> Efficiency:
    efficiency = efficiency_of(row.generation or "", catalog)
    peak = next((peaks[name] for name in SIXTEEN_BIT if name in peaks), 0.0)
    return (
        under_power(efficiency, row.tdp_w, peak, catalog.efficiencies[efficiency.row].matrix_watts)
        if peak
        else efficiency
    )


def device_setting(name: str, device: Device, catalog: Catalog) -> Setting | None:
    """Return one of the settings that suit a device's generation; None where nothing is known of it."""
    row = catalog.accelerators.get(device.id)
    generation = None if row is None else find_generation(row.vendor, row.name, row.compute_capability)
    settings = () if generation is None else generation.settings
    return next((setting for setting in settings if setting.name == name), None)


def row_provenance(row: Row) -> Provenance:
    """Return how the figures of a catalogue row came about: shipped ones are the catalogue's, others the user's own."""
    if row.provenance == FROM_USER and not row.overrides:
        return Provenance("given", f"your own catalogue file, row {row.id}")
    return Provenance("catalogue", f"row {row.id}, checked {row.checked.isoformat()}, confidence {row.confidence}")


def assumed_by(row: Assumption) -> Provenance:
    """Return the provenance of what stands in for an unknown figure."""
    return Provenance("assumed", f"{row.name}, {row.value:g} {row.unit}".strip())


def power_limited(device: Device, limit: float) -> Device:
    """Lower the clock to what a power limit leaves: dynamic power grows with its third power."""
    if device.tdp_watts is None:
        return replace(device, tdp_watts=limit)
    clock = min(1.0, (limit / device.tdp_watts) ** CLOCK_OF_POWER)
    return replace(device, tdp_watts=min(limit, float(device.tdp_watts)) if clock < 1 else limit, clock=clock)
