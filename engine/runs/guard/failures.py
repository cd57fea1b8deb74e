"""Why a run ended: out of memory, a device lost, a loss that is not a number, hung ranks; the signs are data."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.rows import FailureKind, FailureSign, compiled
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.command import BY_SIGNAL

Trouble: TypeAlias = FailureKind | Literal["memory_pressure"]
"""What a step is taken against: a failure, or memory of which a trainer says that it is nearly full."""

LONGEST_TAIL = 64 * 1024  # Characters of a run's last output that are searched
_LONGEST_EVIDENCE = 300
_ALARM_TROUBLES: Mapping[str, Trouble] = {"not_finite": "unstable", "divergence": "unstable", "stall": "hang"}


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the kernel reports of the time of a run."""

    # processes of the run's control group that were killed for memory; None where that cannot be read
    oom_kills: int | None = None
    messages: str = ""  # its log of that time; empty where it cannot be read


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run ended, or is about to."""

    kind: Trouble
    name: str
    where: str = ""  # which memory ran out, device or host; empty for other trouble
    evidence: str = ""  # the line or the number that says so
    device: int | None = None  # number of the device it is about; None where unknown


def failure_of(
    exit_code: int | None, output: str = "", kernel: Kernel | None = None, pids: Collection[int] = ()
) -> Failure | None:
    """Return why a run ended; None for one that ended well, or for a reason nothing is known about.

    Args:
        exit_code: how it ended; 128 and more is the number of a signal. None where nothing is known.
        pids: its processes: what the kernel says of others does not count. Empty where they are not known.
    """
    if exit_code == 0:
        return None
    kernel_report = kernel or Kernel()
    signs = load_catalog().failures.values()
    failures = (
        _in_kernel(row, kernel_report, pids)
        or _in_output(row, output)
        or _by_signal(row, _signal_of(exit_code), kernel_report)
        for row in signs
    )
    return next((failure for failure in failures if failure is not None), None)


def failure_of_alarm(kind: str, name: str, where: str, detail: str) -> Failure | None:
    """Return the failure that an alarm of a running job stands for; None for one that calls for no step."""
    trouble = _ALARM_TROUBLES.get(kind)
    if trouble is None:
        return None
    device = re.fullmatch(r"GPU (\d+)", where)
    return Failure(trouble, name, evidence=detail, device=int(device[1]) if device else None)


def _signal_of(exit_code: int | None) -> int | None:
    """Return the signal in an exit code, as shells write it or as Python does."""
    if exit_code is None:
        return None
    return exit_code - BY_SIGNAL if exit_code > BY_SIGNAL else -exit_code if exit_code < 0 else None


def _in_kernel(row: FailureSign, kernel: Kernel, pids: Collection[int]) -> Failure | None:
    for match in _matches(row.kernel, kernel.messages):
        groups = match.groupdict()
        is_foreign = pids and groups.get("pid") is not None and int(groups["pid"]) not in pids
        harmless = row.xids and int(groups["xid"]) not in row.xids
        if not is_foreign and not harmless:
            return _failure(row, _line_of(match))
    return None


def _in_output(row: FailureSign, output: str) -> Failure | None:
    match = next(_matches(row.output, output[-LONGEST_TAIL:]), None)
    if match is None:
        return None
    device = match.groupdict().get("device")
    return _failure(row, _line_of(match), None if device is None else int(device))


def _by_signal(row: FailureSign, signal: int | None, kernel: Kernel) -> Failure | None:
    """A signal is of memory where the kernel counted a kill, or its counters cannot be read: users send signals too."""
    if signal not in row.signals or (row.kind == "out_of_memory" and kernel.oom_kills == 0):
        return None
    if row.kind == "killed":
        return _failure(row, f"ended by signal {signal}")
    counted = "" if kernel.oom_kills is None else f", {kernel.oom_kills} killed for memory in its control group"
    return _failure(row, f"ended by signal {signal}{counted}")


def _matches(expressions: tuple[str, ...], text: str) -> Iterator[re.Match[str]]:
    for expression in compiled(expressions):
        yield from expression.finditer(text)


def _line_of(match: re.Match[str]) -> str:
    """Return the line that matched, or its part around that where it is long."""
    text, start = match.string, match.start()
    first = max(text.rfind("\n", 0, start) + 1, start - _LONGEST_EVIDENCE // 2)
    end = text.find("\n", start)
    return text[first : len(text) if end < 0 else end][:_LONGEST_EVIDENCE].strip()


def _failure(row: FailureSign, evidence: str, device: int | None = None) -> Failure:
    return Failure(row.kind, row.name, row.where or "", evidence, device)


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
