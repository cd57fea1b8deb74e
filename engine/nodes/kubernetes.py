"""Nodes of a Kubernetes cluster, as its API server tells ``kubectl``, and quotas of Kueue; nothing runs on them."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pydantic import AliasPath, BaseModel, Field

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.machine import match_accelerator
from capacity_tui.engine.nodes.inventory import DEVICES, MEMORY, PARTITIONED, WHOLE, DeviceQueue, Inventory, NodeFacts
from capacity_tui.engine.nodes.kubectl import (
    Condition,
    Container,
    Kubectl,
    KubectlError,
    Metadata,
    Model,
    amount,
    condition_of,
    devices_in,
    is_any_device,
    is_device,
    names,
    slices_in,
)
from capacity_tui.engine.nodes.launcher import NodeAnswer, Order
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes

_GROUP = "kueue.x-k8s.io"


class _Quota(BaseModel):
    name: str
    nominal: str | int = Field(default=0, alias="nominalQuota")
    borrowed_at_most: str | int | None = Field(default=None, alias="borrowingLimit")
    lent_at_most: str | int | None = Field(default=None, alias="lendingLimit")

    @property
    def lent(self) -> int:
        return int(amount(self.nominal if self.lent_at_most is None else self.lent_at_most))


class _Flavor(BaseModel):
    name: str
    resources: tuple[_Quota, ...] = ()


class _ResourceGroup(BaseModel):
    flavors: tuple[_Flavor, ...] = ()


class _Usage(BaseModel):
    name: str
    total: str | int = 0


class _FlavorUsage(BaseModel):
    name: str
    resources: tuple[_Usage, ...] = ()


class _ClusterQueue(BaseModel):
    metadata: Metadata
    groups: tuple[_ResourceGroup, ...] = Field(default=(), validation_alias=AliasPath("spec", "resourceGroups"))
    cohort: str = Field(default="", validation_alias=AliasPath("spec", "cohort"))
    cohort_name: str = Field(default="", validation_alias=AliasPath("spec", "cohortName"))
    stop: str = Field(default="None", validation_alias=AliasPath("spec", "stopPolicy"))
    usage: tuple[_FlavorUsage, ...] = Field(default=(), validation_alias=AliasPath("status", "flavorsReservation"))
    pending: int = Field(default=0, validation_alias=AliasPath("status", "pendingWorkloads"))

    @property
    def lender(self) -> str:
        """The cohort that it borrows of; empty without one."""
        return self.cohort_name or self.cohort


class _Cohort(BaseModel):
    metadata: Metadata


class _LocalQueue(BaseModel):
    metadata: Metadata
    queue: str = Field(validation_alias=AliasPath("spec", "clusterQueue"))
    stop: str = Field(default="None", validation_alias=AliasPath("spec", "stopPolicy"))


class _Eviction(BaseModel):
    count: int = 0


class _Workload(BaseModel):
    metadata: Metadata
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))
    evictions: tuple[_Eviction, ...] = Field(
        default=(), validation_alias=AliasPath("status", "schedulingStats", "evictions")
    )


@dataclass(frozen=True, slots=True)
class Admission:
    """How a job stands with its queue."""

    why_waiting: str  # why it has no quota; empty where it has
    evictions: int  # how often its quota was taken away again


def admissions(kubectl: Kubectl) -> Mapping[str, Admission]:
    """Return how jobs of the namespace stand with their queues, by unique ids, as far as that can be read."""
    workloads = _read(kubectl, _Workload, [], f"workloads.{_GROUP}")
    return {owner.uid: _admission(workload) for workload in workloads for owner in workload.metadata.owners}


def _admission(workload: _Workload) -> Admission:
    lacking = condition_of(workload.conditions, "QuotaReserved", "False")
    evictions = sum(eviction.count for eviction in workload.evictions)
    return Admission("" if lacking is None else lacking.message, evictions)


def device_queues(kubectl: Kubectl) -> tuple[tuple[DeviceQueue, ...], tuple[str, ...]]:
    """Return the local queues of Kueue with the quotas behind them, and what of that could not be read."""
    notes: list[str] = []
    local = _read(kubectl, _LocalQueue, notes, f"localqueues.{_GROUP}", "--all-namespaces")
    if not local:
        return (), tuple(notes)
    shared = _read(kubectl, _ClusterQueue, notes, f"clusterqueues.{_GROUP}")
    behind = {queue.metadata.name: queue for queue in shared}
    cohorts = _read(kubectl, _Cohort, [], f"cohorts.{_GROUP}")
    nested = {cohort.metadata.name for cohort in cohorts}
    return tuple(_queue(queue, behind, nested) for queue in local), tuple(notes)


def _read(kubectl: Kubectl, model: type[Model], notes: list[str], *words: str) -> tuple[Model, ...]:
    """Return objects of Kueue; none where the cluster has no Kueue, or does not say."""
    try:
        return kubectl.items(model, *words)
    except KubectlError as error:
        if not error.is_unknown_kind:
            notes.append(f"queues of Kueue are not known: {error.title}")
        return ()


def _queue(local: _LocalQueue, behind: Mapping[str, _ClusterQueue], nested: Collection[str]) -> DeviceQueue:
    name, namespace = local.metadata.name, local.metadata.namespace
    shared = behind.get(local.queue)
    stop = local.stop if local.stop != "None" or shared is None else shared.stop
    held = "" if stop == "None" else f"stopped: {stop}"
    if shared is None:
        return DeviceQueue(name=name, namespace=namespace, shared=local.queue, why_held=held)
    quotas = list(_quotas(shared.groups))
    cohort = shared.lender
    limits = [quota.borrowed_at_most for quota in quotas]
    most = None if None in limits else sum(int(amount(limit)) for limit in limits if limit is not None)
    if cohort not in nested:  # a cohort with an object of its own has quotas of its own, or those of cohorts above it
        lent = _lent(cohort, [queue for queue in behind.values() if queue is not shared])
        most = lent if most is None else min(most, lent)
    return DeviceQueue(
        name=name,
        namespace=namespace,
        shared=local.queue,
        quota=sum(int(amount(quota.nominal)) for quota in quotas),
        borrows=most if cohort else 0,
        cohort=cohort,
        used=sum(
            int(amount(usage.total)) for flavor in shared.usage for usage in flavor.resources if is_device(usage.name)
        ),
        pending=shared.pending,
        why_held=held,
    )


def _lent(cohort: str, others: Sequence[_ClusterQueue]) -> int:
    """Return what the other queues of a cohort lend."""
    own = (queue for queue in others if queue.lender == cohort)
    return sum(quota.lent for queue in own for quota in _quotas(queue.groups))


def _quotas(groups: Sequence[_ResourceGroup]) -> Iterator[_Quota]:
    for group in groups:
        for flavor in group.flavors:
            yield from (quota for quota in flavor.resources if is_device(quota.name))


_MIB = 2**20
_SLICED = "-MIG-"
_CONDITIONS = "node.kubernetes.io/"
_PREFERRED = "PreferNoSchedule"  # Effect of a taint that keeps nothing out


class _Taint(BaseModel):
    key: str
    effect: str = ""


class _Node(BaseModel):
    metadata: Metadata
    unschedulable: bool = Field(default=False, validation_alias=AliasPath("spec", "unschedulable"))
    taints: tuple[_Taint, ...] = Field(default=(), validation_alias=AliasPath("spec", "taints"))
    capacity: Mapping[str, str] = Field(default_factory=dict, validation_alias=AliasPath("status", "capacity"))
    allocatable: Mapping[str, str] = Field(default_factory=dict, validation_alias=AliasPath("status", "allocatable"))
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))


class _Pod(BaseModel):
    node: str = Field(default="", validation_alias=AliasPath("spec", "nodeName"))
    containers: tuple[Container, ...] = Field(default=(), validation_alias=AliasPath("spec", "containers"))
    first: tuple[Container, ...] = Field(default=(), validation_alias=AliasPath("spec", "initContainers"))

    @property
    def requested(self) -> Counter[str]:
        """Devices and slices that it holds: of all containers at once, or of one that goes before them."""
        together: Counter[str] = sum((_devices(container) for container in self.containers), Counter())
        for container in self.first:
            together |= _devices(container)
        return together


def _devices(container: Container) -> Counter[str]:
    return Counter({key: int(amount(value)) for key, value in container.requests.items() if is_any_device(key)})


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """The cluster of a context of ``kubectl``."""

    kubectl: Kubectl = Kubectl()  # with the context of the cluster

    @property
    def name(self) -> str:
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
            if pod.node:
                used[pod.node] += pod.requested
        return used, ()

    def _nodes(self) -> tuple[_Node, ...]:
        return self.kubectl.items(_Node, "nodes")


def _not_ready(node: _Node) -> str:
    """Return why a node takes no containers; empty where it does."""
    ready = next((condition for condition in node.conditions if condition.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        return f"not ready: {ready.reason}" if ready.reason else "not ready"
    return ""


def _facts(node: _Node, used: Mapping[str, int] | None) -> NodeFacts:
    labels, capacity, allocatable = node.metadata.labels, node.capacity, node.allocatable
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
        takes_jobs=not node.unschedulable and all(taint.effect == _PREFERRED for taint in _taints(node)),
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
    for taint in node.taints:
        if taint.key not in names().devices and not taint.key.startswith(_CONDITIONS):
            yield taint


def _troubles(node: _Node, expected: int, devices: int) -> Iterator[str]:
    if node.unschedulable:
        yield "cordoned: it takes no new containers"
    for condition in node.conditions:
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
