"""Jobs that were submitted from here: what was predicted of each, until it is known how it went."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import QueueError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.files import make_folder, state_folder, write_atomically
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.nodes.jobs.job_request import RUNNING, TRAIN_TIME, JobQueue, JobRequest, QueuedJob, safe_name
from capacity_tui.engine.nodes.jobs.kubernetes_jobs import KubernetesQueue
from capacity_tui.engine.nodes.jobs.kubernetes_pods import kubernetes_proposal
from capacity_tui.engine.nodes.jobs.partitions import read_prices
from capacity_tui.engine.nodes.jobs.proposal import (
    JobProposal,
    JobSettings,
    Offer,
    hosts_proposal,
    launch_of,
    limit_text,
    request_of,
    slurm_proposal,
)
from capacity_tui.engine.nodes.jobs.slurm_jobs import SlurmQueue
from capacity_tui.engine.nodes.kubernetes import Kubernetes
from capacity_tui.engine.nodes.launcher import Launcher, Ssh
from capacity_tui.engine.nodes.slurm import Slurm
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.present import Part, TextPart, table_part
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.runs.history import Ends, RunRecord, as_data, history_entry
from capacity_tui.engine.units import (
    HOUR_SECONDS,
    format_bytes,
    format_money,
    format_percent,
    format_power,
    format_seconds,
)

_JOULES_PER_KWH = 3.6e6
_DONE = "COMPLETED"


@dataclass(frozen=True)
class SubmittedJob:
    """A job that was submitted from here."""

    cluster: str  # that has it, by the name it gives itself
    job: str
    entry: RunRecord  # what was predicted, as stored in the history
    usd_per_hour: float | None = None  # of its nodes; None where unknown
    is_reported: bool = False  # whether the history has how it went
    uid: str = ""  # what tells it from another of the same name; empty where names are never used again

    @property
    def file(self) -> Path:
        return _folder() / f"{safe_name(self.cluster)}-{safe_name(self.job)}.json"

    def write(self) -> None:
        """Keep it; raises StorageError if it cannot be written."""
        make_folder(_folder())
        data = {**asdict(self), "entry": as_data(self.entry)}
        write_atomically(self.file, json.dumps(data) + "\n", overwrite=True)

    def measured(self, job: QueuedJob) -> RunRecord:
        """Return the entry of the history with what a queue says of the job."""
        job_details = {
            "id": job.id,
            "cluster": self.cluster,
            "state": job.state,
            "partition": job.partition,
            "nodes": job.on_nodes,
            "turns": job.turns,
            "seconds": job.seconds,
        }
        details = {**self.entry.details, "job": job_details, "exit_code": job.exit_code}
        return replace(self.entry, kind="run", actual=self.actual(job), details=details)

    def actual(self, job: QueuedJob) -> dict[str, float]:
        """Return what was measured, by result key; nothing of a job that did not end, or is known in part."""
        if job.state != _DONE or job.misses_turns:
            return {}
        figures: dict[str, float] = {TRAIN_TIME: job.seconds}
        if job.energy_joules is not None:
            figures[Figure.ENERGY_KWH] = job.energy_joules / _JOULES_PER_KWH
        if self.usd_per_hour is not None:
            figures[Figure.COST_USD] = self.usd_per_hour * job.seconds / HOUR_SECONDS
        return figures


def stored_jobs(cluster: str) -> dict[str, SubmittedJob]:
    """Return the jobs of a cluster that were submitted from here, by number; what cannot be read is left out."""
    return {kept.job: kept for kept in _read() if kept.cluster == cluster}


def _read() -> Iterator[SubmittedJob]:
    folder = _folder()
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            # Files of earlier versions say by another name whether it was reported.
            yield record_of_data(SubmittedJob, {"is_reported": data.get("told", False), **data})
        except (OSError, ValueError, AttributeError, TypeError):
            continue


def _folder() -> Path:
    return state_folder() / "jobs"


@dataclass(frozen=True)
class JobList:
    """Jobs."""

    jobs: tuple[QueuedJob, ...]
    kept: Mapping[str, SubmittedJob]  # what was predicted of those that were submitted from here, by number
    watts: Mapping[str, float]  # drawn now by the nodes of those that run, by number; what is not measured is left out
    notes: tuple[str, ...]
    newly_ended: tuple[tuple[SubmittedJob, RunRecord], ...]  # new history entries with their jobs


def list_jobs(
    queue: JobQueue, names: Sequence[str] = (), *, everyone: bool = False, since: str = "now-7days"
) -> JobList:
    """Return what is known of jobs."""
    for name in names:
        queue.check(name)
    jobs, notes = queue.jobs(names, everyone=everyone, since=since)
    uids = {job.id: job.uid for job in jobs}
    stored = stored_jobs(queue.cluster())
    submitted = {job: kept for job, kept in stored.items() if uids.get(job, kept.uid) == kept.uid}
    watts = queue.watts(jobs)
    if not watts and any(job.state in RUNNING for job in jobs):
        notes = (*notes, f"power: n/a ({queue.no_power})")
    ended = [(submitted[job.id], job) for job in jobs if job.is_over and job.id in submitted]
    new = tuple((kept, kept.measured(job)) for kept, job in ended if not kept.is_reported)
    return JobList(jobs, submitted, watts, notes, new)


def queue_of(nodes: Launcher) -> JobQueue:
    """Return the queue of what reaches some nodes; raises QueueError where no known one does."""
    if isinstance(nodes, Slurm):
        return SlurmQueue()
    if isinstance(nodes, Kubernetes):
        return KubernetesQueue(nodes.kubectl)
    if isinstance(nodes, Ssh):
        raise QueueError("nothing queues jobs on hosts", hint="write the script with -o FILE, and run it")
    raise QueueError(f"{nodes.name} has no queue that is read here", hint="name --slurm or --kubernetes")


FOLLOW_SECONDS = 5.0  # Seconds between two polls of a job; a controller serves many users
_SHORTEST_WAIT = 0.1


def propose_job(answer: Answer, settings: JobSettings, nodes: Launcher) -> JobProposal:
    """Return the job of an estimated plan; nothing is submitted.

    Raises:
        CapacityError: the plan does not fit, Slurm does not answer, or something that is named is not there.
    """
    catalog = load_catalog()
    request, launch = request_of(answer, settings), launch_of(answer.plan, settings, catalog, nodes)
    if isinstance(nodes, Ssh):
        return hosts_proposal(request, launch, nodes.hosts)
    prices = read_prices(settings.prices)
    if isinstance(nodes, Kubernetes):
        return kubernetes_proposal(answer, request, launch, settings, nodes.kubectl, catalog, prices)
    if not isinstance(nodes, Slurm):
        raise QueueError(f"no jobs are written for {nodes.name}", hint="name --slurm, --kubernetes or --hosts FILE")
    return slurm_proposal(request, launch, settings.options, dump_plan(answer.plan), settings.partitions, prices)


def submit_job(proposal: JobProposal, answer: Answer, queue: JobQueue) -> JobProposal:
    """Submit a job to the partition that is chosen, and keep what is predicted of it.

    Raises:
        QueueError: no partition can take it, or the queue refuses it.
        StorageError: what is predicted cannot be kept; the job is submitted.
    """
    chosen = proposal.chosen
    if chosen is None:
        reasons = "; ".join(f"{offer.partition}: {offer.why_not}" for offer in proposal.offers)
        raise QueueError("no partition can take this job", reasons, "`cluster submit` without --submit lists them")
    cluster = queue.cluster()
    job, uid = queue.submit(chosen.script)
    entry = history_entry(answer, "run", details={"command": list(proposal.launch.words)})
    SubmittedJob(cluster, job, entry, chosen.cost.usd_per_hour, uid=uid).write()
    return replace(proposal, job=job)


def stop_job(job: str, queue: JobQueue) -> None:
    """End a job that was submitted from here; raises CapacityError for any other, or one that is over."""
    queue.check(job)
    now = queue.job_now(job)
    kept = stored_jobs(queue.cluster()).get(job)
    if now is None or now.is_over:
        raise QueueError(
            f"job {job} is {'not known' if now is None else 'over already'}", hint="`cluster jobs` lists jobs"
        )
    if kept is None or kept.uid != now.uid:
        raise QueueError(f"job {job} was not submitted from here", hint=f"`{queue.ending(job)}` ends it all the same")
    queue.end(job)


def follow_job(
    queue: JobQueue,
    job: str,
    stopped: Callable[[], bool],
    seconds: float = FOLLOW_SECONDS,
    write: Callable[[str], None] = lambda _: None,
) -> Iterator[QueuedJob]:
    """Yield a job at every poll until it is over or forgotten.

    Args:
        stopped: whether to stop watching; the job continues.
        write: gets the lines that the job prints, where the queue has them.

    Raises:
        CapacityError: the queue does not answer.
    """
    with queue.output(write) as output:
        while (state := queue.job_now(job)) is not None:
            output(state)
            yield state
            if state.is_over:
                return
            next_look = time.monotonic() + seconds
            while time.monotonic() < next_look:
                if stopped():
                    return
                time.sleep(min(_SHORTEST_WAIT, seconds))


OFFER_HEADS = ("partition", "takes it", "start", "time limit", "turns", "$/h", "cost")
JOB_HEADS = ("job", "name", "state", "partition", "nodes", "ran", "predicted", "of it", "start", "why")
_NOTHING = "n/a"


def proposal_as_dict(proposal: JobProposal) -> dict[str, object]:
    """Return a job as it would be submitted, or was, as plain data."""
    chosen = proposal.chosen
    return {
        "engine": proposal.engine,
        "job": proposal.job or None,
        "partition": None if chosen is None else chosen.partition,
        "request": _request(proposal.request),
        "predicted": {key: dict(ends) for key, ends in proposal.request.predicted.items()},
        "partitions": [_offer(offer) for offer in proposal.offers],
        "script": proposal.script or None,
        "remarks": list(proposal.remarks),
    }


def proposal_parts(proposal: JobProposal, *, with_script: bool = True) -> Iterator[Part]:
    """Yield the script where asked for, the resources it requests, and the offer of each partition."""
    request = proposal.request
    if proposal.script and with_script:
        yield TextPart(proposal.script.rstrip("\n"))
        yield TextPart()
    yield TextPart(_asks(request), "strong")
    if TRAIN_TIME in request.predicted:
        yield TextPart(f"predicted: {_range_text(request.predicted[TRAIN_TIME], format_seconds)}")
    if proposal.offers:
        yield table_part(OFFER_HEADS, map(_offer_row, proposal.offers), (4, 5), (0, 1))
        for source in dict.fromkeys(offer.cost.source for offer in proposal.offers):
            yield TextPart(f"cost: {source}", "quiet")
    for remark in proposal.remarks:
        yield TextPart(remark)
    if proposal.job:
        yield TextPart(f"submitted as job {proposal.job}", "strong")
    elif proposal.engine != "hosts" and proposal.script:
        yield TextPart("nothing was submitted: --submit does", "quiet")


def jobs_as_dict(known: JobList) -> dict[str, object]:
    """Return jobs as plain data, predicted and actual figures where they were submitted from here."""
    return {
        "jobs": [_job(job, known.kept.get(job.id), known.watts.get(job.id)) for job in known.jobs],
        "notes": list(known.notes),
    }


def jobs_parts(known: JobList) -> Iterator[Part]:
    """Yield jobs as a table, predicted and actual figures where they were submitted from here."""
    if not known.jobs:
        yield TextPart("no jobs")
    else:
        yield table_part(JOB_HEADS, [_job_row(job, known.kept.get(job.id)) for job in known.jobs], (4,), (0, 2))
    for job, watts in known.watts.items():
        yield TextPart(f"job {job}: its nodes draw {format_power(watts)} now", "quiet")
    for note in known.notes:
        yield TextPart(note, "quiet")


def job_line(job: QueuedJob) -> str:
    place = f" on {job.on_nodes}" if job.on_nodes else ""
    why = f" ({job.reason})" if job.reason and not job.on_nodes else ""
    ran = f", ran {format_seconds(job.seconds)}" if job.seconds else ""
    again = f", turn {job.turns}" if job.turns > 1 else ""
    starts = f", starts {job.start}" if job.start and job.state == "PENDING" else ""
    return f"job {job.id}: {job.state.lower().replace('_', ' ')}{why}{place}{starts}{ran}{again}"


def _request(request: JobRequest) -> dict[str, object]:
    data = asdict(request)
    data.pop("predicted")
    data["checkpoints"] = None if request.checkpoints is None else str(request.checkpoints)
    return data


def _offer(offer: Offer) -> dict[str, object]:
    return {
        "name": offer.partition,
        "takes": not offer.why_not,
        "why_not": offer.why_not or None,
        "start": offer.start,
        "nodes": offer.on_nodes or None,
        "most_seconds": offer.most_seconds,
        "turns": None if offer.why_not else offer.turns,
        "usd_per_hour": offer.cost.usd_per_hour,
        "usd": dict(offer.cost.usd) or None,
        "price_source": offer.cost.source,
    }


def _job(job: QueuedJob, submitted: SubmittedJob | None, watts: float | None) -> dict[str, object]:
    entry = None if submitted is None else submitted.measured(job)
    return {
        **asdict(job),
        "over": job.is_over,
        "watts": watts,
        "plan": None if entry is None else entry.model,
        "predicted": {} if entry is None else {key: dict(ends) for key, ends in entry.predicted.items()},
        "actual": {} if entry is None else dict(entry.actual),
        "ratio": {} if entry is None else entry.ratio,
    }


def _asks(request: JobRequest) -> str:
    parts = [f"{request.nodes} node" if request.nodes == 1 else f"{request.nodes} nodes"]
    if request.is_on_gpus:
        parts.append(f"{request.per_node} GPUs each")
    if request.whole_nodes:
        parts.append("whole nodes")
    elif request.processors_per_node:
        parts.append(f"{request.processors_per_node} processors each")
    if request.memory_per_node_bytes and not request.whole_nodes:
        parts.append(f"{format_bytes(request.memory_per_node_bytes)} of memory each")
    limit = "" if request.limit_seconds is None else f", up to {format_seconds(request.limit_seconds)}"
    return f"asks for {', '.join(parts)}{limit}"


def _offer_row(offer: Offer) -> tuple[str, ...]:
    if offer.why_not:
        return offer.partition, f"no: {offer.why_not}", _NOTHING, limit_text(offer.most_seconds), "", "", ""
    cost = offer.cost
    return (
        offer.partition,
        "yes",
        offer.start or _NOTHING,
        limit_text(offer.most_seconds),
        str(offer.turns),
        _NOTHING if cost.usd_per_hour is None else format_money(cost.usd_per_hour),
        _range_text(cost.usd, format_money) if cost.usd else _NOTHING,
    )


def _job_row(job: QueuedJob, submitted: SubmittedJob | None) -> tuple[str, ...]:
    entry = None if submitted is None else submitted.measured(job)
    predicted = None if entry is None else entry.predicted.get(TRAIN_TIME, {}).get("value")
    ratio = None if entry is None else entry.ratio.get(TRAIN_TIME)
    return (
        job.id,
        job.name,
        job.state.lower().replace("_", " "),
        job.partition,
        str(job.nodes),
        format_seconds(job.seconds) if job.seconds else "",
        "" if predicted is None else format_seconds(predicted),
        "" if ratio is None else format_percent(ratio),
        job.start or "",
        job.reason,
    )


def _range_text(ends: Ends, text: Callable[[float], str]) -> str:
    shown = {name: text(value) for name, value in ends.items()}
    if "low" in shown and shown["low"] != shown["high"]:
        return f"{shown['value']} ({shown['low']} - {shown['high']})"
    return shown.get("value", _NOTHING)
