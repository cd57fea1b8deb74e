"""Partitions of a Slurm cluster, and why one cannot take a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from capacity_tui.engine.catalog.names import nearest
from capacity_tui.engine.errors import QueueError
from capacity_tui.engine.nodes.jobs.job_request import JobRequest
from capacity_tui.engine.nodes.jobs.slurm_values import seconds_of
from capacity_tui.engine.nodes.launchers.slurm import SlurmNode, parse_values, slurm_nodes, slurm_text
from capacity_tui.engine.units import format_bytes, format_seconds

_MIB = 2**20
_NAME_PARTS = re.compile(r"[a-z]+\d+[a-z]*|\d+[a-z]+|[a-z]+|\d+")


@dataclass(frozen=True)
class Partition:
    """A partition.

    Attributes:
        name: of it.
        is_up: whether it takes jobs.
        is_default: whether jobs that name none go there.
        most_seconds: that a job may run; None without a limit.
        most_nodes: that a job may have; None without a limit.
        nodes: of it.
        preempt: how its jobs make room for others, in Slurm's word; empty where the cluster's own holds.
    """

    name: str
    is_up: bool
    is_default: bool
    most_seconds: float | None
    most_nodes: int | None
    nodes: tuple[SlurmNode, ...]
    preempt: str = ""


def partitions_here(names: Sequence[str] = ()) -> tuple[Partition, ...]:
    """Return the partitions, the default one first; only those that are named where some are.

    Raises:
        CapacityError: Slurm is not here or does not answer, or a partition is not known.
    """
    nodes = slurm_nodes()
    records = map(parse_values, slurm_text("scontrol", "--oneliner", "show", "partition").splitlines())
    found = sorted((_partition(record, nodes) for record in records if record), key=lambda each: not each.is_default)
    known = [each.name for each in found]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise QueueError(
                f"no partition is called {name}",
                hint=f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}",
            )
    return tuple(each for each in found if not names or each.name in names)


def why_not(partition: Partition, request: JobRequest) -> str:
    """Return why a partition cannot take a job; empty where it can."""
    return next(_reasons(partition, request), "")


def type_in(partition: Partition, request: JobRequest) -> str:
    """Return the type of GPUs to ask a partition for; empty where its GPUs have none."""
    kinds = {kind for node in partition.nodes for kind in node.gpus}
    return next((kind for kind in sorted(kinds) if is_same_device(kind, request.device)), "")


def is_same_device(kind: str, device: str) -> bool:
    """Return whether a type as administrators name it may be a device of the catalogue.

    Words of the type that tell devices apart (those with digits) must not contradict the device's: ``h100`` and
    ``nvidia_h100_80gb_hbm3`` are ``h100-sxm-80gb``, ``a100`` is not.
    """
    mine, theirs = (set(_NAME_PARTS.findall(name.lower().replace("-", "_"))) for name in (device, kind))
    numbered = {word for word in theirs if any(map(str.isdigit, word)) and any(map(str.isalpha, word))}
    chips = {word for word in numbered if not word.endswith("gb") and not word.startswith(("hbm", "sxm", "gddr"))}
    sizes = {word for word in numbered if word.endswith("gb")}
    own_sizes = {word for word in mine if word.endswith("gb") and word != "gb"}
    return bool(chips & mine) and not (sizes and own_sizes and not sizes & own_sizes)


def _reasons(partition: Partition, request: JobRequest) -> Iterator[str]:
    if not partition.is_up:
        yield "it takes no jobs now"
    if partition.most_nodes is not None and partition.most_nodes < request.nodes:
        yield f"it gives a job {partition.most_nodes} nodes at most, {request.nodes} are needed"
    if request.is_on_gpus:
        kinds = sorted({kind for node in partition.nodes for kind in node.gpus})
        if not kinds:
            yield "its nodes have no GPUs"
        elif not any(not kind or is_same_device(kind, request.device) for kind in kinds):
            yield f"its GPUs are {', '.join(kinds)}, the plan is for {request.device}: plan with --gpu {kinds[0]}"
    able = [node for node in partition.nodes if _can_hold(node, request)]
    usable = [node for node in able if node.is_usable]
    if len(able) < request.nodes:
        yield f"{_nodes(len(able))} {_with(request)}, {request.nodes} needed"
    if len(usable) < request.nodes:
        gone = ", ".join(f"{node.name} ({node.state})" for node in able if not node.is_usable)
        yield f"only {len(usable)} of {request.nodes} nodes are up: {gone}"
    limit = partition.most_seconds
    if (
        limit is not None
        and request.limit_seconds is not None
        and limit < request.limit_seconds
        and not request.resumes
    ):
        yield (
            f"a job may run {format_seconds(limit)} there, this one asks {format_seconds(request.limit_seconds)}: "
            "with --checkpoints it goes on in several turns"
        )


def _can_hold(node: SlurmNode, request: JobRequest) -> bool:
    gpus = [count for kind, count in node.gpus.items() if not kind or is_same_device(kind, request.device)]
    return (
        (not request.is_on_gpus or max(gpus, default=0) >= request.per_node)
        and node.cpus >= (request.processors_per_node or 1)
        and node.memory_mib * _MIB >= (request.memory_per_node_bytes or 0)
    )


def _with(request: JobRequest) -> str:
    parts = [f"{request.per_node} GPUs"] if request.is_on_gpus else []
    if request.processors_per_node:
        parts.append(f"{request.processors_per_node} processors")
    if request.memory_per_node_bytes:
        parts.append(f"{format_bytes(request.memory_per_node_bytes)} of memory")
    return f"with {', '.join(parts)}" if parts else "at all"


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count or 'no'} nodes"


def _partition(record: Mapping[str, str], nodes: Sequence[SlurmNode]) -> Partition:
    name = record.get("PartitionName", "")
    most_nodes = record.get("MaxNodes", "")
    return Partition(
        name=name,
        is_up=record.get("State", "UP") == "UP",
        is_default=record.get("Default") == "YES",
        most_seconds=seconds_of(record.get("MaxTime", "")),
        most_nodes=int(most_nodes) if most_nodes.isdigit() else None,
        nodes=tuple(node for node in nodes if name in node.partitions),
        preempt=record.get("PreemptMode", ""),
    )
