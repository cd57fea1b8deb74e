"""Quotas of Kueue: what its queues may have of devices, what they have, and who waits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from pydantic import BaseModel, Field

from capacity_tui.engine.nodes.inventory import DeviceQueue
from capacity_tui.engine.nodes.kubernetes.kubectl import (
    Condition,
    Kubectl,
    KubectlError,
    Metadata,
    Model,
    amount,
    condition_of,
    is_device,
)
from capacity_tui.engine.record import dataclass

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


class _Spec(BaseModel):
    groups: tuple[_ResourceGroup, ...] = Field(default=(), alias="resourceGroups")
    cohort: str = ""
    cohort_name: str = Field(default="", alias="cohortName")
    stop: str = Field(default="None", alias="stopPolicy")

    @property
    def lender(self) -> str:
        """The cohort that it borrows of; empty without one."""
        return self.cohort_name or self.cohort


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
    metadata: Metadata
    spec: _Spec = Field(default_factory=_Spec)
    status: _Status = Field(default_factory=_Status)


class _Cohort(BaseModel):
    metadata: Metadata


class _LocalSpec(BaseModel):
    queue: str = Field(alias="clusterQueue")
    stop: str = Field(default="None", alias="stopPolicy")


class _LocalQueue(BaseModel):
    metadata: Metadata
    spec: _LocalSpec


class _Eviction(BaseModel):
    count: int = 0


class _Scheduling(BaseModel):
    evictions: tuple[_Eviction, ...] = ()


class _WorkloadStatus(BaseModel):
    conditions: tuple[Condition, ...] = ()
    scheduling: _Scheduling = Field(default_factory=_Scheduling, alias="schedulingStats")


class _Workload(BaseModel):
    metadata: Metadata
    status: _WorkloadStatus = Field(default_factory=_WorkloadStatus)


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
    lacking = condition_of(workload.status.conditions, "QuotaReserved", "False")
    evictions = sum(eviction.count for eviction in workload.status.scheduling.evictions)
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
    shared = behind.get(local.spec.queue)
    stop = local.spec.stop if local.spec.stop != "None" or shared is None else shared.spec.stop
    held = "" if stop == "None" else f"stopped: {stop}"
    if shared is None:
        return DeviceQueue(name=name, namespace=namespace, shared=local.spec.queue, why_held=held)
    quotas = list(_quotas(shared.spec.groups))
    cohort = shared.spec.lender
    limits = [quota.borrowed_at_most for quota in quotas]
    most = None if None in limits else sum(int(amount(limit)) for limit in limits if limit is not None)
    if cohort not in nested:  # a cohort with an object of its own has quotas of its own, or those of cohorts above it
        lent = _lent(cohort, [queue for queue in behind.values() if queue is not shared])
        most = lent if most is None else min(most, lent)
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


def _lent(cohort: str, others: Sequence[_ClusterQueue]) -> int:
    """Return what the other queues of a cohort lend."""
    own = (queue for queue in others if queue.spec.lender == cohort)
    return sum(quota.lent for queue in own for quota in _quotas(queue.spec.groups))


def _quotas(groups: Sequence[_ResourceGroup]) -> Iterator[_Quota]:
    for group in groups:
        for flavor in group.flavors:
            yield from (quota for quota in flavor.resources if is_device(quota.name))
