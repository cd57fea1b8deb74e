"""Nodes with what their devices do, and what a plan would take of them."""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, lcm, prod

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.errors import CatalogError, LauncherError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.nodes.inventory.inventory import Inventory, Kind, NodeFacts
from capacity_tui.engine.nodes.launchers.slurm import SlurmNode, racks_of, slurm_nodes, slurm_text
from capacity_tui.engine.plan import DeviceGroup, Plan


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node and its devices.

    Attributes:
        hardware: what its devices are called; an id of the catalogue where it knows them.
        down: of these, missing, faulty or in a node that takes no jobs.
        planned: of these, used by the plan.
        holders: the units around it, from the innermost out, such as its rack.
        note: what is odd about it; empty for nothing.
    """

    name: str
    hardware: str
    devices: int
    busy: int = 0
    down: int = 0
    planned: int = 0
    holders: tuple[str, ...] = ()
    note: str = ""

    @property
    def free(self) -> int:
        """Devices that neither the plan nor a job has."""
        return max(self.devices - self.busy - self.down - self.planned, 0)

    @property
    def available(self) -> int:
        """Devices that a plan can have now."""
        return self.planned + self.free


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The nodes of a cluster.

    Attributes:
        nodes: the nodes, in the order of their names.
        levels: what a node and the units around it are called, from the innermost out, such as node and rack.
        source: where this comes from, in words.
        is_live: whether somebody looked what jobs there are.
    """

    nodes: tuple[NodeState, ...]
    levels: tuple[str, ...]
    source: str
    is_live: bool = False


def own_occupancy(cluster: Cluster, groups: Sequence[DeviceGroup] = ()) -> Occupancy:
    """Return the hardware of a plan itself as nodes: those of the plan are all its own, of unlike groups some are not.

    Args:
        groups: the unlike devices that the plan lists.
    """
    unit = max(int(cluster.levels[0].devices), 1)
    inner = [level for level in cluster.levels[1:] if unit < level.devices < cluster.devices]
    sizes = [int(level.devices) for level in inner]
    listed = groups or (DeviceGroup(name=cluster.device.id, devices=int(cluster.devices), per_node=unit),)
    nodes: list[NodeState] = []
    for group in listed:
        nodes += _nodes_of(group, group.per_node or unit, sizes, [level.name for level in inner], len(nodes))
    names = (cluster.levels[0].name, *(level.name for level in inner))
    used = {group.name for group in listed} if cluster.mix else {cluster.device.id}
    return planned(Occupancy(tuple(nodes), names, "the plan's own hardware"), int(cluster.devices), used)


def planned(occupancy: Occupancy, devices: int, hardware: Collection[str]) -> Occupancy:
    """Return nodes with what a plan takes of them: nodes that hold all it wants of one first, in their order."""
    taken = [0] * len(occupancy.nodes)
    mine = [(number, node) for number, node in enumerate(occupancy.nodes) if node.hardware in hardware]
    wanted = devices
    for number, node in sorted(mine, key=lambda entry: entry[1].available < min(wanted, entry[1].devices)):
        taken[number] = min(devices, node.available)
        devices -= taken[number]
    nodes = (replace(node, planned=count) for node, count in zip(occupancy.nodes, taken, strict=True))
    return replace(occupancy, nodes=tuple(nodes))


def _nodes_of(
    group: DeviceGroup, per_node: int, sizes: Sequence[int], names: Sequence[str], first: int
) -> Iterator[NodeState]:
    """Yield the nodes of equal devices, numbered on from those before."""
    for number in range(math.ceil(group.devices / per_node)):
        index = first + number
        holders = tuple(f"{name} {index * per_node // size + 1}" for name, size in zip(names, sizes, strict=True))
        devices = min(per_node, group.devices - number * per_node)
        yield NodeState(f"node {index + 1}", group.name, devices, holders=holders)


_LEVELS = ("node", "rack")


def kept_occupancy(inventory: Inventory) -> Occupancy:
    """Return the nodes of a kept cluster, rack by rack; what its jobs take is unknown.

    Devices that a node lacks of those of its kind are down, and so are all of a node that gave no answer.

    Args:
        inventory: the cluster as it was seen.
    """
    states = sorted(_states(inventory), key=lambda node: node.holders[:1])
    levels = _LEVELS if any(node.holders for node in states) else _LEVELS[:1]
    source = f"{inventory.name} as seen on {inventory.seen:%Y-%m-%d} through {inventory.reached_by}; jobs not known"
    return Occupancy(tuple(states), levels, source)


def _states(inventory: Inventory) -> Iterator[NodeState]:
    kinds = inventory.kinds
    for kind in kinds:
        for node in kind.nodes:
            yield _state(node, kind)
    for name, why in inventory.silent.items():
        whole = _count(kinds[0].typical) if kinds else 0
        hardware = kinds[0].typical.family if kinds else ""
        yield NodeState(name, hardware, whole, down=whole, note=why)


def _state(node: NodeFacts, kind: Kind) -> NodeState:
    wanted, here = _count(kind.typical), _count(node)
    remarks = (*node.troubles, *map(str, kind.odd.get(node.node, ())))
    return NodeState(
        node.node,
        kind.typical.family,
        max(wanted, here),
        down=max(wanted - here, 0),
        holders=node.holders[:1],
        note="; ".join(remarks),
    )


def _count(node: NodeFacts) -> int:
    """Return how many devices plans have of a node: its accelerators, or else its processors."""
    return node.devices or node.sockets


PROCESSORS = "processors"
"""What nodes without accelerators have: each counts as one device."""

_GPU = "gpu"


def slurm_occupancy(catalog: Catalog) -> Occupancy | None:
    """Return the nodes of the cluster that this machine's Slurm commands talk to, rack by rack; None without Slurm.

    Raises:
        LauncherError: its controller does not answer.
    """
    if shutil.which("scontrol") is None:
        return None
    nodes = slurm_nodes()
    try:
        racks = racks_of(slurm_text("scontrol", "--oneliner", "show", "topology"))
    except LauncherError:  # controllers without a topology refuse
        racks = {}
    return occupancy_of(nodes, racks, catalog)


def occupancy_of(nodes: tuple[SlurmNode, ...], racks: Mapping[str, tuple[str, ...]], catalog: Catalog) -> Occupancy:
    """Return nodes as the controller reports them, with the switches above them.

    Args:
        racks: the switches above each, the nearest first.
    """
    states = sorted((_slurm_state(node, racks, catalog) for node in nodes), key=lambda node: node.holders[:1])
    levels = _LEVELS if any(node.holders for node in states) else _LEVELS[:1]
    return Occupancy(tuple(states), levels, "Slurm, now", is_live=True)


def _slurm_state(node: SlurmNode, racks: Mapping[str, tuple[str, ...]], catalog: Catalog) -> NodeState:
    kinds = node.gpus
    devices, used = sum(kinds.values()), node.gpus_used
    hardware = _hardware(max(kinds, key=lambda name: kinds[name]), catalog) if kinds else PROCESSORS
    if not devices:
        devices, used = 1, int(node.cpus_used > 0)
    used = min(used, devices)
    note = " ".join(part for part in (node.state, node.reason) if part) if not node.is_usable else ""
    return NodeState(
        node.name,
        hardware,
        devices,
        busy=used,
        down=devices - used if not node.is_usable else 0,
        holders=racks.get(node.name, ())[:1],
        note=note,
    )


def _hardware(name: str, catalog: Catalog) -> str:
    """Return the id of a device that an administrator calls ``h100``; that name where the catalogue has none."""
    try:
        return catalog.accelerators.find(name).id if name else _GPU
    except CatalogError:
        return name


_SIZES = ("tp", "pp", "cp")


def change_to_available(
    plan: Plan, device: str, nodes: Iterable[NodeState], known: Collection[str]
) -> Mapping[str, object] | None:
    """Return the change that has a plan use what is available of some nodes; None where nothing of use is.

    The layout that the plan states stays, so that replicas take as many devices as they can: those of all nodes that
    are wholly available, as jobs over several nodes get them, or where there is none those of the emptiest node. Of
    unlike devices each group is as large as it can be, and the plan decides which of them it uses. Where none of the
    plan's own devices is available, it moves to those of which there are most.

    Args:
        plan: the plan as it was written.
    """
    by_kind: dict[str, list[NodeState]] = defaultdict(list)
    for node in nodes:
        by_kind[node.hardware].append(node)
    stated = (getattr(plan.parallelism, name) for name in _SIZES)
    replica = prod(size for size in stated if isinstance(size, int))
    most = _most_devices(plan, replica)
    if plan.hardware.groups:
        counts = {name: _usable(usable_nodes, replica, inf) for name, usable_nodes in by_kind.items()}
        groups = tuple(
            group.model_copy(update={"devices": counts[group.name]}).model_dump()
            for group in plan.hardware.groups
            if counts.get(group.name)
        )
        return {Key.HARDWARE_NAME: groups[0]["name"], Key.HARDWARE_GROUPS: groups} if groups else None
    counts = {name: _usable(usable_nodes, replica, most) for name, usable_nodes in by_kind.items()}
    if counts.get(device):
        return {Key.HARDWARE_DEVICES: counts[device]}
    others = [name for name, count in counts.items() if name in known and count]
    if not others:
        return None
    kind = max(others, key=lambda name: counts[name])
    return {Key.HARDWARE_NAME: kind, Key.HARDWARE_DEVICES: counts[kind]}


def _usable(nodes: Iterable[NodeState], replica: int, most: float) -> int:
    """Return how many devices of these equal nodes whole replicas can have: whole nodes of them, or a part of one."""
    remaining = list(nodes)
    size = max(node.devices for node in remaining)
    whole = sum(size for node in remaining if node.available == size)
    filling = lcm(size, replica)
    several = int(min(whole, most)) // filling * filling
    return several or int(min(max(node.available for node in remaining), most)) // replica * replica


def _most_devices(plan: Plan, replica: int) -> float:
    """Return as many devices as there are sequences for: each replica works on one at least."""
    batch = plan.training.global_batch
    return int(batch) * replica if plan.task != "infer" and isinstance(batch, int) else inf
