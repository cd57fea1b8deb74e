"""Jobs of Kubernetes: what ``kubectl`` creates of a manifest, how it goes, what it prints, and its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime

from pydantic import AliasPath, BaseModel, Field

from capacity_tui.engine.errors import PlanError, QueueError
from capacity_tui.engine.nodes.jobs.job_request import QueuedJob, time_of
from capacity_tui.engine.nodes.jobs.kubernetes_pods import PodOutput
from capacity_tui.engine.nodes.kubectl import (
    Condition,
    Container,
    Kubectl,
    KubectlError,
    Metadata,
    condition_of,
    devices_of,
)
from capacity_tui.engine.nodes.kubernetes import Admission, admissions

MADE = "app.kubernetes.io/managed-by=capacity-tui"  # Label of what the exports write
QUEUE = "kueue.x-k8s.io/queue-name"
_INDEX = "batch.kubernetes.io/job-completion-index"
_OWNERS = ("jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name", "job-name")
_KINDS = ("jobs.batch", "jobsets.jobset.x-k8s.io")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_DISRUPTED = "DisruptionTarget"
_FAILURES = {"DeadlineExceeded": "TIMEOUT"}
_LONGEST_REASON = 160
_ADMITTED = Admission("", 0)
_CREATION_SECONDS = 30.0  # In which a job that may begin has its first pod; controllers take one or two


class _Spec(BaseModel):
    suspend: bool = False
    parallelism: int = 1
    limit: float | None = Field(default=None, alias="activeDeadlineSeconds")
    containers: tuple[Container, ...] = Field(default=(), validation_alias=AliasPath("template", "spec", "containers"))


class _ReplicatedJob(BaseModel):
    spec: _Spec = Field(default_factory=_Spec, validation_alias=AliasPath("template", "spec"))


class _OuterSpec(_Spec):
    replicated: tuple[_ReplicatedJob, ...] = Field(default=(), alias="replicatedJobs")


class _Workload(BaseModel):
    """A Job or a JobSet."""

    metadata: Metadata
    spec: _OuterSpec = Field(default_factory=_OuterSpec)
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))
    start: str = Field(default="", validation_alias=AliasPath("status", "startTime"))
    end: str = Field(default="", validation_alias=AliasPath("status", "completionTime"))
    restarts: int = Field(default=0, validation_alias=AliasPath("status", "restarts"))


class _StateDetail(BaseModel):
    reason: str = ""
    message: str = ""
    code: int | None = Field(default=None, alias="exitCode")
    start: str = Field(default="", alias="startedAt")
    end: str = Field(default="", alias="finishedAt")


class _ContainerState(BaseModel):
    state: Mapping[str, _StateDetail] = Field(default_factory=dict)


class _Pod(BaseModel):
    metadata: Metadata
    node: str = Field(default="", validation_alias=AliasPath("spec", "nodeName"))
    phase: str = Field(default="", validation_alias=AliasPath("status", "phase"))
    reason: str = Field(default="", validation_alias=AliasPath("status", "reason"))
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))
    containers: tuple[_ContainerState, ...] = Field(
        default=(), validation_alias=AliasPath("status", "containerStatuses")
    )

    @property
    def main(self) -> Mapping[str, _StateDetail]:
        """How its container stands: waiting, running or terminated."""
        return self.containers[0].state if self.containers else {}

    @property
    def is_active(self) -> bool:
        return self.phase in ("Pending", "Running")

    @property
    def disruption(self) -> str:
        """Why it was taken away by others; empty where it was not."""
        condition = condition_of(self.conditions, _DISRUPTED, "True")
        return condition.reason or _DISRUPTED if condition else self.reason


class KubernetesQueue:
    """The jobs of a namespace."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    @property
    def no_power(self) -> str:
        return "Kubernetes measures none"

    def cluster(self) -> str:
        given = self._kubectl
        context = given.context or given.text("config", "current-context").strip() or "kubernetes"
        return f"{context}-{given.namespace}" if given.namespace else context

    def check(self, job: str) -> None:
        """Refuse what names no object."""
        if not _NAME.fullmatch(job):
            raise PlanError(f"{job!r:.80}: no name of a job", hint="names have lower case letters, digits and dashes")

    def submit(self, script: str) -> tuple[str, str]:
        """Create what a manifest describes; nothing that is there is changed."""
        try:
            made = self._kubectl.text(
                "create", "--validate=warn", "--filename=-", "--output=json", standard_input=script
            )
        except KubectlError as error:
            if error.reason == "AlreadyExists":
                hint = "give it another with --name, or end that one: `cluster stop`"
                raise QueueError("a job of this name exists already", error.title, hint) from error
            raise
        try:
            workload = _Workload.model_validate_json(made)
        except ValueError as error:
            hint = "`kubectl get jobs,pods` shows whether there is one now"
            raise QueueError("kubectl does not say what it created", made[:200], hint) from error
        return workload.metadata.name, workload.metadata.uid

    def jobs(
        self, names: Sequence[str], *, everyone: bool, since: str
    ) -> tuple[tuple[QueuedJob, ...], tuple[str, ...]]:
        """Return what was written here, or everything, the newest first; what is deleted is forgotten."""
        del since
        selection = () if everyone else (f"--selector={MADE}",)
        pods = self._kubectl.items(_Pod, "pods", *selection)
        workloads = [job for kind in _KINDS for job in self._workloads(kind, *selection)]
        chosen = [job for job in workloads if not names or job.metadata.name in names]
        chosen.sort(key=lambda job: job.metadata.created, reverse=True)
        waits = any(QUEUE in job.metadata.labels for job in chosen)
        admitted = admissions(self._kubectl) if waits else {}
        queued = tuple(
            _queued(job, _pods_of(pods, job.metadata.name), admitted.get(job.metadata.uid, _ADMITTED)) for job in chosen
        )
        forgotten = [job.id for job in queued if job.misses_turns]
        return queued, (
            f"{', '.join(forgotten)}: turns before the last are forgotten, with their time",
        ) if forgotten else ()

    def job_now(self, job: str) -> QueuedJob | None:
        jobs, _ = self.jobs([job], everyone=False, since="")
        return jobs[0] if jobs else None

    def watts(self, jobs: Sequence[QueuedJob]) -> Mapping[str, float]:
        """Return nothing: Kubernetes measures no power."""
        del jobs
        return {}

    def end(self, job: str) -> None:
        """Delete a job with its pods, which are told to end and have their grace period for it."""
        for kind in _KINDS:
            for workload in self._workloads(kind, f"--selector={MADE}"):
                if workload.metadata.name == job:
                    self._kubectl.text("delete", f"{kind}/{job}", "--wait=false", "--output=name")
                    return
        raise QueueError(f"job {job} is not there any more")

    def ending(self, job: str) -> str:
        return f"kubectl delete job/{job}"

    def output(self, write: Callable[[str], None]) -> AbstractContextManager[Callable[[QueuedJob], None]]:
        """Return what follows the output of a job's first pod."""
        return PodOutput(self._kubectl, write)

    def _workloads(self, kind: str, *selection: str) -> tuple[_Workload, ...]:
        """Return the objects of a kind; none where the cluster does not know it."""
        try:
            return self._kubectl.items(_Workload, kind, *selection)
        except KubectlError as error:
            if kind != _KINDS[0] and error.is_unknown_kind:
                return ()
            raise


def _pods_of(pods: Sequence[_Pod], name: str) -> list[_Pod]:
    own = [pod for pod in pods if next(filter(None, map(pod.metadata.labels.get, _OWNERS)), "") == name]
    return sorted(own, key=lambda pod: (pod.metadata.created, pod.metadata.name))


def _queued(job: _Workload, pods: Sequence[_Pod], admission: Admission) -> QueuedJob:
    inner = job.spec.replicated[0].spec if job.spec.replicated else job.spec
    first = [pod for pod in pods if pod.metadata.annotations.get(_INDEX, "0") == "0"]
    active = [pod for pod in pods if pod.is_active and not pod.metadata.deleted]
    last = first[-1] if first else None
    leaving = next((pod for pod in pods if pod.is_active and pod.metadata.deleted and pod.disruption), None)
    state, reason = _state(job, active, leaving or last, admission)
    done = None if last is None else last.main.get("terminated")
    restarts = max(job.restarts, admission.evictions)
    forgotten = max(_forgotten(job, first), restarts + 1 - len(first))
    per_node = sum(map(devices_of, inner.containers))
    end = job.end or (done.end if done and state not in ("RUNNING", "PENDING") else "")
    return QueuedJob(
        id=job.metadata.name,
        name=job.metadata.name,
        state=state,
        partition=job.metadata.labels.get(QUEUE, job.metadata.namespace),
        nodes=inner.parallelism,
        on_nodes=",".join(sorted({pod.node for pod in active if pod.node})),
        seconds=sum(map(_seconds, first)),
        limit_seconds=inner.limit,
        submitted=_local(job.metadata.created),
        start=None if state == "PENDING" else _local(job.start),
        end=_local(end),
        reason=reason[:_LONGEST_REASON],
        gpus=per_node * inner.parallelism or None,
        turns=max(1, restarts + 1, len(first) + forgotten),
        exit_code=None if done is None or state in ("RUNNING", "PENDING") else done.code,
        uid=job.metadata.uid,
        misses_turns=bool(first) and forgotten > 0,
        printed_by=last.metadata.name if last and last.main.keys() & {"running", "terminated"} else "",
    )


def _forgotten(job: _Workload, first: Sequence[_Pod]) -> int:
    """Return at least how many turns are not known any more: a pod that is evicted is deleted."""
    began = _utc_time(job.start)
    oldest = _utc_time(first[0].metadata.created) if first else None
    return 0 if began is None or oldest is None else int((oldest - began).total_seconds() > _CREATION_SECONDS)


def _state(job: _Workload, active: Sequence[_Pod], last: _Pod | None, admission: Admission) -> tuple[str, str]:
    """Return the state of a job in Slurm's words, and why it waits or failed."""
    ended = [condition for condition in job.conditions if condition.status == "True"]
    if any(condition.type in ("Complete", "Completed") for condition in ended):
        return "COMPLETED", ""
    if failed := condition_of(ended, "Failed", "True"):
        return _FAILURES.get(failed.reason, "FAILED"), failed.message or failed.reason
    if job.metadata.deleted:
        return "COMPLETING", "it was asked to stop"
    is_left = last is not None and bool(last.metadata.deleted)
    if active and not is_left and all("running" in pod.main for pod in active):
        return "RUNNING", ""
    if (is_left or not active) and last is not None and last.disruption and not job.spec.suspend:
        return "PREEMPTED", last.disruption
    return "PENDING", _why_waiting(job, active, admission)


def _why_waiting(job: _Workload, active: Sequence[_Pod], admission: Admission) -> str:
    queue = job.metadata.labels.get(QUEUE)
    if job.spec.suspend:
        why = f": {admission.why_waiting}" if admission.why_waiting else ""
        return f"waits for the quota of {queue}{why}" if queue else "suspended"
    return next(filter(None, map(_why_pod_waits, active)), "" if active else "no pod yet")


def _why_pod_waits(pod: _Pod) -> str:
    if unscheduled := condition_of(pod.conditions, "PodScheduled", "False"):
        return unscheduled.message or unscheduled.reason
    waiting = pod.main.get("waiting")
    return "" if waiting is None else waiting.message or waiting.reason


def _seconds(pod: _Pod) -> float:
    """Return how long a pod's container has run, or ran."""
    ran = pod.main.get("running") or pod.main.get("terminated")
    start = None if ran is None else _utc_time(ran.start)
    if ran is None or start is None:
        return 0.0
    return max(0.0, ((_utc_time(ran.end) or datetime.now(UTC)) - start).total_seconds())


def _utc_time(text: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    return None


def _local(text: str) -> str | None:
    time = _utc_time(text)
    return None if time is None else time_of(time.astimezone().replace(tzinfo=None).isoformat())
