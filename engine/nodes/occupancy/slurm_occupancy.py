"""The nodes of a Slurm cluster with what their devices do now, as the controller reports."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CatalogError, LauncherError
from capacity_tui.engine.nodes.launchers.slurm import SlurmNode, racks_of, slurm_nodes, slurm_text
from capacity_tui.engine.nodes.occupancy.occupancy import NodeState, Occupancy

PROCESSORS = "processors"
"""What nodes without accelerators have: each counts as one device."""
_GPU = "gpu"
_LEVELS = ("node", "rack")


def slurm_occupancy(catalog: Catalog) -> Occupancy | None:
    """Return the nodes of the cluster that this machine's Slurm commands talk to, rack by rack; None without Slurm.

    Raises:
        LauncherError: its controller does not answer.
    """
    if shutil.which("scontrol") is None:
        return None
    nodes = slurm_nodes()
    try:
        racks = racks_of(slurm_text("scontrol", "--oneliner", "show", "topology"))
    except LauncherError:  # controllers without a topology refuse
        racks = {}
    return occupancy_of(nodes, racks, catalog)


def occupancy_of(nodes: tuple[SlurmNode, ...], racks: Mapping[str, tuple[str, ...]], catalog: Catalog) -> Occupancy:
    """Return nodes as the controller reports them, with the switches above them.

    Args:
        racks: the switches above each, the nearest first.
    """
    states = sorted((_state(node, racks, catalog) for node in nodes), key=lambda node: node.holders[:1])
    levels = _LEVELS if any(node.holders for node in states) else _LEVELS[:1]
    return Occupancy(tuple(states), levels, "Slurm, now", is_live=True)


def _state(node: SlurmNode, racks: Mapping[str, tuple[str, ...]], catalog: Catalog) -> NodeState:
    kinds = node.gpus
    devices, used = sum(kinds.values()), node.gpus_used
    hardware = _hardware(max(kinds, key=lambda name: kinds[name]), catalog) if kinds else PROCESSORS
    if not devices:
        devices, used = 1, int(node.cpus_used > 0)
    used = min(used, devices)
    note = " ".join(part for part in (node.state, node.reason) if part) if not node.is_usable else ""
    return NodeState(
        node.name,
        hardware,
        devices,
        busy=used,
        down=devices - used if not node.is_usable else 0,
        holders=racks.get(node.name, ())[:1],
        note=note,
    )


def _hardware(name: str, catalog: Catalog) -> str:
    """Return the id of a device that an administrator calls ``h100``; that name where the catalogue has none."""
    try:
        return catalog.accelerators.find(name).id if name else _GPU
    except CatalogError:
        return name
