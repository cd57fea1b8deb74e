"""Submits a job to Slurm, and follows it to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from capacity_tui.engine.errors import QueueError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.nodes.jobs.kept_jobs import cluster_name, keep_job
from capacity_tui.engine.nodes.jobs.proposal import Proposal, chosen_or_refused
from capacity_tui.engine.nodes.jobs.queue import QueuedJob, accounted_jobs, merged, queued_jobs
from capacity_tui.engine.nodes.launchers.slurm import slurm_text

FOLLOW_SECONDS = 5.0
"""Between two looks at a job; a controller has many to answer."""
_SHORTEST_WAIT = 0.1


def submit(proposal: Proposal, answer: Answer) -> Proposal:
    """Submit a job to the partition that is chosen, and keep what is predicted of it.

    Raises:
        QueueError: no partition can take it, or Slurm refuses it.
        StorageError: what is predicted cannot be kept; the job is submitted.
    """
    if proposal.engine == "hosts":
        raise QueueError("nothing queues jobs on hosts", hint="write the script with -o FILE, and run it")
    chosen = chosen_or_refused(proposal)
    cluster = cluster_name()
    job = slurm_text("sbatch", "--parsable", given=chosen.script).strip().partition(";")[0]
    if not job.isdigit():
        raise QueueError("sbatch tells no number of the job", job)
    submitted = proposal.submitted_as(job)
    keep_job(submitted, answer, cluster)
    return submitted


def job_now(job: str) -> QueuedJob | None:
    """Return a job from queue and accounting; None where neither knows it.

    Raises:
        CapacityError: Slurm is not here, or does not answer.
    """
    queued = queued_jobs([job])
    accounted, _ = accounted_jobs([job]) if not queued or queued[0].is_over else ((), "")
    return next((known for known in merged(queued, accounted) if known.id == job), None)


def followed(job: str, stopped: Callable[[], bool], seconds: float = FOLLOW_SECONDS) -> Iterator[QueuedJob]:
    """Yield a job at every look until it is over, or nothing knows it any more.

    Args:
        stopped: whether to stop watching; the job continues.
        seconds: between two looks.

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
