"""Who reaches whom how: accelerators among each other and next to network adapters."""

from __future__ import annotations

from collections.abc import Sequence

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.machine import Accelerator, LinkMatrix, NetworkInterface, Topology
from capacity_tui.engine.machine.topology.pci import level


def complete_topology(
    accelerators: Sequence[Accelerator], networks: Sequence[NetworkInterface], reported: Fact[LinkMatrix] | None
) -> Topology:
    """Return the matrices of a machine.

    Args:
        accelerators: in the order of detection.
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
