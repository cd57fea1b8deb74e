"""Inventories of clusters that were not detected: sixteen nodes in four racks, and others beside them."""

from __future__ import annotations

from datetime import UTC, datetime

from capacity_tui.engine.nodes import Inventory
from capacity_tui.engine.nodes.inventory import NodeFacts, Ports

GIB = 2**30
H100 = "h100-sxm-80gb"


def node(name: str, rack: str = "", **other: object) -> NodeFacts:
    device, count = str(other.pop("device", H100)), int(str(other.pop("devices", 8)))
    ports = other.pop("ports", Ports(kind="infiniband", mbps=400_000, count=8))
    traits = {"devices": f"{count} x {device}", "network": str(ports), "driver": str(other.pop("driver", "550.54.15"))}
    facts = {
        "node": name, "device": device, "device_name": device, "devices": count, "ports": ports, "traits": traits,
        "memory_bytes": 2016 * GIB, "holders": (rack, "spine") if rack else (), **other,
    }  # fmt: skip
    return NodeFacts.model_validate(facts)


def inventory(*nodes: NodeFacts, **other: object) -> Inventory:
    when = datetime(2026, 11, 20, 12, tzinfo=UTC)
    return Inventory.model_validate({"name": "big", "reached_by": "Slurm", "seen": when, "nodes": nodes, **other})


def sixteen() -> list[NodeFacts]:
    return [node(f"g{number:02d}", f"rack{number // 4 + 1}") for number in range(16)]
