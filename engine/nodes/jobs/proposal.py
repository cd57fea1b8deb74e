"""A job before it is submitted: its script on every partition, when it would start there and what it would cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from capacity_tui.engine.errors import QueueError
from capacity_tui.engine.nodes.jobs.batch_script import SlurmOptions, batch_script
from capacity_tui.engine.nodes.jobs.job_request import JobRequest
from capacity_tui.engine.nodes.jobs.launch import Launch
from capacity_tui.engine.nodes.jobs.partitions import Partition, are_taken_whole, partitions_here, type_in, why_not
from capacity_tui.engine.nodes.jobs.prices import PartitionCost, Prices, cost_on
from capacity_tui.engine.nodes.jobs.slurm_values import time_of
from capacity_tui.engine.nodes.launchers.slurm import slurm_answer
from capacity_tui.engine.units import format_seconds

_STARTS = re.compile(r"[Jj]ob \d+ to start at (?P<at>\S+)(?: .*on nodes? (?P<nodes>\S+))?")
_REFUSED = re.compile(r"(?:allocation failure|error|sbatch): (?P<why>.+)")


@dataclass(frozen=True)
class Offer:
    """A job on one partition.

    Attributes:
        request: what the job asks for there.
        script: what would be submitted there; empty where the partition cannot take it.
        why_not: why it cannot; empty where it can.
        start: when it would begin, ISO 8601 in local time, as the scheduler says now; None where it does not.
        on_nodes: the nodes it would have then, as Slurm writes them.
        most_seconds: that a job may run there; None without a limit.
    """

    partition: str
    request: JobRequest
    script: str
    why_not: str
    start: str | None
    on_nodes: str
    most_seconds: float | None
    turns: int
    cost: PartitionCost


@dataclass(frozen=True)
class Proposal:
    """A job as it would be submitted.

    Attributes:
        engine: ``slurm``, ``ray`` or ``hosts``.
        script: what would be submitted, or run.
        offers: by partition, those of Slurm; the one that is chosen first.
        job: its number once it is submitted; empty before.
    """

    engine: str
    request: JobRequest
    launch: Launch
    script: str
    offers: tuple[Offer, ...] = ()
    remarks: tuple[str, ...] = ()
    job: str = ""

    @property
    def chosen(self) -> Offer | None:
        """The partition that is chosen; None where none can take the job, or there are none."""
        return next((offer for offer in self.offers if not offer.why_not), None)

    def submitted_as(self, job: str) -> Proposal:
        """Return it with the number that a queue gave it."""
        return replace(self, job=job)


def slurm_proposal(
    request: JobRequest,
    launch: Launch,
    options: SlurmOptions,
    plan_text: str,
    names: Sequence[str] = (),
    prices: tuple[Prices, str] = ({}, ""),
) -> Proposal:
    """Return a job on every partition; that which would start first is chosen, the cheaper of equal ones.

    Args:
        names: partitions to look at; all by default.
        prices: by partition, and the file they stand in.

    Raises:
        CapacityError: Slurm is not here, does not answer, or knows no such partition.
    """
    partitions = partitions_here(names)
    offers = [_offer(partition, request, launch, options, plan_text, prices) for partition in partitions]
    offers.sort(key=_by_start)
    best = offers[0] if offers and not offers[0].why_not else None
    turns = 1 if best is None else best.turns
    return Proposal(
        "slurm",
        request if best is None else best.request,
        launch,
        best.script if best else "",
        tuple(offers),
        tuple(remarks_of(request, launch, turns)),
    )


def remarks_of(request: JobRequest, launch: Launch, turns: int = 1) -> list[str]:
    """Return what to know of a job before it is submitted."""
    remarks = []
    if not launch.is_given:
        remarks.append(f"no command behind --: the script runs {' '.join(launch.words)}")
    if request.limit_seconds is None:
        remarks.append("the plan gives no length, so no time is asked for: training.tokens, or --time")
    if not request.resumes:
        remarks.append(
            "without --checkpoints a job that is pre-empted starts from nothing, so it is not put back in the queue"
        )
    if turns > 1:
        remarks.append(
            f"it runs in {turns} turns: before each ends it is told to save, and goes on from its checkpoint"
        )
    if launch.left_out:
        remarks.append(f"left out of the command, since only a guard knows it: {', '.join(launch.left_out)}")
    if not launch.is_guarded:
        remarks.append("no guard stands around it: what the plan's recovery says is not done")
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
    there = replace(request, whole_nodes=are_taken_whole(partition, request))
    if not reason:
        kind = type_in(partition, request)
        script = batch_script(there, launch, options, plan_text, partition.name, kind, most)
        start, nodes, reason = start_of_script(script)
    return Offer(partition.name, there, "" if reason else script, reason, start, nodes, most, request.turns(most), cost)


def start_of_script(script: str) -> tuple[str | None, str, str]:
    """Return when a script would start, on which nodes, and why never where the scheduler says so."""
    answer = slurm_answer("sbatch", "--test-only", given=script)
    text = answer.stderr or answer.stdout
    match = _STARTS.search(text)
    if match is not None:
        return time_of(match["at"]), match["nodes"] or "", ""
    if answer.returncode == 0:
        return None, "", ""
    why = _REFUSED.search(text)
    return None, "", f"Slurm: {(why['why'] if why else text.strip() or 'no reason given')[:200]}"


def chosen_or_refused(proposal: Proposal) -> Offer:
    """Return the partition that is chosen.

    Raises:
        QueueError: none can take the job.
    """
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
