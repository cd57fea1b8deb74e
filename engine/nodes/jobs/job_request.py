"""Jobs and queues: what a plan requests of a queue, a job as it stands in one, and what is asked of every queue."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

from capacity_tui.engine.keys import Figure
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history import Ends

TRAIN_TIME = Figure.ESTIMATED_TRAIN_TIME_SECONDS
START_SECONDS = 600.0
"""Until the first step: imports, rendezvous, reading weights from a shared disk; generous, since a limit that is too
short loses the run and one that is too long only costs a little of its place in the queue."""

GRACE_SECONDS = 300
"""Seconds before the end of a job's time at which it is signalled to save and end; Slurm's limit is 65 535."""

SHORTEST_TURN_SECONDS = START_SECONDS + GRACE_SECONDS  # A turn that is no longer than this gets nothing done for sure
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class JobRequest:
    """The resources that a job requests."""

    name: str
    device: str  # the plan's device, by its id and its name in the catalogue
    is_on_gpus: bool  # whether its processes each need one; else processors do the work
    nodes: int
    per_node: int  # processes, each with a device, on one of them
    # whether nothing of its nodes is left for others; by the nodes of a plan until those of a partition are known
    whole_nodes: bool
    processors_per_node: int | None = None  # at least, where others share the node; None for whatever there is
    memory_per_node_bytes: float | None = None  # host memory at least; None for whatever there is
    predicted: Mapping[str, Ends] = field(default_factory=dict)  # figures of the plan by result key, with their ranges
    limit_seconds: float | None = None  # after which it may be ended; None where the plan's length is open
    checkpoints: Path | None = None  # where it leaves checkpoints and resumes from; None where unknown
    most_restarts: int = 0  # as the plan's ``recovery`` says
    has_price: bool = False  # whether the plan itself says what its hardware costs: an hour's price, or instances

    @property
    def resumes(self) -> bool:
        """Whether a job that was ended resumes where it stopped."""
        return self.checkpoints is not None

    @property
    def devices(self) -> int:
        return self.nodes * self.per_node

    def turns(self, most_seconds: float | None) -> int:
        """Return in how many turns it runs where a job may run so long; each of them starts and saves."""
        if most_seconds is None or self.limit_seconds is None or not self.is_cut(most_seconds):
            return 1
        useful = max(1.0, most_seconds - SHORTEST_TURN_SECONDS)
        return max(2, int(-(-(self.limit_seconds - START_SECONDS) // useful)))

    def is_cut(self, most_seconds: float) -> bool:
        """Return whether it is longer than a job may be."""
        return self.limit_seconds is not None and self.limit_seconds > most_seconds


def safe_name(name: str) -> str:
    """Return a name of a job or file that is safe in shells, queues and folders."""
    return _STRANGE.sub("-", name).strip("-.")[:60] or "capacity"


_DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")
_GPUS = re.compile(r"gpu(?::(?P<kind>[^:(,]+))?:(?P<count>\d+)(?=[(,]|$)")
_CLOCK_PARTS = (1.0, 60.0, 3600.0)
_DAY = 86_400.0


def seconds_of(text: str) -> float | None:
    """Return the seconds of a duration such as ``2-00:00:00``; None for one without end or that is not set."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    parts = [float(part) for part in match["clock"].split(":")]
    if len(parts) == 1 and match["days"] is None:
        return parts[0] * _CLOCK_PARTS[1]
    factors = _CLOCK_PARTS[::-1] if match["days"] else _CLOCK_PARTS[len(parts) - 1 :: -1]
    return float(match["days"] or 0) * _DAY + sum(part * factor for part, factor in zip(parts, factors, strict=False))


def duration_of(seconds: float) -> str:
    """Return seconds as Slurm reads them: days, hours and minutes, rounded up to a minute."""
    minutes = max(1, -(-int(seconds) // 60))
    days, rest = divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    return f"{days}-{hours:02d}:{minutes:02d}:00"


def time_of(text: str) -> str | None:
    """Return a time of Slurm, ISO 8601 in local time; None where unknown."""
    try:
        return datetime.fromisoformat(text.strip()).isoformat()
    except ValueError:
        return None


def gpus_of_gres(text: str) -> dict[str, int]:
    """Return how many GPUs of each type ``gpu:h100:8(S:0-1)`` names; those without a type under an empty one."""
    counts: dict[str, int] = {}
    for match in _GPUS.finditer(text):
        kind = (match["kind"] or "").lower()
        counts[kind] = counts.get(kind, 0) + int(match["count"])
    return counts


JobLauncher: TypeAlias = Literal["torchrun", "queue", "command"]
LAUNCHERS: tuple[JobLauncher, ...] = get_args(JobLauncher)
PLAN_FILE = '"$plan"'  # How a script names the file that it writes the plan to
_PYTHON = ("python", "python3")
_MODULE = "-m"  # Option of Python that torchrun has too; of other options it knows none, or means something else
PROGRAM = "capacity-tui"


@dataclass(frozen=True)
class Launch:
    """What runs, and what starts its processes."""

    words: tuple[str, ...]  # the command, with placeholders where it is guarded
    launcher: JobLauncher  # ``torchrun`` starts the processes of each node, ``queue`` each process, ``command`` its own
    is_guarded: bool = True  # whether a guard answers trouble as the plan says
    checkpoints: Path | None = None
    is_given: bool = True  # whether the command was named; else it is a placeholder
    left_out: tuple[str, ...] = ()  # words of the command that only a guard can fill

    @property
    def is_per_device(self) -> bool:
        """Whether the queue starts a process for each device, not one a node."""
        return self.launcher == "queue"

    def torchrun(self, request: JobRequest, meeting: Sequence[str]) -> str:
        """Return the command as one node runs it, as text of a shell; ``meeting``: where nodes meet, for torchrun."""
        if self.launcher != "torchrun":
            return shlex.join(self.words)
        options = [f"--nproc-per-node={request.per_node}", *meeting]
        return " ".join(("torchrun", *options, shlex.join(_script(self.words))))

    def guarded(self, command: str) -> str:
        """Return a command under guard, as text of a shell; as it is where nothing guards it."""
        if not self.is_guarded:
            return command
        folder = [] if self.checkpoints is None else ["--checkpoints", shlex.quote(str(self.checkpoints))]
        return " ".join((PROGRAM, "guard", PLAN_FILE, *folder, "--", command))


def _script(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command as torchrun takes it: a script or module of Python, or any program behind ``--no-python``."""
    is_python = Path(words[0]).name in _PYTHON and len(words) > 1
    if is_python and (words[1] == _MODULE or not words[1].startswith("-")):
        return tuple(words[1:])
    return tuple(words) if words[0].endswith(".py") else ("--no-python", *words)


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
        """Return what the cluster calls itself; raises CapacityError if it does not answer."""

    def check(self, job: str) -> None:
        """Refuse what cannot be the name of a job; raises PlanError if it cannot."""

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
        """Return a job as it stands; None where it is forgotten; raises CapacityError if the queue does not answer."""

    def watts(self, jobs: Sequence[QueuedJob]) -> Mapping[str, float]:
        """Return what the nodes of jobs draw now, by job; what is not measured is left out."""

    def end(self, job: str) -> None:
        """End a job; its processes are told first; raises CapacityError if the queue does not answer, or refuses."""

    def ending(self, job: str) -> str:
        """Return the command that ends a job."""

    def output(self, write: Callable[[str], None]) -> AbstractContextManager[Callable[[QueuedJob], None]]:
        """Return what is told of a job at every poll, and writes the lines that it prints where those can be read."""
