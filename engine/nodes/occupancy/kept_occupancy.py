"""The nodes of a cluster as they were detected and kept: what is there, and what is missing or odd."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.nodes.inventory.inventory import Inventory
from capacity_tui.engine.nodes.inventory.kinds import Kind
from capacity_tui.engine.nodes.inventory.node_facts import NodeFacts
from capacity_tui.engine.nodes.occupancy.occupancy import NodeState, Occupancy

_LEVELS = ("node", "rack")


def kept_occupancy(inventory: Inventory) -> Occupancy:
    """Return the nodes of a kept cluster, rack by rack; what its jobs take is unknown.

    Devices that a node lacks of those of its kind are down, and so are all of a node that gave no answer.

    Args:
        inventory: the cluster as it was seen.
    """
    states = sorted(_states(inventory), key=lambda node: node.holders[:1])
    levels = _LEVELS if any(node.holders for node in states) else _LEVELS[:1]
    source = f"{inventory.name} as seen on {inventory.seen:%Y-%m-%d} through {inventory.reached_by}; jobs not known"
    return Occupancy(tuple(states), levels, source)


def _states(inventory: Inventory) -> Iterator[NodeState]:
    kinds = inventory.kinds
    for kind in kinds:
        for node in kind.nodes:
            yield _state(node, kind)
    for name, why in inventory.silent.items():
        whole = _count(kinds[0].typical) if kinds else 0
        hardware = kinds[0].typical.family if kinds else ""
        yield NodeState(name, hardware, whole, down=whole, note=why)


def _state(node: NodeFacts, kind: Kind) -> NodeState:
    wanted, here = _count(kind.typical), _count(node)
    remarks = (*node.troubles, *map(str, kind.odd.get(node.node, ())))
    return NodeState(
        node.node,
        kind.typical.family,
        max(wanted, here),
        down=max(wanted - here, 0),
        holders=node.holders[:1],
        note="; ".join(remarks),
    )


def _count(node: NodeFacts) -> int:
    """Return how many devices plans have of a node: its accelerators, or else its processors."""
    return node.devices or node.sockets
