"""Nodes with what their devices do, and what a plan would take of them."""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import inf, lcm, prod
from typing import Literal, NamedTuple, TypeAlias

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.nodes.inventory import Inventory, Kind, NodeFacts
from capacity_tui.engine.nodes.slurm import SlurmNode, slurm_nodes, slurm_racks
from capacity_tui.engine.plan import DeviceGroup, Plan
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node and its devices."""

    name: str
    hardware: str  # what its devices are called; an id of the catalogue where it knows them
    devices: int
    busy: int = 0
    down: int = 0  # of these, missing, faulty or in a node that takes no jobs
    planned: int = 0  # of these, used by the plan
    holders: tuple[str, ...] = ()  # the units around it, from the innermost out, such as its rack
    note: str = ""  # what is odd about it; empty for nothing

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
    """The nodes of a cluster."""

    nodes: tuple[NodeState, ...]
    # what a node and the units around it are called, from the innermost out, such as node and rack
    levels: tuple[str, ...]
    source: str
    is_live: bool = False  # whether running jobs are counted


def planned_occupancy(cluster: Cluster, groups: Sequence[DeviceGroup] = ()) -> Occupancy:
    """Return the hardware of a plan itself as nodes: the plan has all of them, or some of unlike groups."""
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
    counts = [0] * len(occupancy.nodes)
    suitable = [(index, node) for index, node in enumerate(occupancy.nodes) if node.hardware in hardware]
    needed = devices
    for index, node in sorted(suitable, key=lambda entry: entry[1].available < min(needed, entry[1].devices)):
        counts[index] = min(devices, node.available)
        devices -= counts[index]
    nodes = (replace(node, planned=count) for node, count in zip(occupancy.nodes, counts, strict=True))
    return replace(occupancy, nodes=tuple(nodes))


def _nodes_of(
    group: DeviceGroup, per_node: int, sizes: Sequence[int], names: Sequence[str], first: int
) -> Iterator[NodeState]:
    for number in range(math.ceil(group.devices / per_node)):
        index = first + number
        holders = tuple(f"{name} {index * per_node // size + 1}" for name, size in zip(names, sizes, strict=True))
        devices = min(per_node, group.devices - number * per_node)
        yield NodeState(f"node {index + 1}", group.name, devices, holders=holders)


_LEVELS = ("node", "rack")


def kept_occupancy(inventory: Inventory) -> Occupancy:
    """Return the nodes of a kept cluster, rack by rack, with what jobs took of them where that was seen.

    Devices that a node lacks of those of its kind are down, and so are all of a node that gave no answer.
    """
    states = sorted(_states(inventory), key=lambda node: node.holders[:1])
    levels = _LEVELS if any(node.holders for node in states) else _LEVELS[:1]
    source = f"{inventory.name} as seen on {inventory.seen:%Y-%m-%d} through {inventory.reached_by}"
    source += "" if any(node.used is not None for node in inventory.nodes) else "; jobs not known"
    return Occupancy(tuple(states), levels, source)


def _states(inventory: Inventory) -> Iterator[NodeState]:
    kinds = inventory.kinds
    for kind in kinds:
        for node in kind.nodes:
            yield _state(node, kind)
    for name, reason in inventory.silent.items():
        devices = _count(kinds[0].typical) if kinds else 0
        hardware = kinds[0].typical.family if kinds else ""
        yield NodeState(name, hardware, devices, down=devices, note=reason)


def _state(node: NodeFacts, kind: Kind) -> NodeState:
    expected, present = _count(kind.typical), _count(node)
    devices, busy = max(expected, present), min(node.used or 0, present)
    remarks = (*node.troubles, *map(str, kind.odd.get(node.node, ())))
    return NodeState(
        node.node,
        kind.typical.family,
        devices,
        busy=busy,
        down=max(expected - present, 0) if node.takes_jobs else devices - busy,
        holders=node.holders[:1],
        note="; ".join(remarks),
    )


def _count(node: NodeFacts) -> int:
    """Return how many devices plans have of a node: its accelerators, or else its processors."""
    return node.devices or node.sockets


PROCESSORS = "processors"  # What nodes without accelerators have: each counts as one device
_GPU = "gpu"


def slurm_occupancy(catalog: Catalog) -> Occupancy | None:
    """Return the nodes of the cluster that this machine's Slurm commands talk to, rack by rack; None without Slurm.

    Raises:
        LauncherError: its controller does not answer.
    """
    if shutil.which("scontrol") is None:
        return None
    return occupancy_of(slurm_nodes(), slurm_racks(), catalog)


def occupancy_of(nodes: tuple[SlurmNode, ...], racks: Mapping[str, tuple[str, ...]], catalog: Catalog) -> Occupancy:
    """Return nodes as the controller reports them, with the switches above them."""
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
    available = [name for name, count in counts.items() if name in known and count]
    if not available:
        return None
    kind = max(available, key=lambda name: counts[name])
    return {Key.HARDWARE_NAME: kind, Key.HARDWARE_DEVICES: counts[kind]}


def _usable(nodes: Iterable[NodeState], replica: int, most: float) -> int:
    """Return how many devices of these equal nodes whole replicas can have: whole nodes of them, or a part of one."""
    remaining = list(nodes)
    size = max(node.devices for node in remaining)
    available = sum(size for node in remaining if node.available == size)
    filling = lcm(size, replica)
    several = int(min(available, most)) // filling * filling
    return several or int(min(max(node.available for node in remaining), most)) // replica * replica


def _most_devices(plan: Plan, replica: int) -> float:
    """Return as many devices as there are sequences for: each replica works on one at least."""
    batch = plan.training.global_batch
    return int(batch) * replica if not plan.is_inference and isinstance(batch, int) else inf


MOST_ROWS = 32  # Up to this many units have a row each; of more, this many share one
ALL_NODES = "all"  # What the row of everything is called, and the level of kinds
State: TypeAlias = Literal["planned", "free", "busy", "down"]
NODE_STATES: tuple[State, ...] = ("planned", "free", "busy", "down")  # What a device does
_Counts: TypeAlias = tuple[int, ...]  # How many devices do what, in the order of ``NODE_STATES``


@dataclass(frozen=True, slots=True)
class MapRow:
    """Nodes of one row."""

    name: str  # what they are called: the first, and the last where there are several
    nodes: tuple[NodeState, ...]
    counts: Mapping[State, int]  # how many of their devices do what
    # what each part of them does: devices of a node, nodes of a rack, or units where several share a row
    cells: tuple[State, ...]

    @property
    def hardware(self) -> str:
        """What their devices are called."""
        return ", ".join(dict.fromkeys(node.hardware for node in self.nodes))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about any of them."""
        return tuple(f"{node.name}: {node.note}" for node in self.nodes if node.note)


@dataclass(frozen=True, slots=True)
class NodeMap:
    """The rows of a cluster at each level, from nodes to kinds of devices."""

    whole: MapRow
    rows: Mapping[str, tuple[MapRow, ...]]

    @property
    def usual(self) -> str:
        """The level that is read at a glance: the finest with few rows, else that of kinds."""
        return next((level for level, rows in self.rows.items() if len(rows) <= MOST_ROWS), ALL_NODES)


class _Unit(NamedTuple):
    """A node, or a unit of a level around it with the counts of the units inside it."""

    name: str
    nodes: tuple[NodeState, ...]
    counts: _Counts
    parts: tuple[_Counts, ...] = ()


def node_map(occupancy: Occupancy) -> NodeMap:
    """Return the map of a cluster's nodes."""
    units = [_Unit(node.name, (node,), (node.planned, node.free, node.busy, node.down)) for node in occupancy.nodes]
    whole = _joined(ALL_NODES, units)
    kinds = dict.fromkeys(node.hardware for node in occupancy.nodes)
    by_kind = [_joined(kind, [unit for unit in units if unit.nodes[0].hardware == kind]) for kind in kinds]
    rows: dict[str, tuple[MapRow, ...]] = {}
    for index, level in enumerate(occupancy.levels):
        units = list(_around(units, index)) if index else units
        rows[level] = tuple(_rows(units))
    rows[ALL_NODES] = tuple(_row(unit) for unit in by_kind)
    return NodeMap(_row(whole), rows)


def _around(units: Iterable[_Unit], index: int) -> Iterator[_Unit]:
    """Yield the units of a level around some others."""

    def holder(unit: _Unit) -> str:
        holders = unit.nodes[0].holders
        return holders[index - 1] if len(holders) >= index else "elsewhere"

    for name, members in groupby(units, key=holder):
        yield _joined(name, list(members))


def _joined(name: str, units: Sequence[_Unit]) -> _Unit:
    return _Unit(
        name,
        tuple(node for unit in units for node in unit.nodes),
        _sum([unit.counts for unit in units]),
        tuple(unit.counts for unit in units),
    )


def _rows(units: Sequence[_Unit]) -> Iterator[MapRow]:
    """Yield a row for each unit, or for as many together as there are cells in a row."""
    if len(units) <= MOST_ROWS:
        yield from map(_row, units)
        return
    for start in range(0, len(units), MOST_ROWS):
        together = units[start : start + MOST_ROWS]
        first, last = together[0].name, together[-1].name
        yield _row(_joined(first if first == last else f"{first} – {last.rpartition(' ')[2]}", together))


def _row(unit: _Unit) -> MapRow:
    devices = (state for state, count in zip(NODE_STATES, unit.counts, strict=True) for _ in range(count))
    cells = _cells(unit.parts) if unit.parts else tuple(devices)
    return MapRow(unit.name, unit.nodes, dict(zip(NODE_STATES, unit.counts, strict=True)), cells)


def _cells(parts: Sequence[_Counts]) -> tuple[State, ...]:
    """Return what each part mostly does; of many parts several share a cell."""
    share = max(-(-len(parts) // MOST_ROWS), 1)
    return tuple(_mostly(_sum(parts[start : start + share])) for start in range(0, len(parts), share))


def _mostly(counts: _Counts) -> State:
    """Return what most devices do; any that is down is shown."""
    return "down" if counts[NODE_STATES.index("down")] else NODE_STATES[counts.index(max(counts))]


def _sum(counts: Iterable[_Counts]) -> _Counts:
    return tuple(map(sum, zip(*counts, strict=True)))
