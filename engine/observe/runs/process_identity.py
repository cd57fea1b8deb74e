"""Which process is meant: numbers are given again, and the same number is another process elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

_PROCESSES = Path("/proc")
_BOOT = _PROCESSES / "sys/kernel/random/boot_id"
_NUMBERS = _PROCESSES / "self/ns/pid"
_STATE, _STARTED = 0, 19
"""Places of a process's state and of its start in ``/proc/PID/stat``, behind its name."""
_ENDED = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, and no other that has its number before, after or elsewhere.

    Attributes:
        started: when it started, as its system reports it.
        place: machine, start of that machine and container within which the number holds.
    """

    pid: int
    started: str
    place: str

    @property
    def lives(self) -> bool | None:
        """Whether it still runs; None where its processes cannot be seen from here."""
        return None if self.place != this_place() else _start_of(self.pid) == self.started


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return which process has a number now; None where there is none, or it is hidden."""
    started = _start_of(pid)
    return None if started is None else ProcessIdentity(pid, started, this_place())


@cache
def this_place() -> str:
    """Return within what the numbers of this machine's processes hold."""
    return " ".join(
        filter(None, (os.uname().nodename, _read_text(_BOOT.read_text), _read_text(lambda: str(_NUMBERS.readlink()))))
    )


def _read_text(read: Callable[[], str]) -> str:
    try:
        return read().strip()
    except OSError:
        return ""


def _start_of(pid: int) -> str | None:
    """Return when a process started, if possible in ticks since its machine did: no change of clocks moves that."""
    try:
        text = (_PROCESSES / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None if _NUMBERS.exists() else _asked_start(pid)
    words = text.rpartition(")")[2].split()
    return None if words[_STATE] in _ENDED else words[_STARTED]


def _asked_start(pid: int) -> str | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except (psutil.Error, OSError):
        return None
