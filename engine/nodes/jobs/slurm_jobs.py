"""Jobs of Slurm: their batch scripts, those in its queue, and those in its accounting."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from capacity_tui.engine.errors import LauncherError, PlanError, QueueError
from capacity_tui.engine.nodes.jobs.job_request import (
    ENDED,
    GRACE_SECONDS,
    PROGRAM,
    RUNNING,
    JobRequest,
    Launch,
    QueuedJob,
    duration_of,
    gpus_of_gres,
    seconds_of,
    time_of,
)
from capacity_tui.engine.nodes.slurm import names_of, slurm_answer, slurm_nodes, slurm_text
from capacity_tui.engine.present import template
from capacity_tui.engine.record import dataclass

_PLAIN = re.compile(r"[\w.@+:/,=%*\[\]-]+")
_OPTION = re.compile(r"--?[a-z][\w-]*(?:[= ][^\n\r\0]*)?", re.IGNORECASE)
_MIB = 2**20
_END = "END_OF_PLAN"
_STEP = (
    "trap 'scancel --signal=TERM \"$SLURM_JOB_ID\"' TERM; "
    '"$0" "$@" & step=$!; wait "$step"; code=$?; '
    'while kill -0 "$step" 2>/dev/null; do wait "$step"; code=$?; done; exit "$code"'
)
"""Starts a step and forwards the signal to end to its tasks on all nodes: srun itself would kill them at once."""
_MEETING = (
    "--rdzv-backend=c10d",
    '--rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"',
    '--rdzv-id="$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"',
)


@dataclass(frozen=True)
class SlurmOptions:
    """Slurm options of the user besides what the plan needs."""

    account: str = ""
    qos: str = ""
    more: tuple[str, ...] = ()  # further options of sbatch, as they are typed

    def __post_init__(self) -> None:
        """Refuse what would read as something else in a script."""
        for name, value in (("account", self.account), ("qos", self.qos)):
            if value and not _PLAIN.fullmatch(value):
                raise QueueError(f"--{name} {value!r}: no such name", hint="letters, digits and . _ - @ + : / make one")
        for option in self.more:
            if not _OPTION.fullmatch(option):
                raise QueueError(f"{option!r} is no option of sbatch", hint="write one as in --option=--constraint=ib")


def batch_script(
    request: JobRequest,
    launch: Launch,
    options: SlurmOptions,
    plan_text: str,
    partition: str = "",
    gpu_type: str = "",
    most_seconds: float | None = None,
) -> str:
    """Return the script.

    Args:
        plan_text: the plan as YAML, for the guard.
        partition: where it goes; the cluster's default one where empty.
        gpu_type: of the partition's GPUs, in its own word; empty where they have none.
        most_seconds: that a job may run there.
    """
    tasks = request.per_node if launch.is_per_device else 1
    limit, grace = request.limit_seconds, GRACE_SECONDS
    if limit is not None:
        limit = limit if most_seconds is None else min(limit, most_seconds)
        grace = min(grace, int(limit / 2))
    meeting = ["--standalone"] if request.nodes == 1 else [f"--nnodes={request.nodes}", *_MEETING]
    step = f"bash -c {shlex.quote(_STEP)} srun --kill-on-bad-exit=1 {launch.torchrun(request, meeting)}"
    values = {
        "request": request,
        "launch": launch,
        "options": options,
        "partition": partition,
        "gpu_type": gpu_type,
        "tasks": tasks,
        "processors": -(-(request.processors_per_node or 0) // tasks),
        "memory_mib": -(-int(request.memory_per_node_bytes or 0) // _MIB),
        "limit": "" if limit is None else duration_of(limit),
        "grace": grace,
        "program": PROGRAM,
        "plan_text": plan_text.rstrip("\n"),
        "end": unused_end(plan_text),
        "command": launch.guarded(step),
        "most_turns": request.turns(most_seconds) - 1 + request.most_restarts,
    }
    return template("batch.sh.jinja").render(values) + "\n"


def unused_end(text: str) -> str:
    """Return a word that no line of a text is, to end the text with."""
    end, lines = _END, set(text.splitlines())
    while end in lines:
        end += "_"
    return end


_SEPARATOR = "\x1f"
_QUEUE_FORMAT = _SEPARATOR.join(("%A", "%T", "%P", "%D", "%N", "%M", "%l", "%V", "%S", "%r", "%b", "%j"))
_FIELDS = (
    *("JobIDRaw", "State", "Partition", "NNodes", "NodeList", "ElapsedRaw", "TimelimitRaw"),
    *("Submit", "Start", "End", "ConsumedEnergyRaw", "AllocTRES", "ExitCode", "JobName"),
)
_AGAIN = ("PREEMPTED", "REQUEUED", "NODE_FAIL")
_MINUTE = 60.0
_UNKNOWN_ENERGY = 2**63


def queued_jobs(jobs: Sequence[str] = (), *, everyone: bool = False) -> tuple[QueuedJob, ...]:
    """Return jobs in the queue: those that are named, those of everyone, or else the user's own."""
    selection = ["--jobs", ",".join(jobs)] if jobs else [] if everyone else ["--me"]
    words = ("squeue", "--noheader", "--states=all", *selection, "--format", _QUEUE_FORMAT)
    if not jobs:
        return tuple(_queued(slurm_text(*words)))
    answer = slurm_answer(*words)  # a job that has left the queue long ago is an error of squeue
    return tuple(_queued(answer.stdout))


def accounted_jobs(jobs: Sequence[str] = (), since: str = "now-7days") -> tuple[tuple[QueuedJob, ...], str]:
    """Return jobs that accounting remembers, one for all turns of each, and why there are none if nothing accounts."""
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
    return tuple(sorted(jobs.values(), key=lambda job: int(job.id) if job.id.isdigit() else 0, reverse=True))


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
        exit_code=int(values["ExitCode"].partition(":")[0] or 0) if state in (*ENDED, *_AGAIN) else None,
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


class SlurmQueue:
    """The queue of the Slurm that this machine's commands talk to, with its accounting where it has one."""

    @property
    def no_power(self) -> str:
        return "no node measures it: AcctGatherEnergyType in slurm.conf"

    def cluster(self) -> str:
        for line in slurm_text("scontrol", "show", "config").splitlines():
            key, equals, value = line.partition("=")
            if equals and key.strip() == "ClusterName":
                return value.strip()
        return "slurm"

    def check(self, job: str) -> None:
        """Refuse what is no number."""
        if not job.isdigit():
            raise PlanError(f"{job}: no number of a job", hint="jobs have numbers, such as 4711")

    def submit(self, script: str) -> tuple[str, str]:
        """Submit a batch script; a number is used once."""
        job = slurm_text("sbatch", "--parsable", standard_input=script).strip().partition(";")[0]
        if not job.isdigit():
            raise QueueError("sbatch returned no job id", job)
        return job, ""

    def jobs(
        self, names: Sequence[str], *, everyone: bool, since: str
    ) -> tuple[tuple[QueuedJob, ...], tuple[str, ...]]:
        """Return jobs of queue and accounting, the newest first."""
        queued = queued_jobs(names, everyone=everyone)
        accounted, why = accounted_jobs(names, since)
        return merged(queued, accounted), (why,) if why else ()

    def job_now(self, job: str) -> QueuedJob | None:
        queued = queued_jobs([job])
        accounted, _ = accounted_jobs([job]) if not queued or queued[0].is_over else ((), "")
        return next((known for known in merged(queued, accounted) if known.id == job), None)

    def watts(self, jobs: Sequence[QueuedJob]) -> Mapping[str, float]:
        """Return what nodes draw that Slurm measures."""
        running = [job for job in jobs if job.state in RUNNING and job.on_nodes]
        if not running:
            return {}
        drawn = {node.name: node.watts for node in slurm_nodes() if node.watts is not None}
        readings = {job.id: [drawn.get(name) for name in names_of(job.on_nodes)] for job in running}
        return {
            job: sum(map(float, filter(None, all_of)))
            for job, all_of in readings.items()
            if all_of and None not in all_of
        }

    def end(self, job: str) -> None:
        """Cancel a job; Slurm signals its processes first."""
        slurm_text("scancel", job)

    def ending(self, job: str) -> str:
        return f"scancel {job}"

    def output(self, write: Callable[[str], None]) -> AbstractContextManager[Callable[[QueuedJob], None]]:
        """Return nothing that writes: what a job prints is a file on a disk of its nodes."""
        del write
        return nullcontext(lambda _: None)
