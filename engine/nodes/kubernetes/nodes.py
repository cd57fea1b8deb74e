"""Nodes of a Kubernetes cluster, as its API server tells ``kubectl``: nothing runs on them."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pydantic import BaseModel, Field

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.machine import match_accelerator
from capacity_tui.engine.nodes.inventory import DEVICES, MEMORY, PARTITIONED, WHOLE, Inventory, NodeFacts
from capacity_tui.engine.nodes.kubernetes.kubectl import (
    Condition,
    Container,
    Kubectl,
    Metadata,
    amount,
    devices_in,
    is_any_device,
    names,
    slices_in,
)
from capacity_tui.engine.nodes.kubernetes.kueue import device_queues
from capacity_tui.engine.nodes.launcher import NodeAnswer, Order
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes

_MIB = 2**20
_SLICED = "-MIG-"
_CONDITIONS = "node.kubernetes.io/"
_PREFERRED = "PreferNoSchedule"  # Effect of a taint that keeps nothing out


class _Taint(BaseModel):
    key: str
    effect: str = ""


class _NodeSpec(BaseModel):
    unschedulable: bool = False
    taints: tuple[_Taint, ...] = ()


class _NodeStatus(BaseModel):
    capacity: Mapping[str, str] = Field(default_factory=dict)
    allocatable: Mapping[str, str] = Field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class _Node(BaseModel):
    metadata: Metadata
    spec: _NodeSpec = Field(default_factory=_NodeSpec)
    status: _NodeStatus = Field(default_factory=_NodeStatus)


class _PodSpec(BaseModel):
    node: str = Field(default="", alias="nodeName")
    containers: tuple[Container, ...] = ()
    first: tuple[Container, ...] = Field(default=(), alias="initContainers")

    @property
    def requested(self) -> Counter[str]:
        """Devices and slices that it holds: of all containers at once, or of one that goes before them."""
        together: Counter[str] = sum((_devices(container) for container in self.containers), Counter())
        for container in self.first:
            together |= _devices(container)
        return together


def _devices(container: Container) -> Counter[str]:
    return Counter({key: int(amount(value)) for key, value in container.requests.items() if is_any_device(key)})


class _Pod(BaseModel):
    spec: _PodSpec = Field(default_factory=_PodSpec)


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """The cluster of a context of ``kubectl``."""

    kubectl: Kubectl = Kubectl()  # with the context of the cluster

    @property
    def name(self) -> str:
        """What reaches the nodes."""
        return "Kubernetes"

    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes; raises LauncherError where the API server gives no sensible answer."""
        return tuple(node.metadata.name for node in self._nodes())

    def run(self, order: Order, nodes: Sequence[str]) -> Iterator[NodeAnswer]:
        """Yield that no command runs on nodes: Kubernetes starts containers, not commands."""
        del order
        yield from (NodeAnswer(node, failure="Kubernetes runs containers, no commands on nodes") for node in nodes)

    def inventory(self, name: str) -> Inventory:
        """Return what its API server tells of the nodes; those that are not ready are named and left out."""
        nodes = self._nodes()
        silent = {node.metadata.name: why for node in nodes if (why := _not_ready(node))}
        ready = [node for node in nodes if node.metadata.name not in silent]
        if not ready:
            reason = next(iter(silent.values()), "there are none")
            raise LauncherError("no node is ready", f"{len(nodes)} known; {reason}", "`kubectl get nodes` shows more")
        used, notes = self._used()
        queues, queue_notes = device_queues(self.kubectl)
        return Inventory(
            name=name,
            reached_by=self.name,
            seen=datetime.now(UTC).replace(microsecond=0),
            nodes=tuple(_facts(node, None if used is None else used.get(node.metadata.name, {})) for node in ready),
            silent=silent,
            queues=queues,
            notes=(*notes, *queue_notes),
        )

    def _used(self) -> tuple[Mapping[str, Mapping[str, int]] | None, tuple[str, ...]]:
        """Return what pods have of each node's devices and slices, by resource, and why that is unknown where it is."""
        over = "--field-selector=status.phase!=Succeeded,status.phase!=Failed"
        try:
            pods = self.kubectl.items(_Pod, "pods", "--all-namespaces", over)
        except LauncherError as error:
            return None, (f"what pods have is not known: {error.title}",)
        used: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in pods:
            if pod.spec.node:
                used[pod.spec.node] += pod.spec.requested
        return used, ()

    def _nodes(self) -> tuple[_Node, ...]:
        return self.kubectl.items(_Node, "nodes")


def _not_ready(node: _Node) -> str:
    """Return why a node takes no containers; empty where it does."""
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        return f"not ready: {ready.reason}" if ready.reason else "not ready"
    return ""


def _facts(node: _Node, used: Mapping[str, int] | None) -> NodeFacts:
    labels, capacity, allocatable = node.metadata.labels, node.status.capacity, node.status.allocatable
    there, usable, parts = devices_in(capacity), devices_in(allocatable), slices_in(allocatable)
    product, is_sliced, profile = _label(labels, "product").partition(_SLICED)
    memory_mib = _label(labels, "memory_mib")
    taken = None if used is None else devices_in(used)
    taken_parts = {} if used is None else slices_in(used)
    if is_sliced:  # of devices that are all cut alike, slices go by the name of devices
        parts, taken_parts = {profile: usable}, {} if taken is None else {profile: taken}
        there, usable, taken = 0, 0, None
    device, device_name = _device(product, int(memory_mib) * _MIB if memory_mib.isdecimal() and not parts else None)
    counted = _label(labels, "count")
    known = int(counted) if counted.isdecimal() and not is_sliced else 0
    expected = max(there, known) if there or parts or product else 0
    devices = expected if parts else usable
    memory = int(amount(capacity.get("memory", "0")))
    traits = {
        DEVICES: f"{devices} x {device_name}" if devices else "",
        "processor": f"{capacity['cpu']} processors" if "cpu" in capacity else "",
        MEMORY: format_bytes(memory) if memory else "",
        "driver": _label(labels, "driver"),
        "runtime": _label(labels, "runtime"),
        PARTITIONED: ", ".join(f"{count} x {key}" for key, count in sorted(parts.items()))
        or (WHOLE if devices else ""),
    }
    return NodeFacts(
        node=node.metadata.name,
        device=device,
        device_name=device_name,
        devices=devices,
        used=taken,
        takes_jobs=not node.spec.unschedulable and all(taint.effect == _PREFERRED for taint in _taints(node)),
        used_slices={key: count for key, count in taken_parts.items() if count},
        memory_bytes=memory,
        processor_name=_label(labels, "machine"),
        traits={trait: value for trait, value in traits.items() if value},
        troubles=tuple(_troubles(node, expected, devices)),
        holders=tuple(labels[key] for key in names().holders if key in labels),
    )


def _label(labels: Mapping[str, str], kind: str) -> str:
    """Return the first label of a kind that a node has, empty without one."""
    return next((labels[key] for key in names().labels[kind] if labels.get(key)), "")


def _taints(node: _Node) -> Iterator[_Taint]:
    """Yield the taints of a node that what is written here does not tolerate, but for those of its conditions."""
    for taint in node.spec.taints:
        if taint.key not in names().devices and not taint.key.startswith(_CONDITIONS):
            yield taint


def _troubles(node: _Node, expected: int, devices: int) -> Iterator[str]:
    if node.spec.unschedulable:
        yield "cordoned: it takes no new containers"
    for condition in node.status.conditions:
        if condition.type != "Ready" and condition.status == "True":
            yield f"{condition.type}: {condition.reason}" if condition.reason else condition.type
    tainted = defaultdict(list)
    for taint in _taints(node):
        tainted[taint.effect].append(taint.key)
    for effect, keys in tainted.items():
        yield f"tainted {effect}: {', '.join(keys)}"
    if devices < expected:
        yield f"{devices} of {expected} devices are available"


def _device(product: str, memory_bytes: int | None) -> tuple[str, str]:
    """Return the catalogue id and the driver's name of a label, in which blanks are dashes as those of the name."""
    if not product:
        return "", ""
    words = product.split("-")
    names = (
        "".join(itertools.chain.from_iterable(zip(words, (*marks, ""), strict=True)))
        for marks in itertools.product(" -", repeat=min(len(words) - 1, 8))
        if len(marks) == len(words) - 1
    )
    for name in names:
        if device_id := match_accelerator(name, memory_bytes).value:
            return device_id, name
    return "", " ".join(words)
