"""Kernel reports while a command is guarded: its log, and out-of-memory kills in the command's control groups."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from capacity_tui.engine.observe.guard.failures import Kernel

_LOG = Path("/dev/kmsg")
_GROUPS = Path("/sys/fs/cgroup")
_LONGEST_RECORD = 1 << 13
_LONGEST_LOG = 1 << 20


class KernelWatch:
    """Remembers the state at its creation, and reports what came since."""

    def __init__(self) -> None:
        self._kills: dict[Path, int] = {}
        self._pids: set[int] = set()
        self._log: int | None = None
        with suppress(OSError):
            self._log = os.open(_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._log, 0, os.SEEK_END)
        self.see([os.getpid()])

    @property
    def pids(self) -> frozenset[int]:
        """Processes that were seen."""
        return frozenset(self._pids)

    def see(self, pids: Iterable[int]) -> None:
        """Take up the control groups of processes; those that were not known count from now on."""
        for pid in set(pids) - self._pids:
            self._pids.add(pid)
            for file in _counters(pid):
                kills = _kills_in(file)
                if kills is not None:
                    self._kills.setdefault(file, kills)

    def report(self) -> Kernel:
        """Return what came since the beginning."""
        now = {file: _kills_in(file) for file in self._kills}
        more = [kills - self._kills[file] for file, kills in now.items() if kills is not None]
        return Kernel(sum(more) if more else None, self._messages())

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def _messages(self) -> str:
        """Return the records of the log since the beginning, as far as this user may read it."""
        records: list[str] = []
        size = 0
        with suppress(OSError):  # no more of them
            while self._log is not None and size < _LONGEST_LOG:
                record = os.read(self._log, _LONGEST_RECORD).decode("utf-8", "replace")
                records.append(record.partition(";")[2])
                size += len(record)
        return "".join(records)


def _counters(pid: int) -> list[Path]:
    """Return the files that count kills in the control groups of a process, for either version of those."""
    files = []
    with suppress(OSError):
        for line in (Path("/proc") / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers:
                files.append(_GROUPS / group.lstrip("/") / "memory.events")
            elif "memory" in controllers.split(","):
                files.append(_GROUPS / "memory" / group.lstrip("/") / "memory.oom_control")
    return files


def _kills_in(file: Path) -> int | None:
    try:
        pairs = dict(line.split() for line in file.read_text(encoding="utf-8").splitlines())
        return int(pairs["oom_kill"])
    except (OSError, ValueError, KeyError):
        return None
