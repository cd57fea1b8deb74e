"""The devices that programs can run on: whole accelerators, or the slices of those that are partitioned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from capacity_tui.engine.cluster.catalogue_devices import shared
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.machine import Accelerator, Machine, Provenance, detected, missing

SLICES = "MIG instances"
WHOLE = Provenance("detected", "a whole device")


@dataclass(frozen=True, slots=True)
class UsableDevice:
    """One device as a program sees it.

    Attributes:
        accelerator: the whole device, or the slice as if it were one.
        compute_share: part of the device's arithmetic units, 1 for a whole one.
        share_known: how that part is known.
        bandwidth_share: part of its memory bandwidth.
        linked: whether it can talk to the others directly; slices cannot.
    """

    accelerator: Accelerator
    compute_share: float = 1.0
    bandwidth_share: float = 1.0
    linked: bool = True
    share_known: Provenance = WHOLE


def usable_devices(machine: Machine) -> tuple[UsableDevice, ...]:
    """Return the devices this environment leaves visible, each slice of a partitioned GPU on its own."""
    visible = (gpu for gpu in machine.accelerators if gpu.visible.value is not False)
    return tuple(device for gpu in visible for device in _devices(gpu))


def slice_of(device: Device, found: UsableDevice) -> Device:
    """Return what a slice has of a whole device: its shares of arithmetic and bandwidth, and no links."""
    if found.linked:
        return device
    name = found.accelerator.name.value or device.name
    slice_ = replace(shared(device, found.compute_share, found.bandwidth_share), name=name)
    return slice_.known_by(found.share_known, "bandwidth", "peaks", "units", "tdp_watts")


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
        memory = missing(source, "the slice's memory is not told") if size is None else detected(size, source)
        name = f"{gpu.name.value} {entry.name}" if gpu.name.value and gpu.name.value not in entry.name else entry.name
        unread = missing(source, "not told for slices")
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
        # Slices are cut so that arithmetic and memory go together: what is not told of one follows the other.
        share, told = entry.compute_share or by_memory or 1.0, Provenance("detected", source)
        if entry.compute_share is None:
            told = Provenance("assumed", f"{share:.0%} of the device: the slice tells only its memory")
        yield UsableDevice(slice_, share, by_memory or share, False, told)
