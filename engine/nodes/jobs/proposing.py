"""A job of a plan for whatever reaches the nodes: a batch script for Slurm, a script for hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import QueueError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.nodes.jobs import launch as launching
from capacity_tui.engine.nodes.jobs.batch_script import SlurmOptions
from capacity_tui.engine.nodes.jobs.job_request import request_of
from capacity_tui.engine.nodes.jobs.launch import launch_of
from capacity_tui.engine.nodes.jobs.prices import read_prices
from capacity_tui.engine.nodes.jobs.proposal import Proposal, slurm_proposal
from capacity_tui.engine.nodes.jobs.ssh_script import hosts_proposal
from capacity_tui.engine.nodes.launchers.launcher import Launcher
from capacity_tui.engine.nodes.launchers.slurm import Slurm
from capacity_tui.engine.nodes.launchers.ssh import Ssh
from capacity_tui.engine.plan.files import dump_plan


@dataclass(frozen=True)
class JobWish:
    """Settings of a job besides its plan.

    Attributes:
        command: what runs, with placeholders; nothing for a training script by its usual name.
        name: of the job; from model and task where empty.
        limit_seconds: of its time; from the predicted range by default.
        launcher: what starts its processes; as framework and command want by default.
        is_guarded: whether a guard stands around it.
        may_fail: whether a plan that does not fit is taken all the same.
        partitions: of Slurm to look at; all by default.
    """

    command: Sequence[str] = ()
    name: str = ""
    limit_seconds: float | None = None
    checkpoints: Path | None = None
    launcher: launching.Launcher | None = None
    is_guarded: bool = True
    may_fail: bool = False
    partitions: Sequence[str] = ()
    options: SlurmOptions = field(default_factory=SlurmOptions)
    prices: Path | None = None


def propose(answer: Answer, wish: JobWish, nodes: Launcher) -> Proposal:
    """Return the job of an estimated plan; nothing is submitted.

    Args:
        wish: settings of the job besides it.

    Raises:
        CapacityError: the plan does not fit, Slurm does not answer, or something that is named is not there.
    """
    request = request_of(answer, wish.name, wish.limit_seconds, wish.checkpoints, may_fail=wish.may_fail)
    is_guarded = wish.is_guarded and isinstance(nodes, Slurm)
    launch = launch_of(
        answer.plan, wish.command, load_catalog(), wish.checkpoints, wish.launcher, is_guarded=is_guarded
    )
    if isinstance(nodes, Ssh):
        return hosts_proposal(request, launch, nodes.hosts)
    if not isinstance(nodes, Slurm):
        raise QueueError(f"no jobs are written for {nodes.name}", hint="name --slurm, or --hosts FILE")
    text = dump_plan(answer.plan)
    return slurm_proposal(request, launch, wish.options, text, wish.partitions, read_prices(wish.prices))
