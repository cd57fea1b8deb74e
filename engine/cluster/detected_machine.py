"""The detected machine as a cluster: its processor, its accelerators, and which of them a run may use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog, Processor
from capacity_tui.engine.cluster.catalogue_devices import (
    accelerator_device,
    power_limited,
    processor_device,
    shared,
    with_vectors,
)
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.cluster.hardware_match import HardwareMatch, combined, with_benchmarks, with_measured
from capacity_tui.engine.cluster.levels import machine_host, machine_network
from capacity_tui.engine.machine import Accelerator, Machine, Provenance, detected, device_names, missing
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Mixed
from capacity_tui.engine.record import dataclass

# Below this an idle device's "used" memory is the driver's own reserve (nvidia-smi shows up to some hundred MiB).
HELD_BY_OTHERS = 2**30


def cluster_of_machine(machine: Machine, catalog: Catalog, mixed: Mixed = "best") -> HardwareMatch:
    """Return the detected machine: its accelerators, or its CPU.

    Args:
        mixed: what is used where they are unlike.
    """
    visible = usable_devices(machine)
    usable = [device for device in visible if device.accelerator.catalogue_id.value in catalog.accelerators]
    unused = (device.accelerator.name for device in visible if device not in usable)
    unmatched = tuple(f"{name} is not in the catalogue" for name in unused)
    main = machine.memory.total_bytes
    memory, provenance = float(main.value or 0) or None, main.provenance
    if usable:
        match = combined([_group(devices, machine, catalog) for devices in _equal_devices(usable)], mixed)
        share = memory / match.devices if memory else None
        host = machine_host(machine, match.devices)
        return replace(match, host_memory_bytes=share, host_memory_known=provenance, assumed=unmatched, host=host)
    processor = with_measured(detected_processor(machine, catalog), machine.measured)
    network = machine_network(catalog)
    host = machine_host(machine, 1)
    return HardwareMatch(
        processor, 1, 1, network, host_memory_bytes=memory, assumed=unmatched, host_memory_known=provenance, host=host
    )


def _equal_devices(usable: Sequence[UsableDevice]) -> Iterator[list[UsableDevice]]:
    """Yield devices of one row that reach each other; of slices, which do not, the first of a row."""
    for row_id in dict.fromkeys(device.accelerator.catalogue_id.value for device in usable):
        equal = [device for device in usable if device.accelerator.catalogue_id.value == row_id]
        yield [device for device in equal if device.linked] or equal[:1]


def _group(devices: Sequence[UsableDevice], machine: Machine, catalog: Catalog) -> HardwareMatch:
    first, count = devices[0], len(devices)
    device = with_measured(_detected_accelerator(first.accelerator, catalog), machine.measured)
    network = machine_network(catalog)
    return HardwareMatch(as_slice(device, first), count, count, network, is_joined=first.linked, is_one_machine=True)


def _detected_accelerator(accelerator: Accelerator, catalog: Catalog) -> Device:
    row = catalog.accelerators[str(accelerator.catalogue_id.value)]
    device = accelerator_device(row, catalog)
    size, used = accelerator.memory_total_bytes, accelerator.memory_used_bytes.value or 0
    if size.value:
        # What other processes hold is not there for the run; a little is the driver's own.
        used_bytes = used if used > HELD_BY_OTHERS else 0
        provenance = Provenance(
            size.origin, f"{size.source}, less what other processes hold" if used_bytes else size.source
        )
        device = replace(device, memory_bytes=float(size.value - used_bytes)).with_provenance(
            provenance, "memory_bytes"
        )
    limit = accelerator.power_limit_watts
    if not limit.value:
        return device
    return power_limited(device, limit.value).with_provenance(limit.provenance, "tdp_watts")


SERVER = "server"
GENERIC = "generic"

# Widest vectors count: one multiply-add is two FLOPs, and fp64 takes twice the width of fp32.
FP32_BITS, MULTIPLY_ADD_FLOPS = 32, 2


def detected_processor(machine: Machine, catalog: Catalog) -> Device:
    """Return the CPU with every figure's provenance; what was measured counts before what was detected or assumed."""
    row = catalog.processors.get(machine.cpu.catalogue_id.value or "")
    device = _row_device(row, machine, catalog) if row else _concluded(machine, catalog)
    memory = machine.memory.available_bytes.or_else(machine.memory.total_bytes)
    device = replace(
        _with_matrix_types(device, machine),
        id="detected",
        name=str(machine.cpu.model.value or "CPU"),
        memory_bytes=float(memory.value) if memory.value else None,
        units=_usable_cores(machine),
    )
    device = device.with_provenance(memory.provenance, "memory_bytes")
    cores = machine.cpu.usable_threads
    device = device.with_provenance(cores.provenance, "units")
    device = with_vectors(device, machine.cpu.simd.value or (), catalog)
    return with_benchmarks(_as_detected(device, machine), machine.benchmarked)


def _as_detected(device: Device, machine: Machine) -> Device:
    """Return the CPU with the bandwidth of the modules and the power limit that the machine reports."""
    modules, limit = machine.modules.bandwidth, machine.power.package_limit_watts
    if modules.value and not machine.platform.hypervisor.value:  # a guest's firmware tables are invented
        device = device.with_bandwidth(modules.value, modules.provenance)
    if limit.value:
        device = replace(device, tdp_watts=limit.value).with_provenance(limit.provenance, "tdp_watts")
    return device


def _row_device(row: Processor, machine: Machine, catalog: Catalog) -> Device:
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
        provenance = socket.known["bandwidth"]
        return device.with_bandwidth(socket.bandwidth * around, provenance).with_provenance(provenance, "tdp_watts")
    provenance = Provenance("assumed", f"{usable:g} of {cores * sockets:g} cores' share of {row.name}")
    drawn, why = _drawn(socket.bandwidth * sockets, share / sockets, usable, row.vendor, catalog)
    bandwidth = Provenance("assumed", why) if why else provenance
    return device.with_bandwidth(drawn, bandwidth).with_provenance(provenance, "tdp_watts")


def _concluded(machine: Machine, catalog: Catalog) -> Device:
    """Return a CPU without a row: peaks from cores, clock and vectors; the rest as its nearest relative has it."""
    cpu, guesses = machine.cpu, catalog.assumptions
    usable, row = _usable_cores(machine), _relative(machine, catalog)
    relative = processor_device(row, catalog)
    mhz = cpu.base_mhz.value or cpu.current_mhz.value
    clock = mhz * 1e6 if mhz else guesses["cpu-clock"].value * 1e9
    bits = cpu.simd_bits.value or guesses["cpu-vector-width"].value
    ports = guesses["cpu-multiply-adds"].value
    fp32 = usable * clock * bits / FP32_BITS * ports * MULTIPLY_ADD_FLOPS
    unknown = [name for name, known in (("clock", mhz), ("vector width", cpu.simd_bits.value)) if not known]
    words = (
        f"concluded from {usable:g} cores at {clock / 1e9:.2f} GHz with {ports:g} multiply-adds of {bits:g} bits each"
    )
    words += f", {' and '.join(unknown)} not reported" if unknown else ""
    by_core = row.segment == SERVER
    share = usable / float(relative.units)
    drawn, why = _drawn(relative.bandwidth, share, usable, row.vendor, catalog) if by_core else (relative.bandwidth, "")
    source = why or f"as {row.name} has {'for each core' if by_core else 'it'}"
    device = replace(
        relative,
        peaks={"fp32": fp32, "fp64": fp32 / 2.0},
        tdp_watts=None if relative.tdp_watts is None else relative.tdp_watts * share,
        confidence="C",
        known={},
    ).with_provenance(Provenance("assumed", words), "peaks")
    device = device.with_provenance(Provenance("assumed", f"as {row.name} has for each core"), "tdp_watts")
    return device.with_bandwidth(drawn, Provenance("assumed", source))


def _drawn(whole: Number, share: float, cores: float, vendor: str, catalog: Catalog) -> tuple[Number, str]:
    """Return the bandwidth that some cores of a server draw, and why that is more than their share; empty where not.

    Cores that others leave alone draw what they can keep in flight, which is several times their share.
    """
    common = catalog.assumptions["cpu-core-bandwidth"]
    per_core = catalog.assumptions.get(f"cpu-core-bandwidth-{vendor.lower()}", common).value
    share_watts = min(float(whole), cores * per_core * 1e9)
    if share_watts <= float(whole) * share:
        return whole * share, ""
    return share_watts, f"{cores:g} cores of a server draw {per_core:g} GB/s each"


def _relative(machine: Machine, catalog: Catalog) -> Processor:
    """Return the catalogue's CPU most like an unknown one: by class, microarchitecture, vendor, then cores.

    Those of a guest are some of a large server's, however few.
    """
    cpu = machine.cpu
    name, vendor = cpu.model.value or "", cpu.vendor.value
    server = device_names().server_cpus.search(name) is not None or (cpu.sockets.value or 1) > 1
    is_guest, cores = server and bool(machine.platform.hypervisor.value), _usable_cores(machine)

    def features(row: Processor) -> tuple[bool, bool, bool, float]:
        same = row.archspec_name == cpu.microarchitecture.value
        near = row.cores if is_guest else -abs(row.cores - cores)
        return (row.segment == SERVER) == server, same, row.vendor == vendor, near

    return max((row for row in catalog.processors.values() if row.segment != GENERIC), key=features)


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
            vector_flops = (entry.flops_per_cycle or 0.0) * clock * _usable_cores(machine)
            peak = device.peaks.get(entry.type) or vector_flops or vectors * entry.times_fp32
            peaks[entry.type] = max(peak, peaks.get(entry.type, 0.0))
    known = {name: provenance for name, provenance in device.known.items() if name not in ("peaks.bf16", "peaks.fp16")}
    other_peaks = {name: peak for name, peak in device.peaks.items() if name not in ("bf16", "fp16")}
    by = Provenance("assumed", f"concluded from cores, clock and {', '.join(sorted(_types_from(simd.value)))}")
    added = {f"peaks.{name}": device.known.get(f"peaks.{name}", by) for name in peaks}
    return replace(device, peaks={**other_peaks, **peaks}, known={**known, **added})


def _types_from(simd: tuple[str, ...]) -> set[str]:
    return {entry.name for entry in device_names().simd if entry.type and entry.name in simd}


def _usable_cores(machine: Machine) -> float:
    cpu = machine.cpu
    cores = float(cpu.physical_cores.value or cpu.threads.value or 1)
    return min(cores, float(cpu.usable_threads.value or cores))


WHOLE = Provenance("detected", "a whole device")


@dataclass(frozen=True, slots=True)
class UsableDevice:
    """One device as a program sees it."""

    accelerator: Accelerator  # the whole device, or the slice as if it were one
    compute_share: float = 1.0  # part of the device's arithmetic units, 1 for a whole one
    bandwidth_share: float = 1.0  # part of its memory bandwidth
    linked: bool = True  # whether it can talk to the others directly; slices cannot
    share_known: Provenance = WHOLE


def usable_devices(machine: Machine) -> tuple[UsableDevice, ...]:
    """Return the devices this environment leaves visible, each slice of a partitioned GPU on its own."""
    visible = (gpu for gpu in machine.accelerators if gpu.visible.value is not False)
    return tuple(device for gpu in visible for device in _devices(gpu))


def as_slice(device: Device, usable: UsableDevice) -> Device:
    """Return what a slice has of a whole device: its shares of arithmetic and bandwidth, and no links."""
    if usable.linked:
        return device
    name = usable.accelerator.name.value or device.name
    slice_ = replace(shared(device, usable.compute_share, usable.bandwidth_share), name=name)
    return slice_.with_provenance(usable.share_known, "bandwidth", "peaks", "units", "tdp_watts")


def _devices(gpu: Accelerator) -> Iterator[UsableDevice]:
    slices = gpu.mig_instances.value if gpu.mig_enabled.value else None
    if not slices:
        if not gpu.mig_enabled.value:
            yield UsableDevice(gpu)
        return  # partitioned, but without a slice there is nothing to run on
    total = gpu.memory_total_bytes.value
    for entry in (entry for entry in slices if entry.visible):
        size = entry.memory_bytes
        source = gpu.mig_instances.source
        memory = missing(source, "the slice's memory is not reported") if size is None else detected(size, source)
        name = f"{gpu.name.value} {entry.name}" if gpu.name.value and gpu.name.value not in entry.name else entry.name
        unread = missing(source, "not reported for slices")
        slice_ = replace(
            gpu,
            name=detected(name, source),
            memory_total_bytes=memory,
            memory_free_bytes=unread,
            memory_used_bytes=unread,
            links=missing(source, "slices have no links to each other"),
            mig_instances=missing(source, "a slice itself"),
        )
        by_memory = min(1.0, size / total) if size and total else None
        # Slices are cut so that arithmetic and memory go together: what is unknown of one follows the other.
        share, provenance = entry.compute_share or by_memory or 1.0, Provenance("detected", source)
        if entry.compute_share is None:
            provenance = Provenance("assumed", f"{share:.0%} of the device: the slice reports only its memory")
        yield UsableDevice(slice_, share, by_memory or share, False, provenance)
