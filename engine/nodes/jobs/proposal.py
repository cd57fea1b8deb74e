"""A job before it is submitted: its script on every partition, when it would start there and what it would cost."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from pathlib import Path

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import PlanError, QueueError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.nodes.jobs.job_request import (
    START_SECONDS,
    TRAIN_TIME,
    JobLauncher,
    JobRequest,
    Launch,
    safe_name,
    time_of,
)
from capacity_tui.engine.nodes.jobs.partitions import (
    Partition,
    PartitionCost,
    Prices,
    are_taken_whole,
    cluster_partitions,
    cost_on,
    type_in,
    why_not,
)
from capacity_tui.engine.nodes.jobs.slurm_jobs import SlurmOptions, batch_script, unused_end
from capacity_tui.engine.nodes.kubernetes import Kubernetes
from capacity_tui.engine.nodes.launcher import Launcher
from capacity_tui.engine.nodes.slurm import Slurm, slurm_answer
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, software_id
from capacity_tui.engine.present import template
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.guard import CHECKPOINT, filled_words, values_of
from capacity_tui.engine.runs.history import history_entry
from capacity_tui.engine.units import format_seconds
from capacity_tui.engine.verdict import Verdict

MARGIN = 1.1  # Beyond the upper end of the predicted range, for evaluations and checkpoints that the plan does not name
_PROCESSES_OF_A_RANK = 2  # the loop itself and the thread that feeds the device
DEFAULT_COMMAND = ("train.py",)
_STARTERS = ("torchrun", "accelerate", "deepspeed", "mpirun", "srun", "ray")
_AT_ONCE = timedelta(minutes=1)  # How far apart starts are taken for the same
_STARTS = re.compile(r"[Jj]ob \d+ to start at (?P<at>\S+)(?: .*on nodes? (?P<nodes>\S+))?")
_REFUSED = re.compile(r"(?:allocation failure|error|sbatch): (?P<why>.+)")


@dataclass(frozen=True)
class Offer:
    """A job on one partition."""

    partition: str
    request: JobRequest
    script: str  # what would be submitted there; empty where the partition cannot take it
    why_not: str  # why it cannot; empty where it can
    start: str | None  # when it would begin, ISO 8601 in local time, as the scheduler says now; None where it does not
    on_nodes: str  # the nodes it would have then, as Slurm writes them
    most_seconds: float | None  # that a job may run there; None without a limit
    turns: int
    cost: PartitionCost


@dataclass(frozen=True)
class JobProposal:
    """A job as it would be submitted."""

    engine: str  # ``slurm``, ``kubernetes`` or ``hosts``
    request: JobRequest
    launch: Launch
    script: str  # what would be submitted, or run
    offers: tuple[Offer, ...] = ()  # by partition, those of Slurm; the one that is chosen first
    remarks: tuple[str, ...] = ()
    job: str = ""  # its number once it is submitted; empty before

    @property
    def chosen(self) -> Offer | None:
        """The partition that is chosen; None where none can take the job, or there are none."""
        return next((offer for offer in self.offers if not offer.why_not), None)


def slurm_proposal(
    request: JobRequest,
    launch: Launch,
    options: SlurmOptions,
    plan_text: str,
    names: Sequence[str] = (),
    prices: tuple[Prices, str] = ({}, ""),
) -> JobProposal:
    """Return a job on every partition; that which would start first is chosen, the cheaper of equal ones."""
    partitions = cluster_partitions(names)
    offers = [_offer(partition, request, launch, options, plan_text, prices) for partition in partitions]
    offers = in_order(offers)
    best = offers[0] if offers and not offers[0].why_not else None
    turns = 1 if best is None else best.turns
    return JobProposal(
        "slurm",
        request if best is None else best.request,
        launch,
        best.script if best else "",
        tuple(offers),
        tuple(remarks_of(request, launch, turns)),
    )


_NOT_PUT_BACK = "without --checkpoints a job that is pre-empted starts from nothing, so it is not put back in the queue"


def remarks_of(
    request: JobRequest, launch: Launch, turns: int = 1, without_checkpoints: str = _NOT_PUT_BACK
) -> list[str]:
    """Return what to know of a job before it is submitted."""
    remarks = []
    if not launch.is_given:
        remarks.append(f"no command behind --: the script runs {' '.join(launch.words)}")
    if request.limit_seconds is None:
        remarks.append("the plan gives no length, so no time limit is requested: training.tokens, or --time")
    if not request.resumes:
        remarks.append(without_checkpoints)
    if turns > 1:
        remarks.append(
            f"it runs in {turns} turns: before each ends it is signalled to save, and continues from its checkpoint"
        )
    if launch.left_out:
        remarks.append(f"left out of the command, since only a guard knows it: {', '.join(launch.left_out)}")
    if not launch.is_guarded:
        remarks.append("no guard runs around it: the plan's recovery is not applied")
    return remarks


def _offer(
    partition: Partition,
    request: JobRequest,
    launch: Launch,
    options: SlurmOptions,
    plan_text: str,
    prices: tuple[Prices, str],
) -> Offer:
    reason = why_not(partition, request)
    most, cost = partition.most_seconds, cost_on(partition.name, request, *prices)
    start, nodes, script = None, "", ""
    partition_request = replace(request, whole_nodes=are_taken_whole(partition, request))
    if not reason:
        kind = type_in(partition, request)
        script = batch_script(partition_request, launch, options, plan_text, partition.name, kind, most)
        start, nodes, reason = start_of_script(script)
    script, turns = "" if reason else script, request.turns(most)
    return Offer(partition.name, partition_request, script, reason, start, nodes, most, turns, cost)


def start_of_script(script: str) -> tuple[str | None, str, str]:
    """Return when a script would start, on which nodes, and why never where the scheduler says so."""
    answer = slurm_answer("sbatch", "--test-only", standard_input=script)
    text = answer.stderr or answer.stdout
    match = _STARTS.search(text)
    if match is not None:
        return time_of(match["at"]), match["nodes"] or "", ""
    if answer.returncode == 0:
        return None, "", ""
    why = _REFUSED.search(text)
    return None, "", f"Slurm: {(why['why'] if why else text.strip() or 'no reason given')[:200]}"


def in_order(offers: Sequence[Offer]) -> list[Offer]:
    """Return offers as they are chosen: what takes the job and starts first, the cheaper of those that start at once.

    A scheduler answers for one partition after another, each time from its own now: some seconds tell none apart.
    """
    starts = [datetime.fromisoformat(offer.start) for offer in offers if offer.start and not offer.why_not]
    until = (min(starts) + _AT_ONCE).isoformat() if starts else ""

    def order(offer: Offer) -> tuple[bool, str, float]:
        hourly = offer.cost.usd_per_hour
        start = "" if offer.start and offer.start <= until else offer.start or "9"
        return bool(offer.why_not), start, float("inf") if hourly is None else hourly

    return sorted(offers, key=order)


def limit_text(seconds: float | None) -> str:
    """Return how long a job may run."""
    return "no limit" if seconds is None else format_seconds(seconds)


_MEETING = ('--node-rank="$rank"', '--master-addr="$address"', '--master-port="$port"')


def hosts_proposal(request: JobRequest, launch: Launch, hosts: Sequence[str]) -> JobProposal:
    """Return a job on the first of these hosts; raises QueueError if there are fewer hosts than the plan has nodes."""
    if len(hosts) < request.nodes:
        fitting = len(hosts) * request.per_node
        raise QueueError(
            f"{len(hosts)} hosts for {request.nodes} nodes", hint=f"plan for {fitting} devices, or add hosts"
        )
    meeting = ["--standalone"] if request.nodes == 1 else [f"--nnodes={request.nodes}", *_MEETING]
    used, unused = hosts[: request.nodes], hosts[request.nodes :]
    command = launch.torchrun(request, meeting)
    hosts_text = " ".join(map(shlex.quote, used))
    script = template("hosts.sh.jinja").render(hosts=hosts_text, command=command, end=unused_end(command)) + "\n"
    remarks = [*remarks_of(request, launch), "nothing queues jobs there: run the script"]
    if unused:
        remarks.append(f"not used: {', '.join(unused)}")
    return JobProposal("hosts", request, launch, script, remarks=tuple(remarks))


@dataclass(frozen=True)
class JobSettings:
    """Settings of a job besides its plan."""

    command: Sequence[str] = ()  # what runs, with placeholders; nothing for a training script by its usual name
    name: str = ""  # of the job; from model and task where empty
    limit_seconds: float | None = None  # of its time; from the predicted range by default
    checkpoints: Path | None = None
    launcher: JobLauncher | None = None  # what starts its processes; as framework and command want by default
    is_guarded: bool = True  # whether it runs under a guard
    may_fail: bool = False  # whether a plan that does not fit is taken all the same
    partitions: Sequence[str] = ()  # of Slurm, or queues of Kueue, to look at; all by default
    options: SlurmOptions = field(default_factory=SlurmOptions)
    prices: Path | None = None
    image: str = ""  # what containers are started of; one with the plan's software where empty
    claim: str = ""  # persistent volume claim that holds the folder of checkpoints; empty for none


def request_of(answer: Answer, settings: JobSettings) -> JobRequest:
    """Return the resources that an estimated plan requests.

    Raises:
        PlanError: it does not fit, so that a job would only fail, or it does not fill its nodes evenly.
    """
    plan, cluster = answer.plan, answer.resolved.cluster
    if answer.estimate.verdict is Verdict.DOES_NOT_FIT and not settings.may_fail:
        raise PlanError(
            "the plan does not fit, so its job would run out of memory",
            answer.estimate.reason,
            hint="`capacity-tui plan` shows what would make it fit; --force submits it anyway",
        )
    devices, in_node = round(mean(cluster.devices)), round(mean(cluster.per_node))
    per_node = min(devices, plan.hardware.per_node or in_node or devices)
    if devices % per_node:
        raise PlanError(
            f"{devices} devices do not fill nodes of {per_node}",
            hint=f"plan for {devices // per_node * per_node} or {(devices // per_node + 1) * per_node} devices",
        )
    predicted = history_entry(answer).predicted
    longest = predicted.get(TRAIN_TIME, {})
    high = longest.get("high", longest.get("value"))
    predicted_limit = None if high is None else high * MARGIN + START_SECONDS
    workers = plan.data.workers if isinstance(plan.data.workers, int) else 0
    is_on_gpus = not cluster.device.is_processor
    whole_nodes = not is_on_gpus or per_node >= in_node > 1
    host = answer.estimate.memory.host_bytes
    host_bytes = mean(host) if is_on_gpus else mean(answer.estimate.memory.per_device_bytes.value)
    return JobRequest(
        name=safe_name(settings.name or "-".join(part for part in (plan.model.name, plan.task) if part)),
        device=" ".join(dict.fromkeys((cluster.device.id, cluster.device.name))),
        is_on_gpus=is_on_gpus,
        nodes=devices // per_node,
        per_node=per_node,
        whole_nodes=whole_nodes,
        processors_per_node=per_node * (_PROCESSES_OF_A_RANK + workers) if is_on_gpus else None,
        memory_per_node_bytes=host_bytes * per_node or None,
        predicted=predicted,
        limit_seconds=predicted_limit if settings.limit_seconds is None else settings.limit_seconds,
        checkpoints=settings.checkpoints,
        most_restarts=int(plan.recovery.max_restarts) if isinstance(plan.recovery.max_restarts, int) else 0,
        has_price=plan.pricing.usd_per_hour is not None or bool(cluster.rented),
    )


def launch_of(plan: Plan, settings: JobSettings, catalog: Catalog, nodes: Launcher) -> Launch:
    """Return what runs for a plan.

    Raises:
        PlanError: a placeholder names no field of plans, or one that only a guard can fill.
    """
    chosen = settings.launcher or _launcher(plan, settings.command, catalog)
    command = tuple(settings.command) or DEFAULT_COMMAND
    guardable = settings.is_guarded and isinstance(nodes, Slurm) and not plan.is_inference
    is_resumed = isinstance(nodes, Kubernetes)  # the export fills in the newest checkpoint
    values = values_of(plan)
    mark = f"{{{CHECKPOINT}}}"
    if guardable:
        values = {**values, CHECKPOINT: CHECKPOINT, **_FROM_GUARD}
    elif is_resumed:
        values = {**values, CHECKPOINT: mark}
    checked = filled_words(command, values)
    left_out = () if guardable or is_resumed else tuple(word for word in command if mark in word)
    return Launch(
        command if guardable else checked, chosen, guardable, settings.checkpoints, bool(settings.command), left_out
    )


_FROM_GUARD = {"run.id": "run", "run.attempt": "1", "run.folder": "run"}


def _launcher(plan: Plan, words: Sequence[str], catalog: Catalog) -> JobLauncher:
    if words and Path(words[0]).name in _STARTERS:
        return "command"
    if not plan.is_training:
        return "command"
    named = plan.training.framework
    row = None if named is None else catalog.frameworks.get(software_id(named, catalog))
    return "torchrun" if row is None else row.launcher
