"""What queues of jobs have in common: a job as it stands in one, and what is asked of every queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from capacity_tui.engine.record import dataclass

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE")
"""States in which a job stays."""
RUNNING = ("RUNNING", "COMPLETING")


@dataclass(frozen=True)
class QueuedJob:
    """A job."""

    id: str
    name: str
    state: str  # Slurm's word, such as ``RUNNING``; those of other queues are put so
    partition: str  # of Slurm; queue or namespace of Kubernetes
    nodes: int
    on_nodes: str = ""  # which, as the queue writes them; empty before it runs
    seconds: float = 0.0  # it ran, over all of its turns
    limit_seconds: float | None = None  # of a turn; None without one
    submitted: str | None = None  # ISO 8601 in local time; None where unknown
    start: str | None = None  # when it began, or is predicted to; None where unknown
    end: str | None = None
    reason: str = ""  # why it waits, in the queue's words; empty otherwise
    gpus: int | None = None  # of all nodes; None where unknown
    turns: int = 1
    energy_joules: float | None = None  # over all turns; None where nothing measures that
    exit_code: int | None = None  # of it; None while it runs
    uid: str = ""  # what tells it from another of the same name; empty where names are never used again
    misses_turns: bool = False  # whether the queue has forgotten some of its turns, and their time
    printed_by: str = ""  # what prints its output now, such as a pod; empty where that is not read

    @property
    def is_over(self) -> bool:
        """Whether it has ended and is not requeued."""
        return self.state in ENDED


class JobQueue(Protocol):
    """A queue of jobs."""

    @property
    def no_power(self) -> str:
        """Why it says nothing of the power of jobs that run."""

    def cluster(self) -> str:
        """Return what the cluster calls itself.

        Raises:
            CapacityError: it does not answer.
        """

    def check(self, job: str) -> None:
        """Refuse what cannot be the name of a job.

        Raises:
            PlanError: it cannot.
        """

    def submit(self, script: str) -> tuple[str, str]:
        """Submit what a proposal wrote; return the job's name and what tells it from others of that name.

        Raises:
            CapacityError: the queue does not answer, or refuses it.
        """

    def jobs(
        self, names: Sequence[str], *, everyone: bool, since: str
    ) -> tuple[tuple[QueuedJob, ...], tuple[str, ...]]:
        """Return what is known of jobs, and what could not be found out.

        Args:
            names: of jobs; all of the user's where empty.
            everyone: whether to include those of others.
            since: how far back those that are over are looked for.

        Raises:
            CapacityError: the queue does not answer.
        """

    def job_now(self, job: str) -> QueuedJob | None:
        """Return a job as it stands; None where it is forgotten.

        Raises:
            CapacityError: the queue does not answer.
        """

    def watts(self, jobs: Sequence[QueuedJob]) -> Mapping[str, float]:
        """Return what the nodes of jobs draw now, by job; what is not measured is left out."""

    def end(self, job: str) -> None:
        """End a job; its processes are told first.

        Raises:
            CapacityError: the queue does not answer, or refuses.
        """

    def ending(self, job: str) -> str:
        """Return the command that ends a job."""

    def output(self, write: Callable[[str], None]) -> AbstractContextManager[Callable[[QueuedJob], None]]:
        """Return what is told of a job at every poll, and writes the lines that it prints where those can be read."""
