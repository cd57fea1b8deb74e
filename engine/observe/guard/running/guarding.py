"""Begins to guard a run, or takes up one whose guard is gone."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from capacity_tui.engine.choose import answer
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.files import make_folder, storage_error
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.observe.command import CommandNotFoundError
from capacity_tui.engine.observe.guard.placeholders import CHECKPOINT
from capacity_tui.engine.observe.guard.running.order import Order, read_order
from capacity_tui.engine.observe.guard.running.starting import start_of
from capacity_tui.engine.observe.guard.running.supervisor import Supervisor
from capacity_tui.engine.observe.guard.running.told import Listeners
from capacity_tui.engine.observe.history.predictions import history_entry
from capacity_tui.engine.observe.runs.live_run import LiveRun, list_runs
from capacity_tui.engine.observe.runs.run_writer import RunWriter
from capacity_tui.engine.plan import Plan

_LOCK = "guard.lock"
_COMMAND = "guard"


class GuardError(CapacityError):
    """A run that cannot be guarded."""


def new_order(
    words: Sequence[str],
    plan: Plan,
    files: Sequence[str] = (),
    checkpoints: Path | None = None,
    log: str = "",
) -> Order:
    """Return an order of what is to run here.

    Args:
        words: the command with its placeholders.
        plan: every default filled in.
        files: of which the command gets copies with values in the place of placeholders.
        checkpoints: folder of its checkpoints; None where nothing is known of them.
        log: where it writes its log besides its output.

    Raises:
        GuardError: the command asks for a checkpoint, but nobody says where they are.
    """
    if checkpoints is None and any(f"{{{CHECKPOINT}}}" in word for word in words):
        raise GuardError(
            f"the command has {{{CHECKPOINT}}}", "where checkpoints are is not said", "add --checkpoints DIR"
        )
    work = Path.cwd()
    log_path = str(work / log) if log and "://" not in log else log
    return Order(tuple(words), plan, tuple(files), checkpoints and work / checkpoints, log_path, work)


def begin(order: Order, estimated: Answer, listeners: Listeners, machine: Machine | None = None) -> Supervisor:
    """Return what guards a new run.

    Args:
        machine: this machine, for plans that run on it.

    Raises:
        CapacityError: its folder cannot be made, or a placeholder cannot be filled.
    """
    if shutil.which(order.words[0], path=os.environ.get("PATH")) is None:
        raise CommandNotFoundError(
            f"{order.words[0]} cannot be started", hint="check its name and that it may be executed"
        )
    record = history_entry(estimated, "run", details={"command": list(order.words)})
    start_of(order, Path(), record.id, None)
    writer = RunWriter(record, _COMMAND, log=order.log)
    make_folder(writer.run.folder)
    _alone(writer.run.folder)
    order.write(writer.run.folder)
    return Supervisor(order, estimated, writer, listeners, machine)


def take_up(name: str, listeners: Listeners, detect: Callable[[], Machine]) -> Supervisor:
    """Return a supervisor that continues to guard a run.

    Args:
        detect: finds out about this machine, for plans that run on it.

    Raises:
        CapacityError: there is none of this name, it has ended, or it is guarded.
    """
    run = _run_of(name)
    order = read_order(run.folder)
    _alone(run.folder)
    machine = detect() if order.plan.hardware.name == "detected" else None
    estimated = answer(order.plan, machine)
    pid = None if run.process is None or not run.process.lives else run.process.pid
    writer = RunWriter(run.record, _COMMAND, pid, run.log)
    return Supervisor(order, estimated, writer, listeners, machine)


def _run_of(name: str) -> LiveRun:
    known = [run for run in list_runs() if run.by == _COMMAND and not run.ended]
    matches = [run for run in known if run.id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(run.id for run in known[:5])
    what = "several runs are called so" if matches else "no run that is not over is called so"
    raise GuardError(what, name, f"there are: {listed}" if listed else "history list shows what is past")


def _alone(folder: Path) -> None:
    """Make sure that no other guard has the run, until this process ends.

    Raises:
        CapacityError: another has it.
    """
    path = folder / _LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise GuardError("the run is guarded already", folder.name, "look at it: capacity-tui monitor") from None
    except OSError as error:
        raise storage_error(error, path, "cannot be locked") from None
