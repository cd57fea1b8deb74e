"""Jobs that were submitted from here: what was predicted of each, until it is known how it went."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from capacity_tui.engine.errors import CapacityError, QueueError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.files import make_folder, state_folder, write_atomically
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.nodes.jobs.job_request import TRAIN_TIME, safe_name
from capacity_tui.engine.nodes.jobs.proposal import JobProposal, chosen_or_refused
from capacity_tui.engine.nodes.jobs.slurm_jobs import QueuedJob, accounted_jobs, merged, queued_jobs
from capacity_tui.engine.nodes.slurm import names_of, slurm_nodes, slurm_text
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history import RunRecord, as_data, history_entry, of_data
from capacity_tui.engine.units import HOUR_SECONDS

_JOULES_PER_KWH = 3.6e6

_DONE = "COMPLETED"


@dataclass(frozen=True)
class SubmittedJob:
    """A job that was submitted from here.

    Attributes:
        cluster: that has it, by the name it gives itself.
        entry: what was predicted, as stored in the history.
        usd_per_hour: of its nodes; None where unknown.
        is_reported: whether the history has how it went.
    """

    cluster: str
    job: str
    entry: RunRecord
    usd_per_hour: float | None = None
    is_reported: bool = False

    @property
    def file(self) -> Path:
        """Its file."""
        return _folder() / f"{safe_name(self.cluster)}-{safe_name(self.job)}.json"

    def write(self) -> None:
        """Keep it.

        Raises:
            StorageError: it cannot be written.
        """
        make_folder(_folder())
        data = {
            "cluster": self.cluster,
            "job": self.job,
            "entry": as_data(self.entry),
            "usd_per_hour": self.usd_per_hour,
            "told": self.is_reported,
        }
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
        """Return what was measured, by result key; nothing of a job that did not come to its end."""
        if job.state != _DONE:
            return {}
        figures: dict[str, float] = {TRAIN_TIME: job.seconds}
        if job.energy_joules is not None:
            figures[Figure.ENERGY_KWH] = job.energy_joules / _JOULES_PER_KWH
        if self.usd_per_hour is not None:
            figures[Figure.COST_USD] = self.usd_per_hour * job.seconds / HOUR_SECONDS
        return figures


def cluster_name() -> str:
    """Return what a Slurm calls itself.

    Raises:
        CapacityError: it is not here, or does not answer.
    """
    for line in slurm_text("scontrol", "show", "config").splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip() == "ClusterName":
            return value.strip()
    return "slurm"


def store_job(proposal: JobProposal, answer: Answer, cluster: str) -> SubmittedJob:
    """Keep what is predicted of a job that was submitted.

    Raises:
        StorageError: it cannot be written.
    """
    chosen = proposal.chosen
    entry = history_entry(answer, "run", details={"command": list(proposal.launch.words)})
    job = SubmittedJob(cluster, proposal.job, entry, None if chosen is None else chosen.cost.usd_per_hour)
    job.write()
    return job


def stored_jobs(cluster: str) -> dict[str, SubmittedJob]:
    """Return the jobs of a cluster that were submitted from here, by number; what cannot be read is left out."""
    return {kept.job: kept for kept in _read() if kept.cluster == cluster}


def newly_ended(jobs: Iterable[QueuedJob], kept: Mapping[str, SubmittedJob]) -> list[tuple[SubmittedJob, RunRecord]]:
    """Return the new history entries of jobs that have ended, with their jobs."""
    ended = []
    for job in jobs:
        submitted = kept.get(job.id)
        if submitted is not None and job.is_over and not submitted.is_reported:
            ended.append((submitted, submitted.measured(job)))
    return ended


def _read() -> Iterator[SubmittedJob]:
    folder = _folder()
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            data = cast("Mapping[str, object]", json.loads(file.read_text(encoding="utf-8")))
            price = data.get("usd_per_hour")
            yield SubmittedJob(
                cluster=str(data["cluster"]),
                job=str(data["job"]),
                entry=of_data(data["entry"]),
                usd_per_hour=float(price) if isinstance(price, int | float) else None,
                is_reported=bool(data.get("told")),
            )
        except (OSError, ValueError, TypeError, KeyError, CapacityError):
            continue


def _folder() -> Path:
    return state_folder() / "jobs"


_RUNNING = ("RUNNING", "COMPLETING")


@dataclass(frozen=True)
class JobList:
    """Jobs.

    Attributes:
        kept: what was predicted of those that were submitted from here, by number.
        watts: drawn now by the nodes of those that run, by number; what is not measured is left out.
        newly_ended: new history entries with their jobs.
    """

    jobs: tuple[QueuedJob, ...]
    kept: Mapping[str, SubmittedJob]
    watts: Mapping[str, float]
    notes: tuple[str, ...]
    newly_ended: tuple[tuple[SubmittedJob, RunRecord], ...]


def list_jobs(numbers: Sequence[str] = (), *, everyone: bool = False, since: str = "now-7days") -> JobList:
    """Return what is known of jobs.

    Args:
        numbers: of jobs; all of the user's by default.
        everyone: whether to include those of others.
        since: how far back accounting is read, as sacct reads times.

    Raises:
        CapacityError: Slurm is not here, or does not answer.
    """
    queued = queued_jobs(numbers, everyone=everyone)
    accounted, why = accounted_jobs(numbers, since)
    jobs = merged(queued, accounted)
    submitted = stored_jobs(cluster_name())
    watts = _watts(jobs)
    notes = [why] if why else []
    if not watts and any(job.state in _RUNNING for job in jobs):
        notes.append("power: n/a (no node measures it: AcctGatherEnergyType in slurm.conf)")
    return JobList(jobs, submitted, watts, tuple(notes), tuple(newly_ended(jobs, submitted)))


def _watts(jobs: Sequence[QueuedJob]) -> dict[str, float]:
    """Return what the nodes of jobs that run draw now."""
    running = [job for job in jobs if job.state in _RUNNING and job.on_nodes]
    if not running:
        return {}
    drawn = {node.name: node.watts for node in slurm_nodes() if node.watts is not None}
    readings = {job.id: [drawn.get(name) for name in names_of(job.on_nodes)] for job in running}
    return {
        job: sum(map(float, filter(None, all_of))) for job, all_of in readings.items() if all_of and None not in all_of
    }


FOLLOW_SECONDS = 5.0
"""Seconds between two polls of a job; a controller serves many users."""

_SHORTEST_WAIT = 0.1


def submit_job(proposal: JobProposal, answer: Answer) -> JobProposal:
    """Submit a job to the partition that is chosen, and keep what is predicted of it.

    Raises:
        QueueError: no partition can take it, or Slurm refuses it.
        StorageError: what is predicted cannot be kept; the job is submitted.
    """
    if proposal.engine == "hosts":
        raise QueueError("nothing queues jobs on hosts", hint="write the script with -o FILE, and run it")
    chosen = chosen_or_refused(proposal)
    cluster = cluster_name()
    job = slurm_text("sbatch", "--parsable", standard_input=chosen.script).strip().partition(";")[0]
    if not job.isdigit():
        raise QueueError("sbatch tells no number of the job", job)
    submitted = proposal.submitted_as(job)
    store_job(submitted, answer, cluster)
    return submitted


def job_now(job: str) -> QueuedJob | None:
    """Return a job from queue and accounting; None where neither knows it.

    Raises:
        CapacityError: Slurm is not here, or does not answer.
    """
    queued = queued_jobs([job])
    accounted, _ = accounted_jobs([job]) if not queued or queued[0].is_over else ((), "")
    return next((known for known in merged(queued, accounted) if known.id == job), None)


def follow_job(job: str, stopped: Callable[[], bool], seconds: float = FOLLOW_SECONDS) -> Iterator[QueuedJob]:
    """Yield a job at every poll until it is over or forgotten.

    Args:
        stopped: whether to stop watching; the job continues.

    Raises:
        CapacityError: Slurm does not answer.
    """
    while (state := job_now(job)) is not None:
        yield state
        if state.is_over:
            return
        next_look = time.monotonic() + seconds
        while time.monotonic() < next_look:
            if stopped():
                return
            time.sleep(min(_SHORTEST_WAIT, seconds))
