"""What stands beside the devices of a node and feeds them: processor cores, a disk, a network to the outside."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.catalog.rows import Instance
from capacity_tui.engine.machine import Disk, Machine
from capacity_tui.engine.units import GIGA, MEGA

NOT_LOCAL = ("tmpfs", "network")
"""Kinds of disks that hold nothing for a run, or lie on another machine."""
BITS = 8.0
THREADS_OF_CORE = 2.0
"""Virtual processors of a cloud that share a core: they count the threads of its processors."""


@dataclass(frozen=True, slots=True)
class NodeHost:
    """The surroundings of a node's devices, as far as anything tells.

    Attributes:
        cores: processor cores for each device; None where nothing tells.
        disk_kind: kind of the roomiest local disk, empty likewise.
        disk_free_bytes: room on it; None likewise.
        network: bytes a second that the node's own network carries; None likewise.
    """

    cores: float | None = None
    disk_kind: str = ""
    disk_free_bytes: float | None = None
    network: float | None = None


UNKNOWN_HOST = NodeHost()
"""The host of a node of which nothing is told."""


def instance_host(row: Instance) -> NodeHost:
    """Return what a cloud instance has beside its devices; two of its virtual processors are one core."""
    cores = row.vcpus / THREADS_OF_CORE / row.sold_devices if row.vcpus else None
    network = row.network_gbit * GIGA / BITS if row.network_gbit else None
    return NodeHost(cores=cores, network=network)


def machine_host(machine: Machine, devices: int) -> NodeHost:
    """Return what this machine has beside so many devices."""
    disk = roomiest_disk(machine)
    cores = _usable_cores(machine)
    return NodeHost(
        cores=None if cores is None else cores / devices,
        disk_kind="" if disk is None else str(disk.kind.value or ""),
        disk_free_bytes=None if disk is None else float(disk.free_bytes.value or 0),
        network=network_bandwidth(machine),
    )


def roomiest_disk(machine: Machine) -> Disk | None:
    """Return the local disk with most free space."""
    local = [disk for disk in machine.disks if disk.kind.value not in NOT_LOCAL and disk.free_bytes.value]
    return max(local, key=lambda disk: disk.free_bytes.value or 0, default=None)


def network_bandwidth(machine: Machine) -> float | None:
    """Return the bytes a second of the fastest network link; None where none tells its speed."""
    speeds = [
        card.speed_mbps.value for card in machine.networks if card.speed_mbps.value and card.up.value is not False
    ]
    return max(speeds) * MEGA / BITS if speeds else None


def _usable_cores(machine: Machine) -> float | None:
    """Return the cores that affinity and quotas leave to this process; None where nothing tells."""
    cores, threads, usable = (
        fact.value for fact in (machine.cpu.physical_cores, machine.cpu.threads, machine.cpu.usable_threads)
    )
    if not cores:
        return None
    return cores * min(1.0, usable / threads) if threads and usable else float(cores)
