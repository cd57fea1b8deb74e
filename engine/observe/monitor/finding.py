"""Where a running process writes its log, and where it works."""

from __future__ import annotations

import stat
from pathlib import Path

import psutil

from capacity_tui.engine.errors import CapacityError


class NoProcessError(CapacityError):
    """A process that is not there."""


def need_process(pid: int) -> None:
    """Do nothing for a process that runs.

    Raises:
        NoProcessError: there is none of this number.
    """
    if pid < 1 or not psutil.pid_exists(pid):
        raise NoProcessError(f"no process has the number {pid}", hint="ps -e lists those that run")


def output_file(pid: int) -> Path | None:
    """Return the file that a process writes its output or its errors to; None where that is no file, or hidden."""
    for stream in (1, 2):
        link = Path(f"/proc/{pid}/fd/{stream}")
        try:
            target = link.readlink()
            if stat.S_ISREG(link.stat().st_mode) and target.is_file():
                return target
        except OSError:
            continue
    return None


def work_folder(pid: int) -> Path | None:
    """Return the folder that a process works in; None where that is hidden."""
    try:
        return Path(psutil.Process(pid).cwd())
    except (psutil.Error, OSError):
        return None
