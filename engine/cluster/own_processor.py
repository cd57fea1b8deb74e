"""This machine's CPU as formulas see it: what it tells, then its catalogue row, then its nearest relative's."""

from __future__ import annotations

import math
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog, Processor
from capacity_tui.engine.cluster.catalogue_devices import processor_device
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.cluster.measured_here import with_benchmarks
from capacity_tui.engine.machine import Machine, Provenance, device_names
from capacity_tui.engine.numeric import Number

SERVER = "server"
GENERIC = "generic"
# Widest vectors count: one multiply-add is two FLOPs, and fp64 takes twice the width of fp32.
FP32_BITS, MULTIPLY_ADD_FLOPS = 32, 2


def own_processor(machine: Machine, catalog: Catalog) -> Device:
    """Return the CPU with every figure's provenance; what was measured counts before what was told or assumed."""
    row = catalog.processors.get(machine.cpu.catalogue_id.value or "")
    device = _of_row(row, machine, catalog) if row else _concluded(machine, catalog)
    memory = machine.memory.available_bytes.or_else(machine.memory.total_bytes)
    device = replace(
        _with_matrix_types(device, machine),
        id="detected",
        name=str(machine.cpu.model.value or "CPU"),
        memory_bytes=float(memory.value) if memory.value else None,
        units=_usable_cores(machine),
    )
    device = device.known_by(memory.provenance, "memory_bytes")
    cores = machine.cpu.usable_threads
    device = device.known_by(cores.provenance, "units")
    return with_benchmarks(_as_told(device, machine), machine.benchmarked)


def _as_told(device: Device, machine: Machine) -> Device:
    """Return the CPU with the bandwidth of the modules and the power limit that the machine itself tells."""
    modules, limit = machine.modules.bandwidth, machine.power.package_limit_watts
    if modules.value and not machine.platform.hypervisor.value:  # a guest's firmware tables are invented
        device = device.with_bandwidth(modules.value, modules.provenance)
    if limit.value:
        device = replace(device, tdp_watts=limit.value).known_by(limit.provenance, "tdp_watts")
    return device


def _of_row(row: Processor, machine: Machine, catalog: Catalog) -> Device:
    """Return the sockets, or a guest's share of them, that this process may use of a CPU of the catalogue."""
    socket = processor_device(row, catalog)
    usable, cores = _usable_cores(machine), float(socket.units)
    sockets = float(machine.cpu.sockets.value or 1)
    share = min(sockets, usable / cores)
    guest = machine.platform.hypervisor.value is not None
    # A guest shares the channels and the power of its socket with others; a process alone on a host does not.
    around = share if guest else min(sockets, math.ceil(share))
    device = replace(
        socket,
        peaks={name: peak * share for name, peak in socket.peaks.items()},
        tdp_watts=None if socket.tdp_watts is None else socket.tdp_watts * around,
    )
    if around == sockets:
        return device.with_bandwidth(socket.bandwidth * around, socket.known["bandwidth"])
    if not guest:
        by = socket.known["bandwidth"]
        return device.with_bandwidth(socket.bandwidth * around, by).known_by(by, "tdp_watts")
    by = Provenance("assumed", f"{usable:g} of {cores * sockets:g} cores' share of {row.name}")
    drawn, why = _drawn(socket.bandwidth * sockets, share / sockets, usable, catalog)
    bandwidth = Provenance("assumed", why) if why else by
    return device.with_bandwidth(drawn, bandwidth).known_by(by, "tdp_watts")


def _concluded(machine: Machine, catalog: Catalog) -> Device:
    """Return a CPU without a row: peaks from cores, clock and vectors; the rest as its nearest relative has it."""
    cpu, guesses = machine.cpu, catalog.assumptions
    usable, row = _usable_cores(machine), _relative(machine, catalog)
    relative = processor_device(row, catalog)
    told = cpu.base_mhz.value or cpu.current_mhz.value
    clock = told * 1e6 if told else guesses["cpu-clock"].value * 1e9
    bits = cpu.simd_bits.value or guesses["cpu-vector-width"].value
    ports = guesses["cpu-multiply-adds"].value
    fp32 = usable * clock * bits / FP32_BITS * ports * MULTIPLY_ADD_FLOPS
    untold = [name for name, known in (("clock", told), ("vector width", cpu.simd_bits.value)) if not known]
    words = (
        f"concluded from {usable:g} cores at {clock / 1e9:.2f} GHz with {ports:g} multiply-adds of {bits:g} bits each"
    )
    words += f", {' and '.join(untold)} not told" if untold else ""
    by_core = row.segment == SERVER
    share = usable / float(relative.units)
    drawn, why = _drawn(relative.bandwidth, share, usable, catalog) if by_core else (relative.bandwidth, "")
    each = why or f"as {row.name} has {'for each core' if by_core else 'it'}"
    device = replace(
        relative,
        peaks={"fp32": fp32, "fp64": fp32 / 2.0},
        tdp_watts=None if relative.tdp_watts is None else relative.tdp_watts * share,
        confidence="C",
        known={},
    ).known_by(Provenance("assumed", words), "peaks")
    device = device.known_by(Provenance("assumed", f"as {row.name} has for each core"), "tdp_watts")
    return device.with_bandwidth(drawn, Provenance("assumed", each))


def _drawn(whole: Number, share: float, cores: float, catalog: Catalog) -> tuple[Number, str]:
    """Return the bandwidth that some cores of a server draw, and why that is more than their share; empty where not.

    Cores that others leave alone draw what they can keep in flight, which is several times their share.
    """
    each = catalog.assumptions["cpu-core-bandwidth"].value
    alone = min(float(whole), cores * each * 1e9)
    if alone <= float(whole) * share:
        return whole * share, ""
    return alone, f"{cores:g} cores of a server draw {each:g} GB/s each"


def _relative(machine: Machine, catalog: Catalog) -> Processor:
    """Return the catalogue's CPU most like an unknown one: by class, microarchitecture, vendor, then cores."""
    cpu = machine.cpu
    name, vendor = cpu.model.value or "", cpu.vendor.value
    server = device_names().server_cpus.search(name) is not None or (cpu.sockets.value or 1) > 1
    cores = _usable_cores(machine)

    def likeness(row: Processor) -> tuple[bool, bool, bool, float]:
        same = row.archspec_name == cpu.microarchitecture.value
        return (row.segment == SERVER) == server, same, row.vendor == vendor, -abs(row.cores - cores)

    return max((row for row in catalog.processors.values() if row.segment != GENERIC), key=likeness)


def _with_matrix_types(device: Device, machine: Machine) -> Device:
    """Return a CPU with peaks in the types that its instruction sets multiply, and in no others of 16 bits."""
    simd = machine.cpu.simd
    if simd.value is None:
        return device
    vectors = float(device.peaks["fp32"])
    clock = (machine.cpu.base_mhz.value or machine.cpu.current_mhz.value or 0.0) * 1e6
    peaks: dict[str, float] = {}
    for entry in device_names().simd:
        if entry.name in simd.value and entry.type:
            own = (entry.flops_per_cycle or 0.0) * clock * _usable_cores(machine)
            peak = device.peaks.get(entry.type) or own or vectors * entry.times_fp32
            peaks[entry.type] = max(peak, peaks.get(entry.type, 0.0))
    known = {name: by for name, by in device.known.items() if name not in ("peaks.bf16", "peaks.fp16")}
    kept = {name: peak for name, peak in device.peaks.items() if name not in ("bf16", "fp16")}
    by = Provenance("assumed", f"concluded from cores, clock and {', '.join(sorted(_types_from(simd.value)))}")
    added = {f"peaks.{name}": device.known.get(f"peaks.{name}", by) for name in peaks}
    return replace(device, peaks={**kept, **peaks}, known={**known, **added})


def _types_from(simd: tuple[str, ...]) -> set[str]:
    return {entry.name for entry in device_names().simd if entry.type and entry.name in simd}


def _usable_cores(machine: Machine) -> float:
    cpu = machine.cpu
    cores = float(cpu.physical_cores.value or cpu.threads.value or 1)
    return min(cores, float(cpu.usable_threads.value or cores))
