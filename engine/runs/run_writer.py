"""Writes the folder of a run while it goes on; its failures never reach the run."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import NOWHERE, make_folder, write_atomically
from capacity_tui.engine.runs.history.records import RunRecord, now
from capacity_tui.engine.runs.live_run import (
    ABOUT,
    EVENTS,
    LOOKS,
    LiveRun,
    identity_of,
    list_runs,
    moment,
    runs_folder,
    sweep,
)

MOST_BYTES = 4 << 20
"""Bytes of events; when there are more, those of every look are thinned out."""
THINNED_LOOKS = 1_000
_THINNED_EVENTS = 1_000
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


class RunWriter:
    """Writes what is seen of one run into its folder.

    A process that was watched before and still runs continues in its folder.

    Args:
        record: what is known of it to begin with: plan, prediction, machine, and its command among the details.
        pid: its first process; None where only its log is watched.
        folder: where runs lie; by default among what the user's programs keep.

    Attributes:
        problem: what went wrong first, in one line; empty as long as all is well.
    """

    def __init__(
        self, record: RunRecord, by: str, pid: int | None = None, log: str = "", folder: Path | None = None
    ) -> None:
        process = None if pid is None else identity_of(pid)
        self.problem = ""
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._is_amid_line = False
        runs_home = folder or runs_folder()
        known = list_runs(runs_home)
        same = (run for run in known if process is not None and run.process == process)
        before = next((run for run in same if run.goes_on and not run.is_watched), None)
        if before is not None:
            record = replace(record, started=before.record.started)
        home = runs_home / record.id if before is None else before.folder
        self.run = LiveRun(home, record, by, process, identity_of(os.getpid()), log)
        try:
            sweep(known)
            make_folder(home)
            home.chmod(_FOLDER_MODE)
            self._write_about()
            self._open()
        except (CapacityError, OSError) as error:
            self._remember(error)

    def write(self, *events: Mapping[str, object]) -> None:
        """Write events, a line each with the time, as far as that can be done."""
        with self._lock:
            if self._handle is None:
                return
            try:
                for event in events:
                    self._append(self._handle, {"time": now(), **event})
                if os.fstat(self._handle).st_size > MOST_BYTES:
                    self._thin_out()
            except (CapacityError, OSError, ValueError, TypeError) as error:
                self._remember(error)

    def go_on_as(self, pid: int) -> None:
        """Record that the run continues as another process: it was restarted."""
        self._tell(replace(self.run, process=identity_of(pid)))

    def end(self, entry: RunRecord | None = None, exit_code: int | None = None) -> None:
        """Say that the run has ended, and what it came to; its folder stays for a while."""
        record = self.run.record if entry is None else replace(entry, id=self.run.record.id)
        self._tell(replace(self.run, record=record, ended=now(), exit_code=exit_code))
        self.close()

    def close(self) -> None:
        """Write no more; the run may continue."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def forget(self) -> None:
        """Remove the folder, as nothing is to be kept of the run."""
        self.close()
        shutil.rmtree(self.run.folder, ignore_errors=True)

    def _tell(self, run: LiveRun) -> None:
        with self._lock:
            self.run = run
            if self._handle is None:
                return
            try:
                self._write_about()
            except (CapacityError, OSError) as error:
                self._remember(error)

    def _write_about(self) -> None:
        write_atomically(self.run.folder / ABOUT, json.dumps(self.run.data()) + "\n", overwrite=True)

    def _open(self) -> None:
        path = self.run.folder / EVENTS
        self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        size = os.fstat(self._handle).st_size
        # Whoever wrote before may have been ended amid a line.
        self._is_amid_line = bool(size) and os.pread(self._handle, 1, size - 1) != b"\n"

    def _append(self, handle: int, event: Mapping[str, object]) -> None:
        line = json.dumps(event, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        rest = memoryview(b"\n" + line if self._is_amid_line else line)
        self._is_amid_line = True
        while rest:
            rest = rest[os.write(handle, rest) :]
        self._is_amid_line = False

    def _thin_out(self) -> None:
        """Rewrite the file with fewer looks; readers see another file, and read it from its start."""
        path = self.run.folder / EVENTS
        lines = thinned(path.read_text(encoding="utf-8", errors="replace").splitlines())
        write_atomically(path, "".join(f"{line}\n" for line in lines), overwrite=True)
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
        self._open()

    def _remember(self, error: Exception) -> None:
        if self.run.folder.is_relative_to(NOWHERE):
            return  # a user without a home has nowhere to keep anything
        reason = error.one_line() if isinstance(error, CapacityError) else str(error)
        self.problem = self.problem or f"the view of runs does not show all of it: {reason}"


def thinned(lines: Sequence[str], looks: int = THINNED_LOOKS, events: int = _THINNED_EVENTS) -> list[str]:
    """Return fewer lines of events: looks evenly over time with the newest of them, and the newest other events."""
    entries = [(line, event) for line in lines if isinstance(event := _event(line), dict)]
    repeated = [moment(event) for _, event in entries if event.get("event") in LOOKS]
    step = (repeated[-1] - repeated[0]) / looks if repeated else 0.0
    spare = len(entries) - len(repeated) - events
    due, seen, result = 0.0, 0, []
    for line, event in entries:
        if event.get("event") not in LOOKS:
            spare -= 1
            if spare < 0:
                result.append(line)
            continue
        seen += 1
        at, to_come = moment(event), len(repeated) - seen
        # Where clocks ran back there is no telling what lies evenly: then the newest stay.
        if to_come == 0 or (at >= due if step > 0 else to_come < looks):
            due = at + step
            result.append(line)
    return result


def _event(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None
