"""Jobs that were submitted from here: what was predicted of each, until it is known how it went."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.files import make_folder, state_folder, write_atomically
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.nodes.jobs.job_request import TRAIN_TIME, safe_name
from capacity_tui.engine.nodes.jobs.proposal import Proposal
from capacity_tui.engine.nodes.jobs.queue import QueuedJob
from capacity_tui.engine.nodes.launchers.slurm import slurm_text
from capacity_tui.engine.observe.history import RunRecord, as_data, history_entry, of_data
from capacity_tui.engine.units import HOUR_SECONDS

_JOULES_PER_KWH = 3.6e6
_DONE = "COMPLETED"


@dataclass(frozen=True)
class KeptJob:
    """A job that was submitted from here.

    Attributes:
        cluster: that has it, by the name it gives itself.
        entry: what was predicted, as it stands in the history.
        usd_per_hour: of its nodes; None where nobody says.
        is_reported: whether the history has how it went.
    """

    cluster: str
    job: str
    entry: RunRecord
    usd_per_hour: float | None = None
    is_reported: bool = False

    @property
    def file(self) -> Path:
        """Where it is kept."""
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
            "id": job.id, "cluster": self.cluster, "state": job.state, "partition": job.partition,
            "nodes": job.on_nodes, "turns": job.turns, "seconds": job.seconds,
        }  # fmt: skip
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


def keep_job(proposal: Proposal, answer: Answer, cluster: str) -> KeptJob:
    """Keep what is predicted of a job that was submitted.

    Raises:
        StorageError: it cannot be written.
    """
    chosen = proposal.chosen
    entry = history_entry(answer, "run", details={"command": list(proposal.launch.words)})
    kept = KeptJob(cluster, proposal.job, entry, None if chosen is None else chosen.cost.usd_per_hour)
    kept.write()
    return kept


def kept_jobs(cluster: str) -> dict[str, KeptJob]:
    """Return the jobs of a cluster that were submitted from here, by number; what cannot be read is left out."""
    return {kept.job: kept for kept in _read() if kept.cluster == cluster}


def newly_ended(jobs: Iterable[QueuedJob], kept: Mapping[str, KeptJob]) -> list[tuple[KeptJob, RunRecord]]:
    """Return the new history entries of jobs that have ended, with their jobs."""
    ended = []
    for job in jobs:
        mine = kept.get(job.id)
        if mine is not None and job.is_over and not mine.is_reported:
            ended.append((mine, mine.measured(job)))
    return ended


def _read() -> Iterator[KeptJob]:
    folder = _folder()
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            data = cast("Mapping[str, object]", json.loads(file.read_text(encoding="utf-8")))
            price = data.get("usd_per_hour")
            yield KeptJob(
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
