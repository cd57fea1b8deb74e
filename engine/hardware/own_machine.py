"""This machine as formulas see it: its accelerators of one kind, or its CPU."""

from __future__ import annotations

from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.hardware.benchmark.applied import with_benchmarks
from capacity_tui.engine.hardware.cluster import Device, Price
from capacity_tui.engine.hardware.devices import Found, accelerator_device, power_limited, processor_device
from capacity_tui.engine.hardware.machine import Accelerator, Machine
from capacity_tui.engine.hardware.measured import with_measured
from capacity_tui.engine.hardware.usable import slice_of, usable_devices

# Below this an idle device's "used" memory is the driver's own reserve (nvidia-smi shows up to some hundred MiB).
HELD_BY_OTHERS = 2**30


def detected(machine: Machine, catalog: Catalog) -> Found:
    """Return the detected machine: its accelerators of the first kind, or its CPU."""
    visible = usable_devices(machine)
    usable = [found for found in visible if found.accelerator.catalogue_id.value in catalog.accelerators]
    memory = float(machine.memory.total_bytes.value or 0) or None
    if usable:
        first = usable[0]
        row_id = first.accelerator.catalogue_id.value
        linked = [found for found in usable if found.linked and found.accelerator.catalogue_id.value == row_id]
        alike = linked or [first]
        device = with_measured(_detected_accelerator(first.accelerator, catalog), machine.measured)
        host = memory / len(alike) if memory else None
        return Found(slice_of(device, first), len(alike), len(alike), host, Price(), "eth-10")
    unmatched = tuple(f"{found.accelerator.name} is not in the catalogue" for found in visible)
    processor = with_benchmarks(_detected_cpu(machine, catalog), machine.benchmarked)
    processor = with_measured(processor, machine.measured)
    return Found(processor, 1, 1, memory, Price(), "eth-10", unmatched)


def _detected_accelerator(found: Accelerator, catalog: Catalog) -> Device:
    row = catalog.accelerators[str(found.catalogue_id.value)]
    device = accelerator_device(row, catalog)
    total, used = found.memory_total_bytes.value, found.memory_used_bytes.value or 0
    if total:
        # What other processes hold is not there for the run; a little is the driver's own.
        device = replace(device, memory_bytes=float(total - used if used > HELD_BY_OTHERS else total))
    limit = found.power_limit_watts.value
    return power_limited(device, limit) if limit else device


def _detected_cpu(machine: Machine, catalog: Catalog) -> Device:
    """The CPU as found: its catalogue row where it has one, else cores, clock and SIMD width."""
    cpu = machine.cpu
    row_id = cpu.catalogue_id.value
    memory = machine.memory.available_bytes.value or machine.memory.total_bytes.value
    cores = float(cpu.physical_cores.value or cpu.threads.value or 1)
    usable = min(cores, float(cpu.usable_threads.value or cores))
    generic = processor_device(catalog.processors["cpu-4c-2.5ghz-basic"], catalog)
    if row_id in catalog.processors:
        generic = processor_device(catalog.processors[str(row_id)], catalog)
        sockets = float(cpu.sockets.value or 1)
        scale = min(sockets, usable / float(generic.units))
    else:
        clock = (cpu.base_mhz.value or cpu.current_mhz.value or 2500.0) * 1e6
        # Two fused multiply-adds a cycle over the SIMD width, the common shape of today's cores.
        fp32 = (cpu.simd_bits.value or 128) / 32.0 * 4.0 * clock
        generic = replace(generic, peaks={"fp32": fp32, "fp64": fp32 / 2.0}, units=1.0)
        scale = usable
    return replace(
        generic,
        id="detected",
        name=str(cpu.model.value or "CPU"),
        memory_bytes=float(memory) if memory else None,
        peaks={name: peak * scale for name, peak in generic.peaks.items()},
        units=usable,
    )
