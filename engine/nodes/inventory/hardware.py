"""The hardware that plans may name of a cluster: a row of the user's own catalogue, made of an inventory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.nodes.inventory.drawing import folded_names
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
    hosts = [kind.typical.memory_bytes for kind, _, _ in computing if kind.typical.memory_bytes]
    sizes: Counter[tuple[str, int]] = Counter()
    for kind, name, count in computing:
        sizes[name, count] += len(kind.whole)
    row: dict[str, object] = {
        "groups": [
            {"name": name, "devices": count * nodes, "per_node": count} for (name, count), nodes in sizes.items()
        ],
        "nodes": sum(sizes.values()),
    }
    slowest = min(computing, key=lambda entry: _bandwidth(entry[0].typical.ports) / entry[2])[0]
    link = interconnect_of(slowest.typical.ports, catalog)
    if link is not None and slowest.typical.ports is not None:
        row |= {"interconnect": link, "ports_per_node": slowest.typical.ports.count}
    left_out += _faster_networks([kind for kind, _, _ in computing], slowest)
    whole = [node for kind, _, _ in computing for node in kind.whole]
    placed = [node for node in whole if node.holders]
    if len(sizes) == 1 and (levels := levels_of(placed, computing[0][2])):
        row["levels"] = levels
        if unplaced := [node.node for node in whole if not node.holders]:
            left_out.append(
                f"the place of {folded_names(unplaced)}: nobody tells it, it is taken to be like that of others"
            )
    if hosts:
        row["host_memory_gib"] = round(min(hosts) / _GIB, 1)
    return Described(row, tuple(left_out))


def _bandwidth(ports: Ports | None) -> float:
    """Return Mb/s of all ports together; no end of them where nothing is known."""
    return float(ports.mbps * ports.count) if ports is not None and ports.mbps else math.inf


def _faster_networks(kinds: Sequence[Kind], slowest: Kind) -> Iterator[str]:
    """Yield which networks are counted as slower than they are, since all nodes of a plan wait for the slowest."""
    for kind in kinds:
        if str(kind.typical.ports) != str(slowest.typical.ports):
            yield (
                f"the network of {len(kind.nodes)} nodes, {kind.typical.ports or 'unknown'}: "
                f"plans on all nodes wait for the slowest, {slowest.typical.ports or 'unknown'}"
            )


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
    """Yield which nodes count for nothing since devices of theirs are missing or partitioned."""
    whole = {node.node for node in kind.whole}
    for node in kind.nodes:
        if node.node not in whole:
            is_cut = node.devices == kind.typical.devices
            here = "its devices are partitioned" if is_cut else f"it has {node.devices} devices"
            usual = "those of others are whole" if is_cut else f"others {kind.typical.devices}"
            yield f"{node.node}: {here}, {usual}"
