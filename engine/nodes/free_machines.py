"""What a cluster has free, as machines of a schedule: its nodes, what others have of each, and until when."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from capacity_tui.engine.catalog import Catalog, Plain
from capacity_tui.engine.errors import CapacityError, HardwareError, LauncherError
from capacity_tui.engine.nodes.clusters import detect_cluster, kept_cluster
from capacity_tui.engine.nodes.hardware import folded_names
from capacity_tui.engine.nodes.jobs import queued_jobs
from capacity_tui.engine.nodes.launcher import Launcher
from capacity_tui.engine.nodes.occupancy import NodeState, Occupancy, kept_occupancy, slurm_occupancy
from capacity_tui.engine.nodes.slurm import Slurm, names_of


def machines_of(nodes: Launcher | None, cluster: str | None, catalog: Catalog) -> tuple[list[Plain], str]:
    """Return the machines of a cluster as entries of a schedule, and where that is from.

    Args:
        nodes: what reaches the cluster; None for the one that was kept.
        cluster: name of the one that was kept; None for the only one.

    Raises:
        CapacityError: the cluster does not answer, none was kept, or it has no accelerators.
    """
    if isinstance(nodes, Slurm):
        occupancy = slurm_occupancy(catalog)
        if occupancy is None:
            raise LauncherError("Slurm is not installed here", hint="name a cluster that was kept with --cluster")
        return _accelerated(occupancy, catalog, _ends()), occupancy.source
    if nodes is not None:
        occupancy = kept_occupancy(detect_cluster(nodes, "cluster"))
    else:
        occupancy = kept_occupancy(kept_cluster(cluster))
    return _accelerated(occupancy, catalog), occupancy.source


def _accelerated(occupancy: Occupancy, catalog: Catalog, ends: Mapping[str, float] | None = None) -> list[Plain]:
    """Return the machines of a cluster.

    Raises:
        HardwareError: none of it has an accelerator to give.
    """
    entries = machine_entries(occupancy, catalog, ends)
    if not entries:
        known = [node for node in occupancy.nodes if node.hardware in catalog.accelerators and node.devices]
        title = "all accelerators of the cluster are down" if known else "the cluster has no accelerators"
        hint = "write fleet: into queue.yaml, with the machines that the jobs may have"
        raise HardwareError(title, occupancy.source, hint)
    return entries


def _ends() -> dict[str, float]:
    """Return the seconds until the last job of each node of Slurm has to be over."""
    ends: dict[str, float] = {}
    try:
        jobs = queued_jobs(everyone=True)
    except CapacityError:
        return ends
    for job in jobs:
        if job.on_nodes and not job.is_over:
            left = math.inf if job.limit_seconds is None else max(0.0, job.limit_seconds - job.seconds)
            for name in names_of(job.on_nodes):
                ends[name] = max(ends.get(name, 0.0), left)
    return ends


def machine_entries(occupancy: Occupancy, catalog: Catalog, ends: Mapping[str, float] | None = None) -> list[Plain]:
    """Return nodes as entries of a schedule, equal ones together.

    Args:
        ends: seconds until what a node runs is over; never where unknown.
    """
    kinds: dict[tuple[str, int], list[NodeState]] = defaultdict(list)
    for node in occupancy.nodes:
        if node.devices > node.down and node.hardware in catalog.accelerators:
            kinds[node.hardware, node.devices].append(node)
    return [_entry(hardware, devices, nodes, ends or {}) for (hardware, devices), nodes in kinds.items()]


def _entry(hardware: str, devices: int, nodes: Sequence[NodeState], ends: Mapping[str, float]) -> Plain:
    until = [f"{ends[node.name]}s" if math.isfinite(ends.get(node.name, math.inf)) else None for node in nodes]
    return {
        "instance": hardware,
        "name": folded_names(node.name for node in nodes),
        "count": len(nodes),
        "devices": devices,
        "taken": [min(devices, node.busy + node.down) for node in nodes],
        "taken_until": [None if node.down else end for node, end in zip(nodes, until, strict=True)],
        "names": [node.name for node in nodes],
    }
