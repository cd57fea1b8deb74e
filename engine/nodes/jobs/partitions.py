"""Partitions of a Slurm cluster, and why one cannot take a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from capacity_tui.engine.catalog import Document, load_catalog, nearest, read_yaml
from capacity_tui.engine.errors import CatalogError, QueueError
from capacity_tui.engine.files import config_folder
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.nodes.jobs.job_request import SHORTEST_TURN_SECONDS, TRAIN_TIME, JobRequest, seconds_of
from capacity_tui.engine.nodes.slurm import SlurmNode, parse_values, slurm_nodes, slurm_text
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history import Ends
from capacity_tui.engine.units import HOUR_SECONDS, format_bytes, format_seconds

_MIB = 2**20
_BETWEEN_WORDS = re.compile(r"[\s_.\-]+")
_SLICE = re.compile(r"\d+g|mig")
_SIZE = re.compile(r"\d+gb")
_FORM = re.compile(r"(sxm|pcie|nvl)\d*")
_UNTOLD = re.compile(r"generation|gpu|per|hbm\w*|gddr\w*")
"""Words of a device's name, besides its maker's, that distinguish no device."""

_SERIES = ("rtx", "gtx", "rx", "")  # What administrators leave out in front of the number of a card


@dataclass(frozen=True)
class Partition:
    """A partition."""

    name: str
    is_up: bool
    is_default: bool  # whether jobs that name none go there
    most_seconds: float | None  # that a job may run; None without a limit
    most_nodes: int | None  # that a job may have; None without a limit
    nodes: tuple[SlurmNode, ...]
    preempt: str = ""  # how its jobs make room for others, in Slurm's word; empty where the cluster's own holds


def cluster_partitions(names: Sequence[str] = ()) -> tuple[Partition, ...]:
    """Return the partitions, the default one first; only those that are named where some are.

    Raises:
        CapacityError: Slurm is not here or does not answer, or a partition is not known.
    """
    nodes = slurm_nodes()
    records = map(parse_values, slurm_text("scontrol", "--oneliner", "show", "partition").splitlines())
    partitions = sorted(
        (_partition(record, nodes) for record in records if record), key=lambda partition: not partition.is_default
    )
    known = [partition.name for partition in partitions]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise QueueError(
                f"no partition is called {name}",
                hint=f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}",
            )
    return tuple(partition for partition in partitions if not names or partition.name in names)


def why_not(partition: Partition, request: JobRequest) -> str:
    """Return why a partition cannot take a job; empty where it can."""
    return next(_reasons(partition, request), "")


def type_in(partition: Partition, request: JobRequest) -> str:
    """Return the type of GPUs to ask a partition for; empty where its GPUs have none."""
    kinds = {kind for node in partition.nodes for kind in node.gpus}
    return next((kind for kind in sorted(kinds) if is_same_device(kind, request.device)), "")


def is_same_device(kind: str, device: str) -> bool:
    """Return whether a type as administrators name it may be a device of the catalogue, whole.

    The chip has to be the same; form and size of memory must not contradict where both have them: ``h100`` and
    ``nvidia_h100_80gb_hbm3`` are ``h100-sxm-80gb``; ``a100``, ``h100_pcie`` and a slice such as
    ``nvidia_h100_80gb_hbm3_1g.10gb`` are not.

    Args:
        device: id of the catalogue; what follows behind a space is left alone.
    """
    brands = load_catalog().accelerators.brands
    partition_type, device_type = (
        _BETWEEN_WORDS.split(brands.sub("", " ".join(_BETWEEN_WORDS.split(name))).strip().casefold())
        for name in (kind, device.partition(" ")[0])
    )
    if any(map(_SLICE.fullmatch, partition_type)):
        return False
    chip = _chip(partition_type)
    traits = ([_matching(kind, words) for words in (partition_type, device_type)] for kind in (_SIZE, _FORM))
    contradict = any(required and known and not required & known for required, known in traits)
    return bool(chip) and _chip(device_type).removesuffix(chip) in _SERIES and not contradict


def _chip(words: Sequence[str]) -> str:
    return "".join(word for word in words if not any(kind.fullmatch(word) for kind in (_SIZE, _FORM, _UNTOLD)))


def _matching(pattern: re.Pattern[str], words: Sequence[str]) -> set[str]:
    return {match[1] if match.groups() else match[0] for word in words if (match := pattern.fullmatch(word))}


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
            known = next(
                filter(None, (load_catalog().accelerators.find_id(kind.replace("_", " ")) for kind in kinds)), ""
            )
            advice = f": plan with --gpu {known}" if known and known != request.device.partition(" ")[0] else ""
            yield f"its GPUs are {', '.join(kinds)}, the plan is for {request.device}{advice}"
    able = [node for node in partition.nodes if _can_hold(node, request)]
    usable = [node for node in able if node.is_usable]
    if len(able) < request.nodes:
        yield f"{_nodes(len(able))} {_with(request)}, {request.nodes} needed"
    if len(usable) < request.nodes:
        gone = ", ".join(f"{node.name} ({node.state})" for node in able if not node.is_usable)
        yield f"only {len(usable)} of {request.nodes} nodes are up: {gone}"
    limit = partition.most_seconds
    if limit is not None and request.is_cut(limit) and not request.resumes:
        wanted = format_seconds(request.limit_seconds or limit)
        turns = "with --checkpoints it goes on in several turns"
        yield f"a job may run {format_seconds(limit)} there, this one asks {wanted}: {turns}"
    if limit is not None and request.is_cut(limit) and limit <= SHORTEST_TURN_SECONDS:
        yield (
            f"a job may run {format_seconds(limit)} there: a turn of up to {format_seconds(SHORTEST_TURN_SECONDS)} "
            "goes into starting and saving"
        )


def takes_whole(node: SlurmNode, request: JobRequest) -> bool:
    """Return whether a job leaves no device of a node for others; of a single node, also no processors."""
    return not request.is_on_gpus or sum(node.gpus.values()) <= request.per_node > 1


def are_taken_whole(partition: Partition, request: JobRequest) -> bool:
    """Return whether a job leaves no device for others on any node of a partition that can hold it."""
    return all(takes_whole(node, request) for node in partition.nodes if _can_hold(node, request))


def _can_hold(node: SlurmNode, request: JobRequest) -> bool:
    gpus = [count for kind, count in node.gpus.items() if not kind or is_same_device(kind, request.device)]
    return (
        (not request.is_on_gpus or max(gpus, default=0) >= request.per_node)
        and node.cpus >= (1 if takes_whole(node, request) else request.processors_per_node or 1)
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


PRICES_FILE = "partitions.yaml"
_PER_NODE, _PER_DEVICE = "usd_per_node_hour", "usd_per_device_hour"


@dataclass(frozen=True)
class PartitionCost:
    """Money for a job on a partition."""

    usd_per_hour: float | None  # of all its nodes; None where unknown
    usd: Ends  # of the whole job, with its range; empty where price or length are open
    source: str  # who says so, or why there is no figure


Prices = Mapping[str, Mapping[str, float]]


def read_prices(file: Path | None = None) -> tuple[Prices, str]:
    """Return prices by partition and the name of their file, the user's by default; nothing where there is none."""
    path = file or config_folder() / PRICES_FILE
    if file is None and not path.exists():
        return {}, ""
    document = read_yaml(path)
    if not isinstance(document.data, Mapping):
        raise CatalogError("no table of prices", hint=f"write partition: {{{_PER_NODE}: 25}}", place=document.place())
    return {str(name): _price(str(name), value, document) for name, value in document.data.items()}, path.name


def cost_on(partition: str, request: JobRequest, prices: Prices, file: str) -> PartitionCost:
    price = prices.get(partition)
    if price is not None:
        hourly = price.get(_PER_NODE, 0.0) * request.nodes + price.get(_PER_DEVICE, 0.0) * request.devices
        ends = request.predicted.get(TRAIN_TIME, {})
        return PartitionCost(hourly, {name: hourly * value / HOUR_SECONDS for name, value in ends.items()}, file)
    if request.has_price and Figure.COST_USD in request.predicted and not prices:
        of_plan = request.predicted.get(Figure.COST_USD_PER_HOUR, {}).get("value")
        return PartitionCost(
            of_plan, request.predicted[Figure.COST_USD], "as the plan says, the same on every partition"
        )
    nobody = f"n/a (no prices: --prices FILE, {PRICES_FILE} in the configuration, or pricing.usd_per_hour in the plan)"
    return PartitionCost(None, {}, f"n/a ({file} has no price of {partition})" if prices else nobody)


def _price(name: str, value: object, document: Document) -> dict[str, float]:
    location = document.place(name)
    known = (_PER_NODE, _PER_DEVICE)
    table = {_PER_NODE: value} if isinstance(value, int | float) else value
    if not isinstance(table, Mapping) or not table:
        raise CatalogError(f"no price: {value!r:.60}", hint=f"write {_PER_NODE} or {_PER_DEVICE}", place=location)
    for key, number in table.items():
        if key not in known:
            near = nearest(str(key), known)
            raise CatalogError(f"unknown key {key!r:.60}", hint=f"did you mean {(near or known)[0]}?", place=location)
        if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
            raise CatalogError(
                f"{key} is {number!r:.60}", hint="a price is a number of dollars, 0 or more", place=location
            )
    return {str(key): float(number) for key, number in table.items()}
