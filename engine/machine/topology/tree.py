"""The machine drawn as a tree: NUMA nodes, host bridges, switches, accelerators and network adapters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from capacity_tui.engine.machine.machine import Accelerator, Machine, NetworkInterface, NumaNode, PciPath
from capacity_tui.engine.units import format_bytes

LINES = ("├─ ", "└─ ", "│  ", "   ")
ASCII_LINES = ("+- ", "`- ", "|  ", "   ")
ANYWHERE = "place unknown"


@dataclass(slots=True)
class _Branch:
    """One place of the tree while it is built."""

    label: str
    branches: dict[str, _Branch] = field(default_factory=dict)

    def child(self, key: str, label: str) -> _Branch:
        return self.branches.setdefault(key, _Branch(label))


def topology_lines(machine: Machine, ascii_only: bool = False) -> tuple[str, ...]:
    """Return the tree of a machine and the matrix of its links, one text a line."""
    separator = " - " if ascii_only else " · "
    root = _tree(machine, separator)
    glyphs = ASCII_LINES if ascii_only else LINES
    return (root.label, *_drawn(root, "", glyphs), *_matrix(machine))


def _tree(machine: Machine, separator: str) -> _Branch:
    cpu = machine.cpu
    root = _Branch(separator.join(part for part in (cpu.model.value or "CPU", _sockets(cpu.sockets.value)) if part))
    nodes = cpu.numa_nodes.value or ()
    for node in nodes:
        root.child(f"numa{node.index}", _node_label(node, separator))
    for gpu in machine.accelerators:
        _attach(root, gpu, _device_label(gpu, separator), nodes)
    for card in machine.networks:
        if card.kind != "virtual":
            _attach(root, card, _card_label(card, separator), nodes)
    return root


def _attach(root: _Branch, device: Accelerator | NetworkInterface, label: str, nodes: Sequence[NumaNode]) -> None:
    number, path = device.numa_node.value, device.pci_path.value
    if number is None and len(nodes) == 1:
        number = nodes[0].index
    branch = root if number is None else root.child(f"numa{number}", f"NUMA node {number}")
    if not path:
        parent = branch if number is not None else branch.child(ANYWHERE, ANYWHERE)
        parent.child(label, label)
        return
    branch = branch.child(path[0], f"host bridge {path[0].removeprefix('pci')}")
    for address in _switches(path):
        branch = branch.child(address, f"bridge {address}")
    branch.child(label, label)


def _switches(path: PciPath) -> PciPath:
    """Return the bridges between the host bridge and the device."""
    return path[1:-1]


def _drawn(branch: _Branch, indent: str, glyphs: Sequence[str]) -> Iterator[str]:
    tee, corner, bar, blank = glyphs
    children = [_shortened(child) for child in branch.branches.values()]
    for number, child in enumerate(children, start=1):
        last = number == len(children)
        yield indent + (corner if last else tee) + child.label
        yield from _drawn(child, indent + (blank if last else bar), glyphs)


def _shortened(branch: _Branch) -> _Branch:
    """Return the branch without bridges that lead to one place only."""
    while branch.label.startswith("bridge ") and len(branch.branches) == 1:
        branch = next(iter(branch.branches.values()))
    return branch


def _matrix(machine: Machine) -> Iterator[str]:
    rows = machine.topology.links.value
    if not rows:
        if len(machine.accelerators) > 1:
            yield f"links: {machine.topology.links}"
        return
    adapters, far = machine.topology.adapters, machine.topology.adapter_links
    names = [f"GPU{index}" for index in range(len(rows))]
    heads = [*names, *adapters]
    cells = [[*row, *(far[index] if far else ())] for index, row in enumerate(rows)]
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    first = max(len(name) for name in names)
    yield " " * first + "".join(f"  {head:>{width}}" for head, width in zip(heads, widths, strict=True))
    for name, row in zip(names, cells, strict=True):
        yield f"{name:<{first}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=True))


def _sockets(count: int | None) -> str:
    return f"{count} sockets" if count and count > 1 else ""


def _node_label(node: NumaNode, separator: str) -> str:
    memory = format_bytes(node.memory_bytes) if node.memory_bytes else ""
    return separator.join(part for part in (f"NUMA node {node.index}", f"{len(node.cpus)} threads", memory) if part)


def _device_label(gpu: Accelerator, separator: str) -> str:
    generation, lanes = gpu.pcie.generation_max.value, gpu.pcie.lanes_max.value
    pcie = f"PCIe {generation} x{lanes}" if generation and lanes else ""
    shared = "shares main memory" if gpu.integrated.value else ""
    memory = format_bytes(gpu.memory_total_bytes.value) if gpu.memory_total_bytes.value else ""
    name = gpu.name.value or gpu.catalogue_id.value or f"{gpu.vendor} device"
    return separator.join(part for part in (f"GPU{gpu.index} {name}", memory, pcie, shared) if part)


def _card_label(card: NetworkInterface, separator: str) -> str:
    speed = f"{card.speed_mbps.value / 1000:g} Gb/s" if card.speed_mbps.value else ""
    state = "" if card.up.value is not False else "down"
    return separator.join(part for part in (f"{card.name} {card.kind}", speed, state) if part)
