"""The hardware that plans may name of a cluster: a row of the user's own catalogue, made of an inventory."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.nodes.inventory import Change, DeviceQueue, Inventory, Kind, NodeFacts, Ports
from capacity_tui.engine.present import Part, TextPart, table_part
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_seconds

_LINK_WORDS = {"infiniband": "InfiniBand", "roce": "RoCE", "ethernet": "Ethernet"}
_OF_NAMES = ("rack", "pod")
_OUTERMOST = "fabric"
_GBS_IN_MBPS = 8000
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class ClusterHardware:
    """What of an inventory becomes hardware of plans."""

    row: dict[str, object]  # the row of the catalogue without its name; empty where nothing of it can be planned for
    left_out: tuple[str, ...]  # what is not part of it and why, a sentence each


def cluster_hardware(inventory: Inventory, catalog: Catalog) -> ClusterHardware:
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
        return ClusterHardware({}, tuple(left_out))
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
    whole_nodes = [node for kind, _, _ in computing for node in kind.whole]
    placed = [node for node in whole_nodes if node.holders]
    if len(sizes) == 1 and (levels := levels_of(placed, computing[0][2])):
        row["levels"] = levels
        if unplaced := [node.node for node in whole_nodes if not node.holders]:
            left_out.append(
                f"the place of {folded_names(unplaced)}: no node reports it; assumed to be like that of others"
            )
    if hosts:
        row["host_memory_gib"] = round(min(hosts) / _GIB, 1)
    return ClusterHardware(row, tuple(left_out))


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
    """Return the levels around nodes from the innermost out; none where the inner ones are unknown."""
    depths = min((len(node.holders) for node in nodes), default=0)
    levels: list[dict[str, object]] = []
    inside = 1
    for depth in range(depths):
        sizes = Counter(node.holders[depth] for node in nodes)
        if len(sizes) == 1:
            break
        most = math.ceil(max(sizes.values()) / inside) * inside
        if most > inside or depth == 0:
            name = _OF_NAMES[depth] if depth < len(_OF_NAMES) else f"level {depth + 1}"
            levels.append({"name": name, "devices": most * per_node})
            inside = most
    return [*levels, {"name": _OUTERMOST}] if levels else []


def _missing(kind: Kind) -> Iterator[str]:
    """Yield which nodes count for nothing since devices of theirs are missing or partitioned."""
    whole_nodes = {node.node for node in kind.whole}
    for node in kind.nodes:
        if node.node not in whole_nodes:
            is_cut = node.devices == kind.typical.devices
            reason = "its devices are partitioned" if is_cut else f"it has {node.devices} devices"
            usual = "those of others are whole" if is_cut else f"others {kind.typical.devices}"
            yield f"{node.node}: {reason}, {usual}"


MOST_RACKS = 24  # Racks that are drawn one by one
_BRANCHES = {False: ("├─ ", "└─ "), True: ("|- ", "`- ")}
_NUMBERED = re.compile(r"(.*?)(\d+)")
_NOWHERE = "no rack given"


def folded_names(names: Iterable[str]) -> str:
    """Return names of nodes as Slurm writes them: ``gpu[01-04,07],login``."""
    single: dict[str, None] = {}
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            single[name] = None
        else:
            numbers[match[1], len(match[2])].append(int(match[2]))
            single.setdefault(f"{match[1]}\0{len(match[2])}")
    return ",".join(_ranges(prefix, numbers) for prefix in single)


def drawn_levels(inventory: Inventory, ascii_only: bool = False) -> Iterator[str]:
    """Yield the lines of a drawing."""
    racks: dict[str, list[NodeFacts]] = defaultdict(list)
    for node in inventory.nodes:
        racks[node.holders[0] if node.holders else _NOWHERE].append(node)
    named = [name for name in racks if name != _NOWHERE]
    count = f"{len(named)} racks, " if named else ""
    yield f"{inventory.name}: {count}{_nodes(inventory.nodes)}"
    if not named:
        names = folded_names(node.node for node in inventory.nodes)
        yield f"{_BRANCHES[ascii_only][1]}{names}: {_node_words(inventory.nodes)}"
        return
    entries = sorted(racks.items(), key=lambda entry: entry[0] == _NOWHERE)
    shown = entries[:MOST_RACKS] if len(entries) > MOST_RACKS else entries
    remaining = entries[len(shown) :]
    for number, (name, nodes) in enumerate(shown):
        is_last = number == len(shown) - 1 and not remaining
        listed = folded_names(node.node for node in nodes)
        yield f"{_BRANCHES[ascii_only][is_last]}{name}  {listed}: {_node_words(nodes)}"
    if remaining:
        remaining_nodes = [node for _, nodes in remaining for node in nodes]
        yield f"{_BRANCHES[ascii_only][True]}{len(remaining)} more racks with {_nodes(remaining_nodes)}"


def _ranges(entry: str, numbers: dict[tuple[str, int], list[int]]) -> str:
    prefix, separator, width = entry.partition("\0")
    if not separator:
        return entry
    listed = sorted(set(numbers[prefix, int(width)]))
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(listed), key=lambda position: position[1] - position[0])
    ]
    texts = [f"{run[0]:0{width}d}" if len(run) == 1 else f"{run[0]:0{width}d}-{run[-1]:0{width}d}" for run in runs]
    return f"{prefix}{texts[0]}" if len(listed) == 1 else f"{prefix}[{','.join(texts)}]"


def _nodes(nodes: Sequence[NodeFacts]) -> str:
    devices = sum(node.devices for node in nodes)
    return f"{len(nodes)} node{'s' if len(nodes) != 1 else ''}" + (f", {devices} devices" if devices else "")


def _node_words(nodes: Sequence[NodeFacts]) -> str:
    """Return what nodes have, equal ones counted together."""
    counts = Counter(node.traits.get("devices") or f"{node.sockets} x {node.processor_name or '?'}" for node in nodes)
    ports = Counter(str(node.ports) for node in nodes if node.ports)
    joined = f"; {max(ports, key=lambda port: ports[port])}" if ports else ""
    return ", ".join(f"{count} of {words}" if len(counts) > 1 else words for words, count in counts.items()) + joined


def inventory_as_dict(
    inventory: Inventory, hardware: ClusterHardware, changes: Sequence[Change] | None = None
) -> dict[str, object]:
    """Return an inventory as nested dictionaries, lists and scalars; ``changes`` where it was compared."""
    kinds = inventory.kinds
    data: dict[str, object] = {
        "name": inventory.name,
        "reached_by": inventory.reached_by,
        "seen": inventory.seen.isoformat(),
        "kinds": [_kind(kind) for kind in kinds],
        "odd": [entry for kind in kinds for entry in _odd(kind)],
        "silent": [{"node": node, "reason": reason} for node, reason in inventory.silent.items()],
        "hardware": hardware.row or None,
        "left_out": list(hardware.left_out),
        "used": {node.node: node.used for node in inventory.nodes if node.used is not None},
        "used_slices": {node.node: dict(node.used_slices) for node in inventory.nodes if node.used_slices},
        "queues": [queue.model_dump() for queue in inventory.queues],
        "notes": list(inventory.notes),
        "racks": {node.node: list(node.holders) for node in inventory.nodes if node.holders},
    }
    return data if changes is None else {**data, "changes": [asdict(change) for change in changes]}


def inventory_parts(inventory: Inventory, hardware: ClusterHardware, ascii_only: bool = False) -> Iterator[Part]:
    """Yield an inventory for people: kinds of nodes, odd ones, silent ones, levels, and what plans can name."""
    age = (datetime.now(UTC) - inventory.seen).total_seconds()
    when = "now" if age < 60 else f"{format_seconds(age)} ago"
    yield TextPart(f"{inventory.name}, seen {when} through {inventory.reached_by}", "strong")
    heads = ("kind", "nodes", "devices", "processor", "memory", "network", "driver")
    yield table_part(heads, [_row(number, kind) for number, kind in enumerate(inventory.kinds, 1)], (1,))
    for kind in inventory.kinds:
        for node in kind.nodes:
            remarks = [str(difference) for difference in kind.odd.get(node.node, ())]
            if words := [*remarks, *node.troubles]:
                yield TextPart(f"odd: {node.node}: {'; '.join(words)}", "strong")
    for name, reason in inventory.silent.items():
        yield TextPart(f"no answer: {name}: {reason}", "strong")
    yield TextPart()
    for line in drawn_levels(inventory, ascii_only):
        yield TextPart(line)
    yield from _use_parts(inventory)
    for left_out in hardware.left_out:
        yield TextPart(f"not in the hardware of plans: {left_out}", "quiet")


def _use_parts(inventory: Inventory) -> Iterator[Part]:
    """Yield what others had of the devices, and what queues may have, where that is known."""
    counted = [node for node in inventory.nodes if node.used is not None and node.devices]
    if counted:
        used, devices = sum(node.used or 0 for node in counted), sum(node.devices for node in counted)
        free = folded_names(node.node for node in counted if not node.used)
        yield TextPart(f"used: {used} of {devices} devices" + (f"; nobody has any of {free}" if free else ""))
    for node in inventory.nodes:
        for profile, count in node.used_slices.items():
            yield TextPart(f"used: {node.node}: {count} x {profile}")
    if inventory.queues:
        yield TextPart()
        heads = ("queue", "namespace", "quota", "may borrow", "used", "waiting", "")
        yield table_part(heads, map(_queue_row, inventory.queues), (2, 3, 4, 5))
    for note in inventory.notes:
        yield TextPart(note, "quiet")


def _queue_row(queue: DeviceQueue) -> tuple[str, ...]:
    borrows = "no limit" if queue.borrows is None else str(queue.borrows)
    quota = "n/a" if queue.quota is None else str(queue.quota)
    return (queue.name, queue.namespace, quota, borrows, str(queue.used), str(queue.pending), queue.why_held)


def change_parts(changes: Sequence[Change]) -> Iterator[Part]:
    """Yield what has changed since a cluster was kept."""
    if not changes:
        yield TextPart("Nothing has changed since it was kept.")
        return
    rows = [(change.node, change.what, change.kept, change.now) for change in changes]
    yield table_part(("node", "what", "kept", "now"), rows)


def _row(number: int, kind: Kind) -> tuple[str, ...]:
    columns = [kind.usual.get(trait, "n/a") for trait in ("processor", "memory", "network", "driver")]
    return (str(number), str(len(kind.nodes)), kind.usual.get("devices", "none"), *columns)


def _kind(kind: Kind) -> dict[str, object]:
    typical = kind.typical
    return {
        "nodes": len(kind.nodes),
        "names": folded_names(node.node for node in kind.nodes),
        "device": typical.device or None,
        "devices_per_node": typical.devices,
        "processor": typical.processor or None,
        "memory_bytes": typical.memory_bytes or None,
        "usual": dict(kind.usual),
    }


def _odd(kind: Kind) -> Iterator[dict[str, object]]:
    for node in kind.nodes:
        differences = kind.odd.get(node.node, ())
        if differences or node.troubles:
            yield {
                "node": node.node,
                "differences": [asdict(difference) for difference in differences],
                "troubles": list(node.troubles),
            }
