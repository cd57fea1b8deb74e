"""Slurm jobs: those in the queue, and those in its accounting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.nodes.jobs.job_request import gpus_of_gres, seconds_of, time_of
from capacity_tui.engine.nodes.launchers.slurm import slurm_answer, slurm_text

_SEPARATOR = "\x1f"
_QUEUE_FORMAT = _SEPARATOR.join(("%A", "%T", "%P", "%D", "%N", "%M", "%l", "%V", "%S", "%r", "%b", "%j"))
_FIELDS = (
    *("JobIDRaw", "State", "Partition", "NNodes", "NodeList", "ElapsedRaw", "TimelimitRaw"),
    *("Submit", "Start", "End", "ConsumedEnergyRaw", "AllocTRES", "ExitCode", "JobName"),
)
_OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE")
_AGAIN = ("PREEMPTED", "REQUEUED", "NODE_FAIL")
_MINUTE = 60.0
_UNKNOWN_ENERGY = 2**63


@dataclass(frozen=True)
class QueuedJob:
    """A job.

    Attributes:
        state: Slurm's word, such as ``RUNNING``.
        on_nodes: which, as Slurm writes them; empty before it runs.
        seconds: it ran, over all of its turns.
        limit_seconds: of a turn; None without one.
        submitted: ISO 8601 in local time; None where unknown.
        start: when it began, or is predicted to; None where unknown.
        reason: why it waits, in Slurm's word; empty otherwise.
        gpus: of all nodes; None where unknown.
        energy_joules: over all turns; None where nothing measures that.
        exit_code: of it; None while it runs.
    """

    id: str
    name: str
    state: str
    partition: str
    nodes: int
    on_nodes: str = ""
    seconds: float = 0.0
    limit_seconds: float | None = None
    submitted: str | None = None
    start: str | None = None
    end: str | None = None
    reason: str = ""
    gpus: int | None = None
    turns: int = 1
    energy_joules: float | None = None
    exit_code: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return self.state in _OVER


def queued_jobs(jobs: Sequence[str] = (), *, everyone: bool = False) -> tuple[QueuedJob, ...]:
    """Return jobs in the queue: those that are named, those of everyone, or else the user's own.

    Raises:
        CapacityError: Slurm is not here, or does not answer.
    """
    who = ["--jobs", ",".join(jobs)] if jobs else [] if everyone else ["--me"]
    words = ("squeue", "--noheader", "--states=all", *who, "--format", _QUEUE_FORMAT)
    if not jobs:
        return tuple(_queued(slurm_text(*words)))
    answer = slurm_answer(*words)  # a job that has left the queue long ago is an error of squeue
    return tuple(_queued(answer.stdout))


def accounted_jobs(jobs: Sequence[str] = (), since: str = "now-7days") -> tuple[tuple[QueuedJob, ...], str]:
    """Return jobs that accounting remembers, one for all turns of each, and why there are none where nothing accounts.

    Args:
        jobs: numbers; the user's own since then by default.

    Raises:
        LauncherError: Slurm is not here.
    """
    which = ["--jobs", ",".join(jobs)] if jobs else ["--starttime", since]
    delimiter = f"--delimiter={_SEPARATOR}"
    words = ("sacct", "--noheader", "--parsable2", delimiter, "--duplicates", "--allocations", *which)
    try:
        text = slurm_text(*words, "--format", ",".join(_FIELDS))
    except LauncherError as error:
        return (), f"no accounting: {error.detail or error.title}"
    return tuple(_accounted(text)), ""


def merged(queued: Iterable[QueuedJob], accounted: Iterable[QueuedJob]) -> tuple[QueuedJob, ...]:
    """Return all jobs, the newest first: those of the queue, completed by accounting."""
    jobs = {job.id: job for job in accounted}
    for job in queued:
        known = jobs.get(job.id)
        jobs[job.id] = job if known is None else _both(job, known)
    return tuple(sorted(jobs.values(), key=lambda job: _number(job.id), reverse=True))


def _both(job: QueuedJob, known: QueuedJob) -> QueuedJob:
    if known.is_over and not job.is_over:
        return job
    return replace(
        job,
        seconds=max(job.seconds, known.seconds),
        turns=max(job.turns, known.turns),
        energy_joules=known.energy_joules,
        exit_code=known.exit_code,
        end=known.end,
        gpus=known.gpus if job.gpus is None else job.gpus,
    )


def _queued(text: str) -> Iterable[QueuedJob]:
    for line in text.splitlines():
        parts = line.split(_SEPARATOR, len(_QUEUE_FORMAT.split(_SEPARATOR)) - 1)
        if len(parts) < len(_QUEUE_FORMAT.split(_SEPARATOR)):
            continue
        number, state, partition, nodes, on_nodes, ran, limit, submitted, start, reason, gres, name = parts
        count = int(nodes) if nodes.isdigit() else 1
        in_node = sum(gpus_of_gres(gres).values())
        yield QueuedJob(
            id=number,
            name=name,
            state=state,
            partition=partition,
            nodes=count,
            on_nodes=on_nodes,
            seconds=seconds_of(ran) or 0.0,
            limit_seconds=seconds_of(limit),
            submitted=time_of(submitted),
            start=time_of(start),
            reason="" if reason == "None" else reason,
            gpus=in_node * count or None,
        )


def _accounted(text: str) -> Iterable[QueuedJob]:
    jobs: dict[str, QueuedJob] = {}
    for line in text.splitlines():
        parts = line.split(_SEPARATOR, len(_FIELDS) - 1)
        if len(parts) < len(_FIELDS):
            continue
        values = dict(zip(_FIELDS, parts, strict=True))
        job = _turn(values)
        before = jobs.get(job.id)
        jobs[job.id] = job if before is None else _next_turn(before, job)
    return jobs.values()


def _turn(values: dict[str, str]) -> QueuedJob:
    state = values["State"].split(" ")[0]
    energy = values["ConsumedEnergyRaw"]
    tres = dict(part.partition("=")[::2] for part in values["AllocTRES"].split(","))
    limit, gpus = values["TimelimitRaw"], tres.get("gres/gpu", "")
    return QueuedJob(
        id=values["JobIDRaw"],
        name=values["JobName"],
        state=state,
        partition=values["Partition"],
        nodes=int(values["NNodes"]) if values["NNodes"].isdigit() else 1,
        on_nodes="" if values["NodeList"].startswith("None") else values["NodeList"],
        seconds=float(values["ElapsedRaw"] or 0),
        limit_seconds=float(limit) * _MINUTE if limit.isdigit() else None,
        submitted=time_of(values["Submit"]),
        start=time_of(values["Start"]),
        end=time_of(values["End"]),
        gpus=int(gpus) if gpus.isdigit() else None,
        energy_joules=float(energy) if energy.isdigit() and 0 < int(energy) < _UNKNOWN_ENERGY else None,
        exit_code=int(values["ExitCode"].partition(":")[0] or 0) if state in (*_OVER, *_AGAIN) else None,
    )


def _next_turn(before: QueuedJob, turn: QueuedJob) -> QueuedJob:
    known = [joules for joules in (before.energy_joules, turn.energy_joules) if joules is not None]
    return replace(
        turn,
        submitted=before.submitted,
        start=before.start,
        seconds=before.seconds + turn.seconds,
        turns=before.turns + (1 if turn.seconds or turn.start else 0),
        energy_joules=sum(known) if known else None,
    )


def _number(job: str) -> int:
    return int(job) if job.isdigit() else 0
