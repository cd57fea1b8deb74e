"""Nodes with what their devices do, and what a plan would take of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.plan import DeviceGroup


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
