"""All that is known of jobs: queue, accounting, what their nodes draw, and what was predicted of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capacity_tui.engine.nodes.jobs.kept_jobs import KeptJob, cluster_name, kept_jobs, newly_ended
from capacity_tui.engine.nodes.jobs.queue import QueuedJob, accounted_jobs, merged, queued_jobs
from capacity_tui.engine.nodes.launchers.slurm import names_of, slurm_nodes
from capacity_tui.engine.observe.history import RunRecord

_RUNNING = ("RUNNING", "COMPLETING")


@dataclass(frozen=True)
class KnownJobs:
    """Jobs.

    Attributes:
        jobs: the newest first.
        kept: what was predicted of those that were submitted from here, by number.
        watts: drawn now by the nodes of those that run, by number; what is not measured is left out.
        newly_ended: new history entries with their jobs.
    """

    jobs: tuple[QueuedJob, ...]
    kept: Mapping[str, KeptJob]
    watts: Mapping[str, float]
    notes: tuple[str, ...]
    newly_ended: tuple[tuple[KeptJob, RunRecord], ...]


def known_jobs(numbers: Sequence[str] = (), *, everyone: bool = False, since: str = "now-7days") -> KnownJobs:
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
    kept = kept_jobs(cluster_name())
    watts = _watts(jobs)
    notes = [why] if why else []
    if not watts and any(job.state in _RUNNING for job in jobs):
        notes.append("power: n/a (no node measures it: AcctGatherEnergyType in slurm.conf)")
    return KnownJobs(jobs, kept, watts, tuple(notes), tuple(newly_ended(jobs, kept)))


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
