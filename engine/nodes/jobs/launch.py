"""How the processes of a job are started on its nodes: by torchrun, by the queue itself, or by the command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.nodes.jobs.job_request import JobRequest
from capacity_tui.engine.observe.guard import CHECKPOINT, filled_words, values_of
from capacity_tui.engine.plan import Plan, software_id

Launcher: TypeAlias = Literal["torchrun", "queue", "command"]
LAUNCHERS: tuple[Launcher, ...] = get_args(Launcher)
DEFAULT_COMMAND = ("train.py",)
PLAN_FILE = '"$plan"'
"""How a script names the file that it writes the plan to."""
_PYTHON = ("python", "python3")
_MODULE = "-m"
"""Option of Python that torchrun has too; of other options it knows none, or means something else."""
_STARTERS = ("torchrun", "accelerate", "deepspeed", "mpirun", "srun", "ray")
PROGRAM = "capacity-tui"


@dataclass(frozen=True)
class Launch:
    """What runs, and what starts its processes.

    Attributes:
        words: the command, with placeholders where it is guarded.
        launcher: ``torchrun`` starts the processes of each node, ``queue`` each process, ``command`` its own.
        is_guarded: whether a guard answers trouble as the plan says.
        is_given: whether somebody named the command; else it stands for one.
        left_out: words of the command that only a guard can fill.
    """

    words: tuple[str, ...]
    launcher: Launcher
    is_guarded: bool = True
    checkpoints: Path | None = None
    is_given: bool = True
    left_out: tuple[str, ...] = ()

    @property
    def is_per_device(self) -> bool:
        """Whether the queue starts a process for each device, not one a node."""
        return self.launcher == "queue"

    def torchrun(self, request: JobRequest, meeting: Sequence[str]) -> str:
        """Return the command as one node runs it, as text of a shell.

        Args:
            meeting: options of torchrun that say where the nodes meet.
        """
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


def launch_of(
    plan: Plan,
    words: Sequence[str],
    catalog: Catalog,
    checkpoints: Path | None = None,
    launcher: Launcher | None = None,
    is_guarded: bool = True,
) -> Launch:
    """Return what runs for a plan.

    Args:
        plan: every default filled in.
        words: the command; nothing for a training script by its usual name.
        launcher: what starts the processes; as the plan's framework and the command want by default.
        is_guarded: whether a guard stands around it.

    Raises:
        PlanError: a placeholder names no field of plans, or one that only a guard can fill.
    """
    chosen = launcher or _launcher(plan, words, catalog)
    given = tuple(words) or DEFAULT_COMMAND
    guardable = is_guarded and plan.task != "infer"
    values = values_of(plan)
    checked = filled_words(given, values if not guardable else {**values, CHECKPOINT: CHECKPOINT, **_FROM_GUARD})
    left_out = () if guardable else tuple(word for word in given if f"{{{CHECKPOINT}}}" in word)
    return Launch(given if guardable else checked, chosen, guardable, checkpoints, bool(words), left_out)


_FROM_GUARD = {"run.id": "run", "run.attempt": "1", "run.folder": "run"}


def _launcher(plan: Plan, words: Sequence[str], catalog: Catalog) -> Launcher:
    if words and Path(words[0]).name in _STARTERS:
        return "command"
    if plan.task not in (None, "train", "finetune"):
        return "command"
    named = plan.training.framework
    row = None if named is None else catalog.frameworks.get(software_id(named, catalog))
    return "torchrun" if row is None else row.launcher


def _script(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command as torchrun takes it: a script or module of Python, or any program behind ``--no-python``."""
    is_python = Path(words[0]).name in _PYTHON and len(words) > 1
    if is_python and (words[1] == _MODULE or not words[1].startswith("-")):
        return tuple(words[1:])
    return tuple(words) if words[0].endswith(".py") else ("--no-python", *words)
