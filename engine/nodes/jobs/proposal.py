"""A job before it is submitted: its script on every partition, when it would start there and what it would cost."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

from capacity_tui.engine.errors import QueueError
from capacity_tui.engine.nodes.jobs.job_request import JobLauncher, JobRequest, Launch, time_of
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
from capacity_tui.engine.nodes.slurm import slurm_answer
from capacity_tui.engine.present import template
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_seconds

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

    def submitted_as(self, job: str) -> JobProposal:
        """Return it with the number that a queue gave it."""
        return replace(self, job=job)


def slurm_proposal(
    request: JobRequest,
    launch: Launch,
    options: SlurmOptions,
    plan_text: str,
    names: Sequence[str] = (),
    prices: tuple[Prices, str] = ({}, ""),
) -> JobProposal:
    """Return a job on every partition; that which would start first is chosen, the cheaper of equal ones.

    Args:
        names: partitions to look at; all by default.
        prices: by partition, and the file with them.

    Raises:
        CapacityError: Slurm is not here, does not answer, or knows no such partition.
    """
    partitions = cluster_partitions(names)
    offers = [_offer(partition, request, launch, options, plan_text, prices) for partition in partitions]
    offers.sort(key=_by_start)
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
    return Offer(
        partition.name,
        partition_request,
        "" if reason else script,
        reason,
        start,
        nodes,
        most,
        request.turns(most),
        cost,
    )


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


def chosen_or_refused(proposal: JobProposal) -> Offer:
    """Return the partition that is chosen; raises QueueError if none can take the job."""
    chosen = proposal.chosen
    if chosen is None:
        reasons = "; ".join(f"{offer.partition}: {offer.why_not}" for offer in proposal.offers)
        raise QueueError("no partition can take this job", reasons, "`cluster submit` without --submit lists them")
    return chosen


def _by_start(offer: Offer) -> tuple[bool, str, float]:
    hourly = offer.cost.usd_per_hour
    return bool(offer.why_not), offer.start or "9", float("inf") if hourly is None else hourly


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
