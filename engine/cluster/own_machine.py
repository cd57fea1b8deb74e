"""This machine as formulas see it: its accelerators, the best of them where they are unlike, or its CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster.catalogue_devices import accelerator_device, power_limited
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.cluster.fabric import machine_network
from capacity_tui.engine.cluster.found import Found
from capacity_tui.engine.cluster.measured_here import with_measured
from capacity_tui.engine.cluster.mixed import combined
from capacity_tui.engine.cluster.node_host import machine_host
from capacity_tui.engine.cluster.own_processor import own_processor
from capacity_tui.engine.cluster.usable import UsableDevice, slice_of, usable_devices
from capacity_tui.engine.machine import Accelerator, Machine, Provenance
from capacity_tui.engine.plan import Mixed

# Below this an idle device's "used" memory is the driver's own reserve (nvidia-smi shows up to some hundred MiB).
HELD_BY_OTHERS = 2**30


def cluster_of_machine(machine: Machine, catalog: Catalog, mixed: Mixed = "best") -> Found:
    """Return the detected machine: its accelerators, or its CPU.

    Args:
        machine: what was detected.
        catalog: facts about its devices.
        mixed: what is used where they are unlike.
    """
    visible = usable_devices(machine)
    usable = [found for found in visible if found.accelerator.catalogue_id.value in catalog.accelerators]
    others = (found.accelerator.name for found in visible if found not in usable)
    unmatched = tuple(f"{name} is not in the catalogue" for name in others)
    main = machine.memory.total_bytes
    memory, told = float(main.value or 0) or None, main.provenance
    if usable:
        found = combined([_group(alike, machine, catalog) for alike in _alike(usable)], mixed)
        host = memory / found.devices if memory else None
        beside = machine_host(machine, found.devices)
        return replace(found, host_memory_bytes=host, host_memory_known=told, assumed=unmatched, host=beside)
    processor = with_measured(own_processor(machine, catalog), machine.measured)
    network = machine_network(catalog)
    beside = machine_host(machine, 1)
    return Found(
        processor, 1, 1, network, host_memory_bytes=memory, assumed=unmatched, host_memory_known=told, host=beside
    )


def _alike(usable: Sequence[UsableDevice]) -> Iterator[list[UsableDevice]]:
    """Yield devices of one row that reach each other; of slices, which do not, the first of a row."""
    for row_id in dict.fromkeys(found.accelerator.catalogue_id.value for found in usable):
        alike = [found for found in usable if found.accelerator.catalogue_id.value == row_id]
        yield [found for found in alike if found.linked] or alike[:1]


def _group(alike: Sequence[UsableDevice], machine: Machine, catalog: Catalog) -> Found:
    first, count = alike[0], len(alike)
    device = with_measured(_detected_accelerator(first.accelerator, catalog), machine.measured)
    network = machine_network(catalog)
    return Found(slice_of(device, first), count, count, network, is_joined=first.linked, is_one_machine=True)


def _detected_accelerator(found: Accelerator, catalog: Catalog) -> Device:
    row = catalog.accelerators[str(found.catalogue_id.value)]
    device = accelerator_device(row, catalog)
    size, used = found.memory_total_bytes, found.memory_used_bytes.value or 0
    if size.value:
        # What other processes hold is not there for the run; a little is the driver's own.
        held = used if used > HELD_BY_OTHERS else 0
        told = Provenance(size.origin, f"{size.source}, less what other processes hold" if held else size.source)
        device = replace(device, memory_bytes=float(size.value - held)).known_by(told, "memory_bytes")
    limit = found.power_limit_watts
    if not limit.value:
        return device
    return power_limited(device, limit.value).known_by(limit.provenance, "tdp_watts")
