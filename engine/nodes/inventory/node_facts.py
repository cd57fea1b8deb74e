"""One node as an inventory keeps it: what plans feel of it, what equal nodes have alike, and what is wrong there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict, Field

from capacity_tui.engine.machine import Accelerator, Fact, Machine, NetworkInterface
from capacity_tui.engine.units import format_bytes

MEMORY, NETWORK, DEVICES = "memory", "network", "devices"
"""Traits that distinguish kinds of nodes."""
PARTITIONED = "partitioned"
"""Trait of nodes whose drivers can cut devices into parts."""
_RDMA = ("infiniband", "roce")
_HARMLESS = ("idle", "power cap", "application clocks", "sync boost")
"""Reasons of drivers to lower a clock that say nothing about a node's health."""
_SMALLER = 0.97
"""Memory of a device below this share of its neighbours' is less than the device has."""


class Ports(BaseModel):
    """Equal ports of a node to the network.

    Attributes:
        kind: infiniband, roce or ethernet.
        mbps: speed of one, Mb/s; 0 where unknown.
    """

    model_config = ConfigDict(frozen=True)

    kind: str
    mbps: int = Field(ge=0)
    count: int = Field(ge=1)

    def __str__(self) -> str:
        speed = f" {self.mbps / 1000:g} Gb/s" if self.mbps else ""
        return f"{self.count} x {self.kind}{speed}"


class NodeFacts(BaseModel):
    """What is known of one node.

    Attributes:
        device: catalogue id of its accelerators, of most of them where they are unlike; empty without any.
        devices: how many of them there are.
        processor: catalogue id of its processors; empty where they are not in the catalogue.
        sockets: how many of them there are.
        memory_bytes: main memory.
        ports: what joins it to other nodes.
        traits: what equal nodes have alike, as words by what it is.
        troubles: what is wrong with it, a sentence each.
        holders: the switches or racks above it, the nearest first.
    """

    model_config = ConfigDict(frozen=True)

    node: str
    device: str = ""
    device_name: str = ""
    devices: int = Field(0, ge=0)
    processor: str = ""
    processor_name: str = ""
    sockets: int = Field(1, ge=1)
    memory_bytes: int = Field(0, ge=0)
    ports: Ports | None = None
    traits: Mapping[str, str] = Field(default_factory=dict)
    troubles: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()

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
        "driver": _alike(device.driver for device in devices),
        "runtime": _alike(device.runtime for device in devices),
        "power limit": _alike(device.power_limit_watts.map(lambda watts: f"{watts:.0f} W") for device in devices),
        PARTITIONED: _alike(device.mig_enabled.map(lambda on: "yes" if on else "no") for device in devices),
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
        traits={what: value for what, value in traits.items() if value},
        troubles=tuple(_troubles(devices, errors)),
        holders=holders,
    )


def _text(fact: Fact[str]) -> str:
    return fact.value or ""


def _alike(facts: Iterator[Fact[str]]) -> str:
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
