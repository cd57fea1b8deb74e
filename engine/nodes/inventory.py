"""The inventory of a cluster: its nodes as they were seen, those that gave no answer, and what has changed since."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from capacity_tui.engine.machine import Accelerator, Fact, Machine, NetworkInterface
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes

MEMORY, NETWORK, DEVICES = "memory", "network", "devices"  # Traits that distinguish kinds of nodes
PARTITIONED, WHOLE = "partitioned", "no"
"""Trait of nodes whose drivers can cut devices into parts, and what it is of those whose devices are not."""

_RDMA = ("infiniband", "roce")
_HARMLESS = ("idle", "power cap", "application clocks", "sync boost")
"""Reasons of drivers to lower a clock that say nothing about a node's health."""

_SMALLER = 0.97  # Memory of a device below this share of its neighbours' is less than the device has


class Ports(BaseModel):
    """Equal ports of a node to the network."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    kind: str  # infiniband, roce or ethernet
    mbps: int = Field(ge=0)  # speed of one, Mb/s; 0 where unknown
    count: int = Field(ge=1)

    def __str__(self) -> str:
        speed = f" {self.mbps / 1000:g} Gb/s" if self.mbps else ""
        return f"{self.count} x {self.kind}{speed}"


class NodeFacts(BaseModel):
    """What is known of one node."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    node: str
    device: str = ""  # catalogue id of its accelerators, of most of them where they are unlike; empty without any
    device_name: str = ""
    devices: int = Field(0, ge=0)
    processor: str = ""  # catalogue id of its processors; empty where they are not in the catalogue
    processor_name: str = ""
    sockets: int = Field(default=1, ge=1)
    memory_bytes: int = Field(0, ge=0)
    ports: Ports | None = None  # what joins it to other nodes
    traits: Mapping[str, str] = Field(default_factory=dict)  # traits that equal nodes share, as words by trait
    troubles: tuple[str, ...] = ()  # what is wrong with it, a sentence each
    holders: tuple[str, ...] = ()  # the switches or racks above it, the nearest first
    used: int | None = None  # devices that others had when it was seen; None where unknown
    used_slices: Mapping[str, int] = Field(default_factory=dict)  # likewise of slices of devices, by profile
    takes_jobs: bool = True  # whether others do not keep it out of use

    @property
    def family(self) -> str:
        """What it computes with, by which nodes are compared at all."""
        return self.device or self.device_name or self.processor or self.processor_name


def facts_of(node: str, machine: Machine, errors: Mapping[int, int], holders: tuple[str, ...] = ()) -> NodeFacts:
    """Return what an inventory keeps of a detected node.

    Args:
        errors: memory errors of its devices that were not corrected, by index.
        holders: the switches or racks above it, the nearest first.
    """
    devices = [device for device in machine.accelerators if not device.integrated.value]
    names = Counter(_text(device.name) for device in devices)
    main = max(names, key=lambda name: names[name], default="")
    ids = {_text(device.catalogue_id) for device in devices if _text(device.name) == main}
    sockets = machine.cpu.sockets.value or 1
    memory = machine.memory.host_total_bytes.value or machine.memory.total_bytes.value or 0
    ports = _ports(machine.networks)
    traits = {
        DEVICES: ", ".join(f"{count} x {name}" for name, count in names.items()),
        "processor": f"{sockets} x {_text(machine.cpu.model)}" if machine.cpu.model.value else "",
        MEMORY: format_bytes(memory) if memory else "",
        NETWORK: "" if ports is None else str(ports),
        "driver": _common_text(device.driver for device in devices),
        "runtime": _common_text(device.runtime for device in devices),
        "power limit": _common_text(device.power_limit_watts.map(lambda watts: f"{watts:.0f} W") for device in devices),
        PARTITIONED: _common_text(device.mig_enabled.map(lambda on: "yes" if on else WHOLE) for device in devices),
        "kernel": _text(machine.platform.release),
    }
    return NodeFacts(
        node=node,
        device=next(iter(ids), ""),
        device_name=main,
        devices=len(devices),
        processor=_text(machine.cpu.catalogue_id),
        processor_name=_text(machine.cpu.model),
        sockets=max(1, sockets),
        memory_bytes=memory,
        ports=ports,
        traits={trait: value for trait, value in traits.items() if value},
        troubles=tuple(_troubles(devices, errors)),
        holders=holders,
    )


def _text(fact: Fact[str]) -> str:
    return fact.value or ""


def _common_text(facts: Iterator[Fact[str]]) -> str:
    return ", ".join(sorted({fact.value for fact in facts if fact.value}))


def _ports(cards: tuple[NetworkInterface, ...]) -> Ports | None:
    """Return the ports that carry most together: those of remote direct memory access where there are any."""
    up = [card for card in cards if card.up.value is not False and card.kind != "virtual"]
    fast = [card for card in up if card.kind in _RDMA and ":" in card.name]
    chosen = fast or [card for card in up if card.kind == "ethernet"]
    counts = Counter((card.kind, card.speed_mbps.value or 0) for card in chosen)
    if not counts:
        return None
    kind, mbps = max(counts, key=lambda port: (port[1] * counts[port], counts[port]))
    return Ports(kind=kind, mbps=mbps, count=counts[kind, mbps])


def _troubles(devices: list[Accelerator], errors: Mapping[int, int]) -> Iterator[str]:
    most = max((device.memory_total_bytes.value or 0 for device in devices), default=0)
    for device in devices:
        held_back = [
            why for why in device.throttle.value or () if not any(word in why.casefold() for word in _HARMLESS)
        ]
        if held_back:
            yield f"device {device.index} is held back: {', '.join(held_back)}"
        if count := errors.get(device.index, 0):
            yield f"device {device.index} has {count} memory errors that were not corrected"
        size = device.memory_total_bytes.value
        if size and size < _SMALLER * most:
            yield f"device {device.index} has {format_bytes(size)} of memory, others here {format_bytes(most)}"
        lanes, lanes_max = device.pcie.lanes.value, device.pcie.lanes_max.value
        if lanes and lanes_max and lanes < lanes_max:
            yield f"device {device.index} uses {lanes} of {lanes_max} PCIe lanes"


class DeviceQueue(BaseModel):
    """A queue of jobs, with what it may have of the devices of a cluster."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    namespace: str = ""
    shared: str = ""  # the queue of the cluster behind it, which has the quota
    quota: int | None = None  # devices that are its own; None where unknown
    borrows: int | None = 0  # of others at most; None for whatever they leave
    cohort: str = ""  # those that it shares with; empty for none
    used: int = 0  # devices that jobs have of it
    pending: int = 0  # jobs that wait
    why_held: str = ""  # why it takes none now; empty where it does


class Inventory(BaseModel):
    """A cluster as it was seen."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    reached_by: str
    seen: datetime
    nodes: tuple[NodeFacts, ...] = ()
    silent: Mapping[str, str] = Field(default_factory=dict)  # why others gave no answer, by name
    queues: tuple[DeviceQueue, ...] = ()  # with quotas of devices, where it has such
    notes: tuple[str, ...] = ()  # what could not be found out

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Its kinds of nodes, the largest first."""
        return kinds_of(self.nodes)


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed at a node since its cluster was kept."""

    node: str
    what: str  # the trait, or what happened to the node
    kept: str
    now: str

    def __str__(self) -> str:
        return f"{self.node}: {self.what} {self.kept} -> {self.now}"


def cluster_changes(earlier: Inventory, later: Inventory) -> tuple[Change, ...]:
    """Return what differs between a cluster as it was kept and as it is."""
    before = {node.node: node for node in earlier.nodes}
    after = {node.node: node for node in later.nodes}
    return tuple(_changes(before, after, earlier.silent, later.silent))


def _changes(
    before: Mapping[str, NodeFacts],
    after: Mapping[str, NodeFacts],
    was_silent: Mapping[str, str],
    is_silent: Mapping[str, str],
) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *was_silent, *after, *is_silent)):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            one, other = (
                "answers" if facts else f"no answer ({silent[name]})" if name in silent else "not there"
                for facts, silent in ((old, was_silent), (new, is_silent))
            )
            if old is not None or new is not None or (name in was_silent) != (name in is_silent):
                yield Change(name, "node", one, other)
            continue
        for trait in dict.fromkeys((*old.traits, *new.traits)):
            one, other = old.traits.get(trait, "none"), new.traits.get(trait, "none")
            if one != other:
                yield Change(name, trait, one, other)
        if set(old.troubles) != set(new.troubles):
            yield Change(name, "trouble", _listed(old.troubles), _listed(new.troubles))


def _listed(troubles: Sequence[str]) -> str:
    return "; ".join(troubles) or "none"


FEW = 8  # Nodes that are alike but fewer than this part of their family are odd ones, not a kind of their own
_SAME_MEMORY = 1.03  # Equal nodes report sizes of memory that differ by what their firmware keeps


@dataclass(frozen=True, slots=True)
class Difference:
    """A trait in which a node differs from most of its kind."""

    what: str
    here: str  # as it is on this node
    usual: str  # as most have it

    def __str__(self) -> str:
        return f"{self.what} {self.here}, others {self.usual}"


@dataclass(frozen=True, slots=True)
class Kind:
    """Equal nodes, and those that should be but are not quite."""

    nodes: tuple[NodeFacts, ...]
    usual: Mapping[str, str]  # what most nodes have, as words by trait
    odd: Mapping[str, tuple[Difference, ...]]  # how nodes differ from that, by name
    typical: NodeFacts  # one that has what most have

    @property
    def whole(self) -> tuple[NodeFacts, ...]:
        """The nodes that have all their devices, whole as those of most."""
        cut = self.typical.traits.get(PARTITIONED)
        return tuple(
            node
            for node in self.nodes
            if node.devices == self.typical.devices and node.traits.get(PARTITIONED, cut) == cut
        )


def kinds_of(nodes: Sequence[NodeFacts]) -> tuple[Kind, ...]:
    """Return the kinds of nodes, the largest first."""
    families: dict[str, list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        families[node.family].append(node)
    kinds = (kind for family in families.values() for kind in _kinds(family))
    return tuple(sorted(kinds, key=lambda kind: -len(kind.nodes)))


def _kinds(family: Sequence[NodeFacts]) -> Iterator[Kind]:
    """Yield the kinds of nodes that compute with the same."""
    sizes = _sizes(node.memory_bytes for node in family)
    groups: dict[tuple[object, ...], list[NodeFacts]] = defaultdict(list)
    for node in family:
        groups[node.devices, str(node.ports), sizes[node.memory_bytes]].append(node)
    many = max(2, math.ceil(len(family) / FEW))
    keys = [key for key, group in groups.items() if len(group) >= many] or [
        max(groups, key=lambda key: len(groups[key]))
    ]
    members: dict[tuple[object, ...], list[NodeFacts]] = {key: [] for key in keys}
    for key, group in groups.items():
        nearest = max(keys, key=lambda group: (_shared(key, group), len(groups[group])))
        members[nearest] += group
    for key, group in members.items():
        names = {node.node for node in group}
        yield _kind([node for node in family if node.node in names], groups[key], sizes)


def _kind(nodes: Sequence[NodeFacts], equal: Sequence[NodeFacts], sizes: Mapping[int, int]) -> Kind:
    usual = _usual(equal)
    size = sizes[equal[0].memory_bytes]
    odd = {node.node: tuple(_differences(node, usual, sizes[node.memory_bytes] == size)) for node in nodes}
    typical = next((node for node in equal if not odd[node.node]), equal[0])
    return Kind(tuple(nodes), usual, {name: values for name, values in odd.items() if values}, typical)


def _usual(equal: Sequence[NodeFacts]) -> dict[str, str]:
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for node in equal:
        for trait, words in node.traits.items():
            counted[trait][words] += 1
    return {trait: max(counts, key=lambda words: counts[words]) for trait, counts in counted.items()}


def _differences(node: NodeFacts, usual: Mapping[str, str], has_usual_memory: bool) -> Iterator[Difference]:
    for trait, words in usual.items():
        present = node.traits.get(trait, "none")
        if present != words and not (trait == MEMORY and has_usual_memory):
            yield Difference(trait, present, words)


def _sizes(values: Iterable[int]) -> dict[int, int]:
    """Return the smallest of the sizes that are as good as equal to each."""
    sizes: dict[int, int] = {}
    least = 0
    for value in sorted(set(values)):
        least = value if value > least * _SAME_MEMORY else least
        sizes[value] = least
    return sizes


def _shared(first_key: tuple[object, ...], second_key: tuple[object, ...]) -> int:
    return sum(first == second for first, second in zip(first_key, second_key, strict=True))
