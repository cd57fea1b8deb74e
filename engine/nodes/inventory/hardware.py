"""The hardware that plans may name of a cluster: a row of the user's own catalogue, made of an inventory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.nodes.inventory.inventory import Inventory
from capacity_tui.engine.nodes.inventory.kinds import Kind
from capacity_tui.engine.nodes.inventory.node_facts import NodeFacts, Ports

_LINK_WORDS = {"infiniband": "InfiniBand", "roce": "RoCE", "ethernet": "Ethernet"}
_OF_NAMES = ("rack", "pod")
_OUTERMOST = "fabric"
_GBS_IN_MBPS = 8000
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Described:
    """What of an inventory becomes hardware of plans.

    Attributes:
        row: the row of the catalogue without its name; empty where nothing of it can be planned for.
        left_out: what is not part of it and why, a sentence each.
    """

    row: dict[str, object]
    left_out: tuple[str, ...]


def described(inventory: Inventory, catalog: Catalog) -> Described:
    """Return the hardware that plans name."""
    left_out: list[str] = []
    computing: list[tuple[Kind, str, int]] = []
    kinds = inventory.kinds
    has_devices = any(kind.typical.devices for kind in kinds)
    for kind in kinds:
        typical = kind.typical
        name = typical.device if typical.devices else typical.processor
        count = typical.devices or typical.sockets
        known = catalog.accelerators if typical.devices else catalog.processors
        words = (
            f"{len(kind.nodes)} nodes with {typical.traits.get('devices') or typical.processor_name or 'nothing known'}"
        )
        if has_devices and not typical.devices:
            left_out.append(f"{words}: they have no accelerators")
        elif name not in known:
            left_out.append(f"{words}: not in the catalogue; describe it in {known.kind} rows of your own")
        else:
            computing.append((kind, name, count))
            left_out += _missing(kind)
    if not computing:
        return Described({}, tuple(left_out))
    main = computing[0][0]
    hosts = [kind.typical.memory_bytes for kind, _, _ in computing if kind.typical.memory_bytes]
    link = interconnect_of(main.typical.ports, catalog)
    row: dict[str, object] = {
        "groups": [
            {"name": name, "devices": count * len(kind.whole), "per_node": count} for kind, name, count in computing
        ],
        "nodes": sum(len(kind.whole) for kind, _, _ in computing),
    }
    if link is not None and main.typical.ports is not None:
        row |= {"interconnect": link, "ports_per_node": main.typical.ports.count}
    if len(computing) == 1 and (levels := levels_of(main.whole, computing[0][2])):
        row["levels"] = levels
    if hosts:
        row["host_memory_gib"] = round(min(hosts) / _GIB, 1)
    return Described(row, tuple(left_out))


def interconnect_of(ports: Ports | None, catalog: Catalog) -> str | None:
    """Return the id of the link that ports of this kind and speed are; None where no row is."""
    if ports is None:
        return None
    word = _LINK_WORDS.get(ports.kind, "")
    for link in catalog.links.values():
        if link.per == "port" and word in link.name and round(link.per_direction_gbs * _GBS_IN_MBPS) == ports.mbps:
            return link.id
    return None


def levels_of(nodes: Sequence[NodeFacts], per_node: int) -> list[dict[str, object]]:
    """Return the levels around nodes from the innermost out; none where nobody says what they are below."""
    depths = min((len(node.holders) for node in nodes), default=0)
    levels: list[dict[str, object]] = []
    held = 1
    for depth in range(depths):
        sizes = Counter(node.holders[depth] for node in nodes)
        if len(sizes) == 1:
            break
        most = math.ceil(max(sizes.values()) / held) * held
        if most > held or depth == 0:
            name = _OF_NAMES[depth] if depth < len(_OF_NAMES) else f"level {depth + 1}"
            levels.append({"name": name, "devices": most * per_node})
            held = most
    return [*levels, {"name": _OUTERMOST}] if levels else []


def _missing(kind: Kind) -> Iterator[str]:
    """Yield which nodes count for nothing since devices of theirs are missing."""
    whole = {node.node for node in kind.whole}
    for node in kind.nodes:
        if node.node not in whole:
            yield f"{node.node}: it has {node.devices} devices, others {kind.typical.devices}"
