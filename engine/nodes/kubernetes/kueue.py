"""Quotas of Kueue: what its queues may have of devices, what they have, and who waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, Field

from capacity_tui.engine.nodes.inventory import DeviceQueue
from capacity_tui.engine.nodes.kubernetes.kubectl import Kubectl, KubectlError, Model
from capacity_tui.engine.nodes.kubernetes.resources import amount, is_device

_GROUP = "kueue.x-k8s.io"


class _Metadata(BaseModel):
    name: str


class _Quota(BaseModel):
    name: str
    nominal: str | int = Field(default=0, alias="nominalQuota")
    borrowed_at_most: str | int | None = Field(default=None, alias="borrowingLimit")


class _Flavor(BaseModel):
    name: str
    resources: tuple[_Quota, ...] = ()


class _ResourceGroup(BaseModel):
    flavors: tuple[_Flavor, ...] = ()


class _Spec(BaseModel):
    groups: tuple[_ResourceGroup, ...] = Field(default=(), alias="resourceGroups")
    cohort: str = ""
    cohort_name: str = Field(default="", alias="cohortName")
    stop: str = Field(default="None", alias="stopPolicy")


class _Usage(BaseModel):
    name: str
    total: str | int = 0


class _FlavorUsage(BaseModel):
    name: str
    resources: tuple[_Usage, ...] = ()


class _Status(BaseModel):
    usage: tuple[_FlavorUsage, ...] = Field(default=(), alias="flavorsReservation")
    pending: int = Field(default=0, alias="pendingWorkloads")


class _ClusterQueue(BaseModel):
    metadata: _Metadata
    spec: _Spec = Field(default_factory=_Spec)
    status: _Status = Field(default_factory=_Status)


class _ClusterQueues(BaseModel):
    items: tuple[_ClusterQueue, ...]


class _LocalSpec(BaseModel):
    queue: str = Field(alias="clusterQueue")
    stop: str = Field(default="None", alias="stopPolicy")


class _LocalMetadata(_Metadata):
    namespace: str = ""


class _LocalQueue(BaseModel):
    metadata: _LocalMetadata
    spec: _LocalSpec


class _LocalQueues(BaseModel):
    items: tuple[_LocalQueue, ...]


def device_queues(kubectl: Kubectl, *, everywhere: bool = True) -> tuple[tuple[DeviceQueue, ...], tuple[str, ...]]:
    """Return the local queues of Kueue with the quotas behind them, and what of that could not be read.

    Args:
        everywhere: whether to look in all namespaces; else in that of ``kubectl``.

    Raises:
        KubectlError: kubectl is not there.
    """
    notes: list[str] = []
    where = ("--all-namespaces",) if everywhere else ()
    local = _read(kubectl, _LocalQueues, notes, f"localqueues.{_GROUP}", *where)
    if local is None or not local.items:
        return (), tuple(notes)
    shared = _read(kubectl, _ClusterQueues, notes, f"clusterqueues.{_GROUP}")
    behind = {queue.metadata.name: queue for queue in shared.items} if shared is not None else {}
    return tuple(_queue(queue, behind) for queue in local.items), tuple(notes)


def _read(kubectl: Kubectl, model: type[Model], notes: list[str], *words: str) -> Model | None:
    """Return objects of Kueue; None where the cluster has no Kueue, or does not say."""
    try:
        return kubectl.read(model, "get", *words)
    except KubectlError as error:
        if not error.is_unknown_kind:
            notes.append(f"queues of Kueue are not known: {error.title}")
        return None


def _queue(local: _LocalQueue, behind: Mapping[str, _ClusterQueue]) -> DeviceQueue:
    name, namespace = local.metadata.name, local.metadata.namespace
    shared = behind.get(local.spec.queue)
    stop = local.spec.stop if local.spec.stop != "None" or shared is None else shared.spec.stop
    held = "" if stop == "None" else f"stopped: {stop}"
    if shared is None:
        return DeviceQueue(name=name, namespace=namespace, shared=local.spec.queue, why_held=held)
    quotas = list(_quotas(shared.spec.groups))
    cohort = shared.spec.cohort_name or shared.spec.cohort
    limits = [quota.borrowed_at_most for quota in quotas]
    most = None if None in limits else sum(int(amount(limit)) for limit in limits if limit is not None)
    return DeviceQueue(
        name=name,
        namespace=namespace,
        shared=local.spec.queue,
        quota=sum(int(amount(quota.nominal)) for quota in quotas),
        borrows=most if cohort else 0,
        cohort=cohort,
        used=sum(
            int(amount(usage.total))
            for flavor in shared.status.usage
            for usage in flavor.resources
            if is_device(usage.name)
        ),
        pending=shared.status.pending,
        why_held=held,
    )


def _quotas(groups: Sequence[_ResourceGroup]) -> Iterator[_Quota]:
    """Yield the quotas of devices."""
    for group in groups:
        for flavor in group.flavors:
            yield from (quota for quota in flavor.resources if is_device(quota.name))
