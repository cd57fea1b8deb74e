"""Live and recent runs: a folder each, which any process of the user can read.

``run.json`` says what runs and who watches it; ``events.jsonl`` has a line for each sample and each event.
"""

from __future__ import annotations

import json
import platform
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

import psutil

from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.files import state_folder
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.runs.history.records import RunRecord, as_data

_PROFILES = "capacity_tui.profiles"
_PROCESSES = Path("/proc")
_BOOT = _PROCESSES / "sys/kernel/random/boot_id"
_NUMBERS = _PROCESSES / "self/ns/pid"
_STATE, _STARTED = 0, 19  # Places of a process's state and of its start in ``/proc/PID/stat``, behind its name
_ENDED = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, and no other that has its number before, after or elsewhere."""

    pid: int
    started: str  # when it started, as its system reports it
    place: str  # machine, start of that machine and container within which the number holds

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
        filter(None, (platform.node(), _read_text(_BOOT.read_text), _read_text(lambda: str(_NUMBERS.readlink()))))
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
        return None if _NUMBERS.exists() else _start_by_ps(pid)
    words = text.rpartition(")")[2].split()
    return None if words[_STATE] in _ENDED else words[_STARTED]


def _start_by_ps(pid: int) -> str | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except (psutil.Error, OSError):
        return None


ABOUT, EVENTS = "run.json", "events.jsonl"
LOOKS = ("state", "sample")  # Events that come again and again, with all there is to see
MOST_ENDED = 30  # Runs that are kept after their end; the history keeps their results
QUIET_SECONDS = 120.0  # A run elsewhere of which nothing was written for so long has ended, or is unwatched


@dataclass(frozen=True)
class LiveRun:
    """A run as recorded in its folder."""

    folder: Path
    # plan, machine and prediction; once it has ended, also its result. The history has it by this id.
    record: RunRecord
    by: str  # the command that watches it: ``monitor``, ``profile`` or ``guard``
    process: ProcessIdentity | None  # its first process; None where only its log is watched
    watcher: ProcessIdentity | None  # the process that writes the folder
    log: str = ""  # where it writes its log; empty where that is not known
    ended: str = ""  # time at which it was seen to end, UTC, ISO 8601; empty as long as it was not
    exit_code: int | None = None  # how its command ended; None where unknown

    @property
    def id(self) -> str:
        """What it is called."""
        return self.folder.name

    @property
    def goes_on(self) -> bool:
        """Whether it runs; of one elsewhere, or of a log alone, whether its watcher still writes."""
        if self.ended:
            return False
        lives = None if self.process is None else self.process.lives
        return self.is_watched if lives is None else lives

    @property
    def is_watched(self) -> bool:
        """Whether a process writes its events."""
        if self.ended:
            return False
        lives = None if self.watcher is None else self.watcher.lives
        return self._is_fresh() if lives is None else lives

    @property
    def command(self) -> tuple[str, ...]:
        """What runs; empty where this program did not start it."""
        words = self.record.details.get("command", ())
        return tuple(map(str, words)) if isinstance(words, list | tuple) else ()

    def data(self) -> dict[str, object]:
        """Return the content of its file."""
        data = asdict(self)
        del data["folder"]
        return {**data, "record": as_data(self.record)}

    def _is_fresh(self) -> bool:
        with suppress(OSError):
            # A time that is to come is one of a clock that was set back since.
            return abs(time.time() - (self.folder / EVENTS).stat().st_mtime) < QUIET_SECONDS
        return False


def runs_folder() -> Path:
    """Return the folder of runs, which need not exist."""
    return state_folder() / "runs"


def read_run(folder: Path) -> LiveRun:
    """Return the run of a folder as it is now; raises StorageError if the folder holds none, or not any more."""
    try:
        data = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return record_of_data(LiveRun, {**data, "folder": folder})
    except (OSError, ValueError, TypeError) as error:
        hint = "capacity-tui history list shows past runs"
        raise StorageError("the folder holds no run", str(error), hint, Place(str(folder))) from error


def example_run() -> LiveRun:
    """Return the run that comes with the program, to show what is kept of one: made up, as its entry says.

    Raises:
        StorageError: it was not installed with the program.
    """
    return read_run(Path(str(files(_PROFILES) / "examples" / "run")))


def list_runs(folder: Path | None = None) -> tuple[LiveRun, ...]:
    """Return all known runs in a folder, by default that of the user, live ones first, then the newest first."""
    runs = []
    home = folder or runs_folder()
    with suppress(OSError):
        for entry in home.iterdir():
            with suppress(StorageError):
                runs.append(read_run(entry))
    runs.sort(key=lambda run: run.record.started, reverse=True)
    return tuple(sorted(runs, key=lambda run: not run.goes_on))


def sweep(runs: Iterable[LiveRun]) -> None:
    """Remove the oldest of the ended runs beyond those that are kept."""
    for run in [run for run in runs if not run.goes_on][MOST_ENDED:]:
        shutil.rmtree(run.folder, ignore_errors=True)


def event_time(event: Mapping[str, object]) -> float:
    """Return when an event was written, in seconds since 1970; 0 where it does not say."""
    try:
        return datetime.fromisoformat(str(event["time"])).timestamp()
    except (KeyError, ValueError):
        return 0.0


class NoProcessError(CapacityError):
    """A process that is not there."""


def need_process(pid: int) -> None:
    """Do nothing for a process that runs; raises NoProcessError if there is none of this number."""
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
