"""Clusters that were kept, the hardware that plans name of them, what they have free, and the launcher of nodes."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import yaml
from pydantic import ValidationError

from capacity_tui.engine.catalog import Catalog, Plain, keep_rows, load_catalog
from capacity_tui.engine.errors import CapacityError, HardwareError, LauncherError, Place, StorageError
from capacity_tui.engine.files import data_folder, make_folder, reading_error, write_atomically
from capacity_tui.engine.machine import RECORDING_SCRIPT, Host, detect, recorded_host
from capacity_tui.engine.machine.vendors import MEMORY_ERRORS
from capacity_tui.engine.nodes.hardware import ClusterHardware, cluster_hardware, folded_names
from capacity_tui.engine.nodes.inventory import Inventory, NodeFacts, facts_of
from capacity_tui.engine.nodes.jobs import queued_jobs
from capacity_tui.engine.nodes.kubectl import Kubectl
from capacity_tui.engine.nodes.kubernetes import Kubernetes
from capacity_tui.engine.nodes.launcher import NODE_SECONDS, Launcher, NodeAnswer, Order, Ssh, read_hosts
from capacity_tui.engine.nodes.occupancy import NodeState, Occupancy, kept_occupancy, slurm_occupancy
from capacity_tui.engine.nodes.ray_nodes import RayNodes
from capacity_tui.engine.nodes.slurm import Slurm, names_of, slurm_racks

RAY_ADDRESS = "RAY_ADDRESS"


def chosen_launcher(
    slurm: bool = False,
    ray: str | None = None,
    hosts: Path | None = None,
    kubernetes: str | None = None,
    namespace: str = "",
) -> Launcher:
    """Return what reaches the nodes of a cluster.

    Where nothing is named, Slurm's commands are taken if they are here, then the Ray cluster that ``RAY_ADDRESS`` of
    the environment names.

    Args:
        kubernetes: context of ``kubectl``; the current one where empty.
        namespace: of its jobs; that of the context where empty.

    Raises:
        LauncherError: several are named, or none is there.
    """
    if sum((slurm, ray is not None, hosts is not None, kubernetes is not None)) > 1:
        raise LauncherError(
            "several ways to reach the nodes", hint="give one of --slurm, --ray ADDRESS, --hosts FILE and --kubernetes"
        )
    if hosts is not None:
        return read_hosts(hosts)
    if kubernetes is not None:
        return Kubernetes(Kubectl(kubernetes, namespace))
    if ray is not None:
        return RayNodes(ray)
    if slurm or shutil.which("scontrol"):
        return Slurm()
    if os.environ.get(RAY_ADDRESS):
        return RayNodes(os.environ[RAY_ADDRESS])
    hint = "name hosts with --hosts FILE, or a Ray cluster with --ray ADDRESS"
    raise LauncherError("no cluster is known here: Slurm is not installed", hint=hint)


_FOLDER = "clusters"
_TABLE = "clusters"
_NAME = re.compile(r"[A-Za-z][\w.-]{0,59}")
CLUSTER_NAME = "my-cluster"


def keep_cluster(inventory: Inventory, catalog: Catalog | None = None) -> ClusterHardware:
    """Keep a cluster, in place of one of the same name, and return the hardware that plans can name now.

    Raises:
        HardwareError: its name is no name, or is that of other hardware.
        StorageError: a file cannot be written.
    """
    facts = catalog or load_catalog()
    path = _file_path(inventory.name)
    if any(table.find_id(inventory.name) for table in (facts.accelerators, facts.processors, facts.instances)):
        raise HardwareError(f"{inventory.name} is other hardware", hint="give the cluster another name with --name")
    hardware = cluster_hardware(inventory, facts)
    make_folder(path.parent)
    write_atomically(path, inventory.model_dump_json(indent=1) + "\n", overwrite=True)
    row = row_text(inventory, hardware) if hardware.row else None
    keep_rows(_TABLE, f"{inventory.name}.yaml", row, facts.user_directory)
    return hardware


def row_text(inventory: Inventory, hardware: ClusterHardware) -> str:
    """Return the row of the catalogue as text."""
    fields = {
        "name": inventory.name,
        **hardware.row,
        "source": f"detected through {inventory.reached_by}",
        "checked": inventory.seen.date(),
        "confidence": "B",
    }
    head = f"# Written by `cluster detect`, which replaces it; in plans hardware: {{name: {inventory.name}}}.\n"
    return head + yaml.safe_dump({inventory.name: fields}, sort_keys=False, allow_unicode=True)


def kept_cluster(name: str | None = None) -> Inventory:
    """Return a cluster that was kept: the one of a name, or the only one.

    Raises:
        HardwareError: there is none, or several and no name.
        StorageError: the file cannot be read.
    """
    names = kept_cluster_names()
    hint = "`capacity-tui cluster detect` looks at the nodes and keeps what they are"
    if name is None and len(names) != 1:
        title = f"several clusters are kept: {', '.join(names)}" if names else "no cluster is kept"
        raise HardwareError(title, hint="name one of them" if names else hint)
    chosen = names[0] if name is None else name
    if chosen not in names:
        raise HardwareError(
            f"no cluster called {chosen!r} is kept"[:200], hint=f"kept: {', '.join(names)}" if names else hint
        )
    path = _file_path(chosen)
    try:
        return Inventory.model_validate_json(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise reading_error(error, path) from error
    except ValidationError as error:
        title = "the kept cluster cannot be read"
        raise StorageError(title, hint="detect the cluster again", place=Place(str(path))) from error


def kept_cluster_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (data_folder() / _FOLDER).glob("*.json") if _NAME.fullmatch(path.stem)))


def _file_path(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise HardwareError(
            f"{name!r} is no name of a cluster"[:200], hint="use letters, digits, - and _, such as my-cluster"
        )
    return data_folder() / _FOLDER / f"{name}.json"


def detect_cluster(
    launcher: Launcher, name: str, seconds: float = NODE_SECONDS, progress: Callable[[int, int], None] | None = None
) -> Inventory:
    """Return what the nodes of a cluster are; one that hangs, dies or makes no sense is named and left out.

    Nothing of this program is needed on the nodes: a shell there prints what the probes read.

    Args:
        name: what plans are to call the cluster.
        seconds: how long each node has, or each question to an API server.
        progress: gets how many nodes have answered, of how many.

    Raises:
        CapacityError: the nodes are unknown, or none of them answers.
    """
    if isinstance(launcher, Kubernetes):
        return Kubernetes(replace(launcher.kubectl, seconds=seconds)).inventory(name)
    names = launcher.nodes()
    holders = _holders(launcher)
    facts_by_node: dict[str, NodeFacts] = {}
    silent: dict[str, str] = {}
    for answer in launcher.run(Order(("sh", "-s"), RECORDING_SCRIPT, seconds), names):
        try:
            facts_by_node[answer.node] = _facts(answer, holders.get(answer.node, ()))
        except CapacityError as error:
            silent[answer.node] = error.one_line()
        if progress is not None:
            progress(len(facts_by_node) + len(silent), len(names))
    if not facts_by_node:
        reason = next(iter(silent.values()), "there are none")
        hint = "see whether you reach them yourself, with `srun hostname` or `ssh NODE true`"
        raise HardwareError("no node answers", f"{len(names)} asked; {reason}", hint)
    return Inventory(
        name=name,
        reached_by=launcher.name,
        seen=datetime.now(UTC).replace(microsecond=0),
        nodes=tuple(facts_by_node[node] for node in names if node in facts_by_node),
        silent={node: silent[node] for node in names if node in silent},
    )


def _facts(answer: NodeAnswer, holders: tuple[str, ...]) -> NodeFacts:
    """Return what a node is; raises CapacityError if it gave no answer, or one that cannot be read."""
    if answer.failure:
        raise HardwareError(answer.failure)
    host = recorded_host(answer.output)
    return facts_of(answer.node, detect(host=host), dict(_errors(host)), holders)


def _errors(host: Host) -> Iterator[tuple[int, int]]:
    for line in (host.command(*MEMORY_ERRORS).value or "").splitlines():
        index, _, count = line.partition(",")
        if index.strip().isdecimal() and count.strip().isdecimal():
            yield int(index), int(count)


def _holders(launcher: Launcher) -> Mapping[str, tuple[str, ...]]:
    """Return the switches or racks above each node, the nearest first; none where unknown."""
    if isinstance(launcher, Ssh):
        return {node: (rack,) for node, rack in launcher.racks.items()}
    if isinstance(launcher, Slurm):
        return slurm_racks()
    return {}


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
    """Return the machines of a cluster; raises HardwareError if none of it has an accelerator to give."""
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
    """Return nodes as entries of a schedule, equal ones together; ``ends``: seconds until what a node runs is over."""
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
