"""Levels of a cluster: a node with its host, the devices that a link joins, and the networks around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, Fabric, Instance, Link, Processor
from capacity_tui.engine.catalog.rows import LevelRow
from capacity_tui.engine.errors import CatalogError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Disk, Machine, Origin, Provenance
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import GIGA, MEGA, format_bandwidth, format_number

NOT_LOCAL = ("tmpfs", "network")  # Kinds of disks that hold nothing for a run, or are on another machine
BITS = 8.0
THREADS_OF_CORE = 2.0  # Virtual processors of a cloud that share a core: they count the threads of its processors


@dataclass(frozen=True, slots=True)
class NodeHost:
    """The surroundings of a node's devices, as far as they are known."""

    cores: float | None = None  # processor cores for each device; None where unknown
    disk_kind: str = ""  # kind of the roomiest local disk, empty where unknown
    disk_free_bytes: float | None = None  # room on it; None where unknown
    network: float | None = None  # bytes a second that the node's own network carries; None where unknown
    download: float | None = None  # bytes a second that were measured from the internet; None where nobody did
    core_speed: float = 1.0  # of one core, that of a server of 2024 being 1, where it was measured


UNKNOWN_HOST = NodeHost()  # The host of a node of which nothing is known


def instance_host(row: Instance) -> NodeHost:
    """Return what a cloud instance has besides its devices; two of its virtual processors are one core."""
    cores = row.vcpus / THREADS_OF_CORE / row.sold_devices if row.vcpus else None
    network = row.network_gbit * GIGA / BITS if row.network_gbit else None
    return NodeHost(cores=cores, network=network)


def processor_host(row: Processor, devices: int) -> NodeHost:
    """Return a host with one processor of the catalogue beside some devices."""
    return NodeHost(cores=float(row.cores + row.efficiency_cores) / devices)


def machine_host(machine: Machine, devices: int) -> NodeHost:
    """Return what this machine has besides its devices."""
    disk = roomiest_disk(machine)
    cores, benchmarked = _usable_cores(machine), machine.benchmarked
    return NodeHost(
        cores=None if cores is None else cores / devices,
        disk_kind="" if disk is None else str(disk.kind.value or ""),
        disk_free_bytes=None if disk is None else float(disk.free_bytes.value or 0),
        network=network_bandwidth(machine),
        download=None if benchmarked is None else benchmarked.download.value,
        core_speed=1.0 if benchmarked is None else benchmarked.core_speed.value or 1.0,
    )


def roomiest_disk(machine: Machine) -> Disk | None:
    """Return the local disk with most free space."""
    local = [disk for disk in machine.disks if disk.kind.value not in NOT_LOCAL and disk.free_bytes.value]
    return max(local, key=lambda disk: disk.free_bytes.value or 0, default=None)


def network_bandwidth(machine: Machine) -> float | None:
    """Return the bytes a second of the fastest network link; None where no speed is known."""
    speeds = [
        card.speed_mbps.value for card in machine.networks if card.speed_mbps.value and card.up.value is not False
    ]
    return max(speeds) * MEGA / BITS if speeds else None


def _usable_cores(machine: Machine) -> float | None:
    """Return the cores that affinity and quotas leave to this process; None where unknown."""
    cores, threads, usable = (
        fact.value for fact in (machine.cpu.physical_cores, machine.cpu.threads, machine.cpu.usable_threads)
    )
    if not cores:
        return None
    return cores * min(1.0, usable / threads) if threads and usable else float(cores)


# One step of a collective between nodes is no shorter than this, regardless of the link: software and switches (NCCL).
LEAST_HOP_SECONDS = 5e-6

GBIT = 1e9 / 8.0
_MACHINE, _OTHER = "machine", "other"


@dataclass(frozen=True, slots=True)
class Network:
    """The network between nodes."""

    name: str
    link: Link  # its row, for latency and, where no figure is given, bandwidth
    known: Provenance
    node_bandwidth: float | None = None  # B/s in one direction of a whole node; None where the link's row says it
    ports_per_node: int | None = None  # ports of a node; one a device where None

    @property
    def hop_seconds(self) -> float:
        """Seconds of one step of a collective between nodes."""
        return max((self.link.latency_us or 0.0) * 1e-6, LEAST_HOP_SECONDS)

    def device_bandwidth(self, per_node: int) -> float:
        """Return the share of one of ``per_node`` devices of a node, B/s in one direction."""
        if self.node_bandwidth is not None:
            return self.node_bandwidth / per_node
        ports = self.ports_per_node or per_node
        share = {"node": 1.0 / per_node, "port": ports / per_node}.get(self.link.per, 1.0)
        return self.link.per_direction_gbs * 1e9 * share


def usual_network(fabric: Fabric, catalog: Catalog) -> Network:
    """Return the network that usually joins such nodes: an assumption."""
    link = catalog.links.find(fabric.network)
    known = Provenance("assumed", f"the usual network: {link.name}")
    return Network(link.name, link, known, ports_per_node=fabric.ports_per_node)


def machine_network(catalog: Catalog) -> Network:
    """Return the network assumed between machines like this one, of which nothing is known."""
    return usual_network(catalog.fabrics[_MACHINE], catalog)


def instance_network(row: Instance, catalog: Catalog) -> Network:
    """Return the network between instances: that of their accelerators, else their host's.

    Of an instance that states neither, the usual front-end network is assumed, never a faster one.
    """
    provenance = Provenance("catalogue", f"instance {row.id}")
    if row.network_link is not None:
        link = catalog.links.find(row.network_link)
        total = None if row.rdma_gbit is None else row.rdma_gbit * GBIT
        return Network(_at(link.name, row.rdma_gbit), link, provenance, total)
    usual = usual_network(catalog.fabrics[_OTHER], catalog)
    if row.network_gbit is None:
        return replace(usual, name=f"{usual.name} ({row.provider} states none)")
    return Network(_at("Ethernet (TCP)", row.network_gbit), usual.link, provenance, row.network_gbit * GBIT)


def named_network(name: str, ports_per_node: int | None, catalog: Catalog, field: str) -> Network:
    """Return the network that a field of a plan names; raises PlanError if no link has that name."""
    try:
        link = catalog.links.find(name)
    except CatalogError as error:
        raise PlanError(error.title, error.detail, error.hint, Place(field=field)) from error
    origin: Origin = "measured" if link.measured else "catalogue"
    known = Provenance(origin, f"link {link.id}, named in {field}")
    return Network(link.name, link, known, ports_per_node=ports_per_node)


def _at(name: str, gbit: float | None) -> str:
    return name if gbit is None else f"{name}, {gbit:g} Gbit/s a node"


FIELD = Key.HARDWARE_LEVELS
Named = Callable[[str, str], Network]
OUTERMOST = "fabric"


def cluster_levels(
    inner: Level, rows: Sequence[LevelRow], network: Network, devices: int, sharing: int, named: Named
) -> tuple[Level, ...]:
    """Return the levels of a cluster from the innermost out; the last one joins all devices over a network.

    Args:
        inner: the innermost level, whose link is the devices' own.
        network: what joins their units where a row names no link.
        sharing: devices that share the ports of a node.
        named: returns the network of a link by its name and the field that gives it.

    Raises:
        PlanError: the levels do not fit into each other, or a link has no known name.
    """
    _refuse_misfits(inner, rows)
    levels = [inner]
    for row in rows:
        levels.append(_level(row, levels, network, devices, sharing, named))
    inside = rows[-1].devices if rows else inner.devices
    if levels[-1].is_direct:
        outermost = LevelRow(name=OUTERMOST, devices=None, link=None, oversubscription=1.0)
        levels.append(_level(outermost, levels, network, devices, sharing, named))
    elif inside is not None and inside < devices:
        name = f"{FIELD}.{len(rows) - 1}.devices"
        words = f"{levels[-1].name} holds {inside} devices, the plan has {devices}"
        raise PlanError(words, hint="make it larger, or add a level around it", place=Place(field=name))
    return tuple(replace(level, devices=min(float(level.devices), float(devices))) for level in levels)


def slower_outside(levels: Sequence[Level]) -> Iterator[str]:
    """Yield which levels have a link that the ports of the level inside do not fill."""
    networks = [level for level in levels if not level.is_direct]
    for inside, level in pairwise(networks):
        if level.bandwidth == inside.bandwidth and level.link != inside.link:
            yield f"{level.name}: what enters it goes through the ports of the {inside.name}, {inside.link}"


def _level(row: LevelRow, inside: Sequence[Level], network: Network, devices: int, sharing: int, named: Named) -> Level:
    """Return one level around those inside; a device's bandwidth never grows from one network to the next."""
    below = inside[-1]
    if row.link is not None:
        network = named(row.link, f"{FIELD}.{len(inside) - 1}.link")
    elif not below.is_direct:
        level = replace(below, name=row.name, devices=float(row.devices or devices))
        return replace(
            level,
            bandwidth=float(below.bandwidth) * below.oversubscription / row.oversubscription,
            oversubscription=row.oversubscription,
        )
    bandwidth = network.device_bandwidth(sharing) / row.oversubscription
    is_direct = row.link is not None and below.is_direct and network.link.direct
    if not below.is_direct:
        bandwidth = min(bandwidth, float(below.bandwidth))
    return Level(
        name=row.name,
        devices=float(row.devices or devices),
        bandwidth=bandwidth,
        hop_seconds=float(below.hop_seconds) if is_direct else network.hop_seconds,
        link=network.name,
        known=network.known,
        is_direct=is_direct,
        oversubscription=row.oversubscription,
        is_measured=network.link.measured and not is_direct,
        error=network.link.error if network.link.measured and not is_direct else None,
    )


def _refuse_misfits(inner: Level, rows: Sequence[LevelRow]) -> None:
    """Check that every level holds whole units of the one inside, and that no two have one name."""
    name, devices_inside = inner.name, int(inner.devices)
    names: set[str] = set()
    for index, row in enumerate(rows):
        location = Place(field=f"{FIELD}.{index}")
        if row.name == inner.name:
            conflict = f"the hardware itself has a level called {row.name}, of {devices_inside} devices"
            raise PlanError(conflict, hint="leave it out, or give this level another name", place=location)
        if row.name in names:
            raise PlanError(f"two levels are called {row.name}", hint="give each its own name", place=location)
        names.add(row.name)
        last = index == len(rows) - 1
        if row.devices is None:
            if not last:
                hint = "give devices of every level but the last"
                raise PlanError(f"{row.name} holds all devices, but a level is around it", hint=hint, place=location)
            continue
        if row.devices < devices_inside or row.devices % devices_inside:
            hint = (
                f"go from the innermost out, in multiples of {devices_inside}; hardware.per_node is what one node holds"
            )
            raise PlanError(
                f"{row.name} of {row.devices} devices does not hold whole units of the {name}, {devices_inside} each",
                hint=hint,
                place=location,
            )
        name, devices_inside = row.name, row.devices


@dataclass(frozen=True, slots=True)
class Level:
    """Devices that one link joins; a cluster has several such levels, from the innermost out."""

    name: str  # what holds the devices: node, rack, fabric ...
    devices: Number  # how many one of them holds
    bandwidth: Number  # of its link, B/s in one direction for each device, after oversubscription
    hop_seconds: Number  # one step of a collective over it; of direct links what the generation takes is used instead
    link: str
    known: Provenance
    # whether devices reach each other without a network adapter, and so at the shares and the latency of links inside a
    # node
    is_direct: bool = False
    oversubscription: float = 1.0  # bandwidth of its devices' ports over what the level carries; 1 where it carries all
    is_measured: bool = False  # whether the bandwidth is what collectives reach, and not what the wire carries
    # median error of bandwidth and step on the collectives they were measured by; None where unknown
    error: float | None = None

    def sustained(self, share: Number) -> Number:
        """Return what collectives reach of it, B/s one way for each device; ``share``: what they reach of a link."""
        return self.bandwidth if self.is_measured else self.bandwidth * share

    @property
    def holds(self) -> str:
        """How many devices it holds, in words."""
        return f"{format_number(float(self.devices))} device{'s' if self.devices != 1 else ''}"

    @property
    def speed(self) -> str:
        """What each of them gets of the link, in words."""
        shared = f", {self.oversubscription:g}:1 oversubscribed" if self.oversubscription != 1 else ""
        return f"{format_bandwidth(float(self.bandwidth))} each, {self.link}{shared}"
