"""Pods of a job: its manifest for every queue before it is created, why one cannot take it, and what they print."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from threading import Event, Thread

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError, PlanError, QueueError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.nodes.inventory import PARTITIONED, WHOLE, DeviceQueue, Inventory, NodeFacts
from capacity_tui.engine.nodes.jobs.job_request import JobRequest, Launch, QueuedJob
from capacity_tui.engine.nodes.jobs.partitions import PartitionCost, Prices, cost_on
from capacity_tui.engine.nodes.jobs.proposal import JobProposal, JobSettings, Offer, remarks_of
from capacity_tui.engine.nodes.kubectl import Kubectl, KubectlError, LineStream
from capacity_tui.engine.nodes.kubernetes import Kubernetes

_NO_REHEARSAL = ("dry run", "dryrun", "dry-run")
_JOB_FILE = "job.yaml"
_STARTS_AGAIN = "without --checkpoints a job that is evicted starts from nothing"


def kubernetes_proposal(
    answer: Answer,
    request: JobRequest,
    launch: Launch,
    settings: JobSettings,
    kubectl: Kubectl,
    catalog: Catalog,
    prices: tuple[Prices, str],
) -> JobProposal:
    """Return a job for every local queue of Kueue, or for the namespace where there are none.

    The API server is asked whether it would create it; nothing is created.

    Raises:
        CapacityError: kubectl or the server does not answer, the plan trains nothing, or there is no such queue.
    """
    # Jobs that are listed are not written.
    from capacity_tui.engine.present.frameworks import Wishes, export_files, object_name  # noqa: PLC0415

    if answer.plan.is_inference:
        raise PlanError("a plan that serves is no job", hint="`capacity-tui export kubernetes` writes its deployment")
    folder = settings.checkpoints
    if folder is not None and not PurePosixPath(folder).is_absolute():
        raise PlanError(f"{folder}: no folder of a container", hint="--checkpoints /NAME, an absolute path")
    try:
        inventory, unknown = Kubernetes(kubectl).inventory(""), []
    except CapacityError as error:
        if not kubectl.answers():
            raise
        inventory, unknown = None, [f"nodes and queues are not known: {error.title}"]
    wishes = Wishes(
        words=_words(launch),
        product=_product(answer, inventory, catalog),
        name=object_name(settings.name or request.name),
        image=settings.image,
        claim=settings.claim,
        checkpoints="" if folder is None else str(folder),
        seconds=None if settings.limit_seconds is None else round(settings.limit_seconds),
    )
    remarks = [*remarks_of(request, launch, without_checkpoints=_STARTS_AGAIN), *unknown]
    if folder is not None and not settings.claim:
        remarks.append("no --claim: checkpoints are in the container, and go with it")
    offers = []
    for queue in _queues(inventory, kubectl, settings):
        script = export_files("kubernetes", answer, catalog, replace(wishes, queue=queue.shared and queue.name))[
            _JOB_FILE
        ]
        why = next(_reasons(queue, request, inventory), "")
        if not why:
            why, remark = _rehearsed(kubectl, script)
            remarks += [remark] if remark else []
        cost: PartitionCost = cost_on(queue.name, request, *prices)
        offers.append(Offer(queue.name, request, "" if why else script, why, None, "", None, 1, cost))
    offers.sort(key=lambda offer: bool(offer.why_not))
    best = offers[0] if offers and not offers[0].why_not else None
    if best is not None and inventory is not None:
        remarks += _free(request, inventory)
    return JobProposal(
        "kubernetes", request, launch, best.script if best else "", tuple(offers), tuple(dict.fromkeys(remarks))
    )


def _words(launch: Launch) -> tuple[str, ...]:
    """Return what a container runs: the command, left to itself where it starts its own processes."""
    if launch.launcher == "queue":
        raise PlanError("Kubernetes starts one process a node", hint="--launcher torchrun, or command")
    is_own = launch.launcher == "command" and launch.words[0].endswith(".py")
    return ("bash", "-c", shlex.join(launch.words)) if is_own else launch.words


def _product(answer: Answer, inventory: Inventory | None, catalog: Catalog) -> str:
    """Return the product that nodes must have, where a cluster has unlike devices; empty for any."""
    device = answer.resolved.cluster.device.id
    row = catalog.accelerators.get(device)
    nodes = () if inventory is None else tuple(node for node in inventory.nodes if node.devices)
    own = next((node.device_name for node in nodes if node.device == device), "")
    is_mixed = len({node.family for node in nodes}) > 1
    return own.replace(" ", "-") if own and is_mixed and row is not None and row.vendor == "NVIDIA" else ""


def _queues(inventory: Inventory | None, kubectl: Kubectl, settings: JobSettings) -> list[DeviceQueue]:
    """Return the queues of the namespace, or the namespace itself."""
    namespace = kubectl.current_namespace()
    known = [] if inventory is None else [queue for queue in inventory.queues if queue.namespace == namespace]
    named = settings.partitions
    for name in named:
        if known and name not in [queue.name for queue in known]:
            raise QueueError(f"no queue is called {name}", hint=f"known: {', '.join(queue.name for queue in known)}")
    if named and not known:  # they cannot be listed; the server says whether they are there
        return [DeviceQueue(name=name, namespace=namespace, shared=name) for name in named]
    return [queue for queue in known if not named or queue.name in named] or [DeviceQueue(name=namespace)]


def _reasons(queue: DeviceQueue, request: JobRequest, inventory: Inventory | None) -> Iterator[str]:
    if queue.why_held:
        yield queue.why_held
    if queue.quota is not None and queue.borrows is not None and request.devices > queue.quota + queue.borrows:
        more = f" and {queue.borrows} that it may borrow" if queue.borrows else ""
        yield f"its quota is {queue.quota} devices{more}, {request.devices} are needed"
    known = [] if inventory is None else [node for node in inventory.nodes if node.device]
    if request.is_on_gpus and known:
        own = request.device.partition(" ")[0]
        able = [node for node in _with_devices(known, own) if node.devices >= request.per_node]
        if len(able) < request.nodes:
            others = sorted({node.device for node in known if node.device != own})
            instead = f"; there are {', '.join(others)}" if others and not able else ""
            yield f"{len(able) or 'no'} nodes with {request.per_node} x {own}, {request.nodes} needed{instead}"


def _rehearsed(kubectl: Kubectl, script: str) -> tuple[str, str]:
    """Return why the server would not create a job, and what else is to be known of that."""
    words = ("create", "--validate=warn", "--filename=-", "--output=name")
    try:
        kubectl.text(*words, "--dry-run=server", standard_input=script)
    except KubectlError as error:
        if error.is_unknown_kind:
            return (
                f"{error.title.removeprefix('kubectl: ')}: a job on several nodes takes JobSet, which is not installed",
                "",
            )
        if error.reason == "AlreadyExists":
            return "a job of this name exists already: give it another with --name", ""
        if not any(word in error.title.casefold() for word in _NO_REHEARSAL):
            return error.title, ""
        kubectl.text(*words, "--dry-run=client", standard_input=script)
        return "", "the server cannot rehearse it, so only kubectl has looked at it"
    return "", ""


def _with_devices(nodes: Sequence[NodeFacts], device: str) -> list[NodeFacts]:
    """Return the nodes that have a device, whole."""
    return [node for node in nodes if node.device == device and node.traits.get(PARTITIONED, WHOLE) == WHOLE]


def _free(request: JobRequest, inventory: Inventory) -> list[str]:
    """Return what of the nodes that a job takes is free now."""
    own = request.device.partition(" ")[0]
    able = [node for node in _with_devices(inventory.nodes, own) if node.takes_jobs and node.used is not None]
    free = sum(node.devices - (node.used or 0) >= request.per_node for node in able)
    return [f"{free} nodes are free for it now, {request.nodes} needed"] if able else []


_RECONNECT_SECONDS = 1.0
_LAST_WORDS_SECONDS = 10.0
_DIGITS = 9


class PodOutput:
    """Writes what the first pod of a job prints, then the next one, and goes on where a connection broke."""

    def __init__(self, kubectl: Kubectl, write: Callable[[str], None]) -> None:
        self._kubectl, self._write = kubectl, write
        self._pod = ""
        self._reader: _PodReader | None = None

    def __enter__(self) -> Callable[[QueuedJob], None]:
        """Return what is told of the job at every poll."""
        return self._look

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.stop()

    def _look(self, job: QueuedJob) -> None:
        if self._reader is not None and (job.printed_by != self._pod or job.is_over):
            self._reader.finish()
            self._reader = None
        if job.printed_by and job.printed_by != self._pod:
            self._pod = job.printed_by
            self._reader = _PodReader(self._kubectl, self._pod, self._write)
            if job.is_over:
                self._reader.finish()


class _PodReader:
    """Reads the output of one pod in a thread."""

    def __init__(self, kubectl: Kubectl, pod: str, write: Callable[[str], None]) -> None:
        self._kubectl, self._pod, self._write = kubectl, pod, write
        self._is_over, self._is_stopped = Event(), Event()
        self._stream: LineStream | None = None
        self._thread = Thread(target=self._read, name=f"output of {pod}", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the last lines of a pod that is over."""
        self._is_over.set()
        self._thread.join(_LAST_WORDS_SECONDS)
        self.stop()

    def stop(self) -> None:
        self._is_stopped.set()
        self._is_over.set()
        if self._stream is not None:
            self._stream.end()
        self._thread.join(_RECONNECT_SECONDS)

    def _read(self) -> None:
        last = ""
        while not self._is_stopped.is_set():
            is_final = self._is_over.is_set()
            since = (f"--since-time={last}",) if last else ()
            self._stream = self._kubectl.stream("logs", "--follow", "--timestamps", *since, f"pod/{self._pod}")
            for line in self._stream:
                stamp, _, text = line.partition(" ")
                if _comparable(stamp) > _comparable(last):
                    self._write(text)
                    last = stamp
            if is_final:
                return
            self._is_over.wait(_RECONNECT_SECONDS)


def _comparable(stamp: str) -> str:
    """Return a time in RFC 3339 with all digits of a second, so that later ones are larger."""
    whole, _, rest = stamp.removesuffix("Z").partition(".")
    return f"{whole}.{rest:0<{_DIGITS}}" if whole else ""
