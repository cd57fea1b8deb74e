"""Detection on every node: each prints what probes would read of it, and is understood here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from threading import Event

from capacity_tui.engine.errors import CapacityError, HardwareError
from capacity_tui.engine.machine import RECORDING_SCRIPT, Host, detect, recorded_host
from capacity_tui.engine.machine.vendors import MEMORY_ERRORS
from capacity_tui.engine.nodes.inventory.inventory import Inventory
from capacity_tui.engine.nodes.inventory.node_facts import NodeFacts, facts_of
from capacity_tui.engine.nodes.launchers.launcher import NODE_SECONDS, Launcher, NodeAnswer, Order
from capacity_tui.engine.nodes.launchers.slurm import Slurm, racks_of, slurm_text
from capacity_tui.engine.nodes.launchers.ssh import Ssh


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
        seconds: how long each node has.
        progress: gets how many nodes have answered, of how many.
        cancelled: when set, nodes that have not answered are given up.

    Raises:
        CapacityError: nobody knows the nodes, or none of them answers.
    """
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
    """Return the switches or racks above each node, the nearest first; none where nobody says."""
    if isinstance(launcher, Ssh):
        return {node: (rack,) for node, rack in launcher.racks.items()}
    if isinstance(launcher, Slurm):
        try:
            return racks_of(slurm_text("scontrol", "--oneliner", "show", "topology"))
        except CapacityError:
            return {}  # clusters without a topology plug-in answer with an error
    return {}
