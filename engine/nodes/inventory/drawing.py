"""The levels of a cluster as lines of text: fabric, racks, nodes; equal neighbours folded."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from capacity_tui.engine.nodes.inventory.inventory import Inventory
from capacity_tui.engine.nodes.inventory.node_facts import NodeFacts

MOST_RACKS = 24
"""Racks that are drawn one by one."""
_BRANCHES = {False: ("├─ ", "└─ "), True: ("|- ", "`- ")}
_NUMBERED = re.compile(r"(.*?)(\d+)")
_NOWHERE = "no rack told"


def folded_names(names: Iterable[str]) -> str:
    """Return names of nodes as Slurm writes them: ``gpu[01-04,07],login``."""
    alone: dict[str, None] = {}
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            alone[name] = None
        else:
            numbers[match[1], len(match[2])].append(int(match[2]))
            alone.setdefault(f"{match[1]}\0{len(match[2])}")
    return ",".join(_ranges(prefix, numbers) for prefix in alone)


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
        yield f"{_BRANCHES[ascii_only][1]}{names}: {_what(inventory.nodes)}"
        return
    entries = sorted(racks.items(), key=lambda entry: entry[0] == _NOWHERE)
    shown = entries[:MOST_RACKS] if len(entries) > MOST_RACKS else entries
    rest = entries[len(shown) :]
    for number, (name, nodes) in enumerate(shown):
        is_last = number == len(shown) - 1 and not rest
        listed = folded_names(node.node for node in nodes)
        yield f"{_BRANCHES[ascii_only][is_last]}{name}  {listed}: {_what(nodes)}"
    if rest:
        left = [node for _, nodes in rest for node in nodes]
        yield f"{_BRANCHES[ascii_only][True]}{len(rest)} more racks with {_nodes(left)}"


def _ranges(entry: str, numbers: dict[tuple[str, int], list[int]]) -> str:
    prefix, separator, width = entry.partition("\0")
    if not separator:
        return entry
    held = sorted(set(numbers[prefix, int(width)]))
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(held), key=lambda position: position[1] - position[0])
    ]
    texts = [f"{run[0]:0{width}d}" if len(run) == 1 else f"{run[0]:0{width}d}-{run[-1]:0{width}d}" for run in runs]
    return f"{prefix}{texts[0]}" if len(held) == 1 else f"{prefix}[{','.join(texts)}]"


def _nodes(nodes: Sequence[NodeFacts]) -> str:
    devices = sum(node.devices for node in nodes)
    return f"{len(nodes)} node{'s' if len(nodes) != 1 else ''}" + (f", {devices} devices" if devices else "")


def _what(nodes: Sequence[NodeFacts]) -> str:
    """Return what nodes have, equal ones counted together."""
    counts = Counter(node.traits.get("devices") or f"{node.sockets} x {node.processor_name or '?'}" for node in nodes)
    ports = Counter(str(node.ports) for node in nodes if node.ports)
    joined = f"; {max(ports, key=lambda port: ports[port])}" if ports else ""
    return ", ".join(f"{count} of {words}" if len(counts) > 1 else words for words, count in counts.items()) + joined
