"""Clusters that were kept, the hardware that plans may name of them, and the launcher that reaches their nodes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import yaml
from pydantic import ValidationError

from capacity_tui.engine.catalog import Catalog, keep_rows, load_catalog
from capacity_tui.engine.errors import CapacityError, HardwareError, LauncherError, Place, StorageError
from capacity_tui.engine.files import data_folder, make_folder, reading_error, write_atomically
from capacity_tui.engine.machine import RECORDING_SCRIPT, Host, detect, recorded_host
from capacity_tui.engine.machine.vendors import MEMORY_ERRORS
from capacity_tui.engine.nodes.hardware import ClusterHardware, cluster_hardware
from capacity_tui.engine.nodes.inventory import Inventory, NodeFacts, facts_of
from capacity_tui.engine.nodes.kubernetes import Kubectl, Kubernetes
from capacity_tui.engine.nodes.launcher import NODE_SECONDS, Launcher, NodeAnswer, Order, Ssh, read_hosts
from capacity_tui.engine.nodes.ray_nodes import RayNodes
from capacity_tui.engine.nodes.slurm import Slurm, racks_of, slurm_text

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
    """Return the names of the clusters that are kept."""
    return tuple(sorted(path.stem for path in (data_folder() / _FOLDER).glob("*.json") if _NAME.fullmatch(path.stem)))


def _file_path(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise HardwareError(
            f"{name!r} is no name of a cluster"[:200], hint="use letters, digits, - and _, such as my-cluster"
        )
    return data_folder() / _FOLDER / f"{name}.json"


def detect_cluster(
    launcher: Launcher,
    name: str,
    seconds: float = NODE_SECONDS,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Event | None = None,
) -> Inventory:
    """Return what the nodes of a cluster are; one that hangs, dies or makes no sense is named and left out.

    Nothing of this program is needed on the nodes: a shell there prints what the probes read.

    Args:
        name: what plans are to call the cluster.
        seconds: how long each node has, or each question to an API server.
        progress: gets how many nodes have answered, of how many.
        cancelled: when set, nodes that have not answered are given up.

    Raises:
        CapacityError: the nodes are unknown, or none of them answers.
    """
    if isinstance(launcher, Kubernetes):
        return Kubernetes(replace(launcher.kubectl, seconds=seconds)).inventory(name)
    names = launcher.nodes()
    holders = _holders(launcher)
    facts_by_node: dict[str, NodeFacts] = {}
    silent: dict[str, str] = {}
    for answer in launcher.run(Order(("sh", "-s"), RECORDING_SCRIPT, seconds), names, cancelled):
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
    """Return what a node is.

    Raises:
        CapacityError: it gave no answer, or one that cannot be read.
    """
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
        try:
            return racks_of(slurm_text("scontrol", "--oneliner", "show", "topology"))
        except CapacityError:
            return {}  # clusters without a topology plug-in answer with an error
    return {}
