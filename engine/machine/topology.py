"""How devices hang together: PCI and DRM of the kernel, links between accelerators, the machine as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import PurePath

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.machine import (
    Accelerator,
    LinkMatrix,
    Machine,
    NetworkInterface,
    NumaNode,
    PcieLink,
    PciPath,
    Topology,
)
from capacity_tui.engine.machine.probing import Host
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes

DEVICES = "/sys/bus/pci/devices"
LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS", "?")  # nearest first; any other cell of a matrix is a direct link
ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def path_of(host: Host, link: str) -> Fact[PciPath]:
    """Return the PCI path of the device a sysfs link leads to, such as a card's ``device``."""
    target = host.target(link)
    if target is None:
        return missing(link, "this machine does not tell")
    path = parse_path(target)
    return detected(path, link) if path else missing(link, "not on the PCI bus")


def parse_path(target: PurePath) -> PciPath:
    """Return host bridge and addresses of a path below ``/sys/devices``; empty if it is not on the PCI bus."""
    parts = target.parts
    start = next((index for index, part in enumerate(parts) if ROOT.fullmatch(part)), None)
    if start is None:
        return ()
    return (parts[start], *(part for part in parts[start + 1 :] if ADDRESS.fullmatch(part)))


def numa_node(host: Host, device: str) -> Fact[int]:
    """Return the NUMA node next to a device, given its sysfs directory."""
    node = host.integer(f"{device}/numa_node")
    return missing(node.source, "the firmware names no node") if node.value == -1 else node


def level(first: PciPath, second: PciPath, same_node: bool | None) -> str:
    """Return how two devices reach each other, in the terms of ``nvidia-smi topo``.

    Args:
        same_node: whether both lie next to the same NUMA node; None where unknown.
    """
    if not first or not second:
        return "?"
    shared = next((depth for depth, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    shared = min(len(first), len(second)) if shared is None else shared
    if shared == 0:
        return "?" if same_node is None else "NODE" if same_node else "SYS"
    if shared == 1:
        return "PHB"
    # Below a switch's upstream port each device has its own downstream port, and no more.
    return "PIX" if max(len(first), len(second)) - shared <= 2 else "PXB"


CARDS = "/sys/class/drm"
GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}  # GT/s a lane, PCIe 1 to 6


@dataclass(frozen=True, slots=True)
class Card:
    """One card: its sysfs directories and PCI ids in lower-case hex without ``0x``."""

    card: str  # such as ``/sys/class/drm/card0``
    vendor: str
    device: str
    revision: str
    address: str  # PCI address, empty if it has none

    @property
    def base(self) -> str:
        """The device's directory."""
        return f"{self.card}/device"

    @property
    def pci_id(self) -> str:
        """``vendor:device:revision``."""
        return f"{self.vendor}:{self.device}:{self.revision}"


def cards(host: Host, vendor: str) -> tuple[Card, ...]:
    """Return the cards of one PCI vendor id, in the order of their PCI addresses."""
    result = []
    for name in host.names(CARDS):
        if not re.fullmatch(r"card\d+", name):
            continue
        base = f"{CARDS}/{name}/device"
        ids = [(host.text(f"{base}/{part}").value or "0x0")[2:] for part in ("vendor", "device", "revision")]
        if ids[0] == vendor:
            result.append(Card(f"{CARDS}/{name}", ids[0], ids[1], ids[2].zfill(2), _address(host, base)))
    return tuple(sorted(result, key=lambda card: card.address))


def hwmon(host: Host, card: Card, *names: str, scale: float) -> Fact[float]:
    """Return the first sensor that answers, its integer divided by ``scale``."""
    last: Fact[float] = missing(f"{card.base}/hwmon", "no sensors")
    for monitor in host.names(f"{card.base}/hwmon"):
        for name in names:
            last = host.integer(f"{card.base}/hwmon/{monitor}/{name}").map(lambda value: value / scale)
            if last.value is not None:
                return last
    return last


def pcie_link(host: Host, card: Card) -> PcieLink:
    """Return the card's PCIe link now and at its most."""
    return PcieLink(
        generation=host.fact(f"{card.base}/current_link_speed", _generation),
        lanes=host.integer(f"{card.base}/current_link_width"),
        generation_max=host.fact(f"{card.base}/max_link_speed", _generation),
        lanes_max=host.integer(f"{card.base}/max_link_width"),
    )


def _address(host: Host, base: str) -> str:
    match = re.search(r"PCI_SLOT_NAME=(\S+)", host.text(f"{base}/uevent").value or "")
    return match[1] if match else ""


def _generation(text: str) -> int:
    speed = text.split(" ", 1)[0]
    if speed not in GENERATIONS:
        raise ValueError(text)
    return GENERATIONS[speed]


def complete_topology(
    accelerators: Sequence[Accelerator], networks: Sequence[NetworkInterface], reported: Fact[LinkMatrix] | None
) -> Topology:
    """Return the matrices of a machine.

    Args:
        networks: adapters; those without a place on the PCI tree are left out.
        reported: what a driver says about the first accelerators, which wins over what links and addresses say.
    """
    adapters = [card for card in networks if card.pci_path.value and card.kind != "wifi"]
    rows = (tuple(_distance(gpu, card) for card in adapters) for gpu in accelerators)
    names = tuple(card.name for card in adapters)
    return Topology(_links(accelerators, reported), names, tuple(rows) if adapters else ())


def _links(accelerators: Sequence[Accelerator], reported: Fact[LinkMatrix] | None) -> Fact[LinkMatrix]:
    if reported is not None and (reported.value is None or len(reported.value) == len(accelerators)):
        return reported
    if len(accelerators) < 2:
        return missing("links", "fewer than two accelerators")
    known = reported.value if reported is not None and reported.value else ()
    size = range(len(accelerators))
    rows = tuple(tuple(_link(accelerators, known, row, column) for column in size) for row in size)
    if all(cell in "X?" for row in rows for cell in row):
        return missing("links", "neither links nor PCI addresses of the accelerators are known")
    return detected(rows, "the accelerators' own links and PCI addresses")


def _link(accelerators: Sequence[Accelerator], known: LinkMatrix, row: int, column: int) -> str:
    if row == column:
        return "X"
    if row < len(known) and column < len(known):
        return known[row][column]
    direct = {link.peer: link.kind for link in accelerators[row].links.value or ()}
    return direct.get(column) or _distance(accelerators[row], accelerators[column])


def _distance(first: Accelerator, second: Accelerator | NetworkInterface) -> str:
    nodes = (first.numa_node.value, second.numa_node.value)
    same = None if None in nodes else nodes[0] == nodes[1]
    return level(first.pci_path.value or (), second.pci_path.value or (), same)


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
    sockets = cpu.sockets.value or 1
    root = _Branch(f"{cpu.model.value or 'CPU'}{f'{separator}{sockets} sockets' if sockets > 1 else ''}")
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
    for address in path[1:-1]:  # the bridges between that and the device
        branch = branch.child(address, f"bridge {address}")
    branch.child(label, label)


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
