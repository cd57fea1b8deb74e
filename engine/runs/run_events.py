"""The events of a run: written to its folder while it goes on, and read by any process as they come."""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import NOWHERE, make_folder, write_atomically
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history.records import RunRecord, now
from capacity_tui.engine.runs.live_run import (
    ABOUT,
    EVENTS,
    LOOKS,
    LiveRun,
    event_time,
    identity_of,
    list_runs,
    read_run,
    runs_folder,
    sweep,
)
from capacity_tui.engine.runs.logs.run_curve import RunCurve
from capacity_tui.engine.runs.logs.sources import FollowedFile, LineSplitter

Event = dict[str, object]
_TAIL_BYTES = 1 << 16


class NewEvents(NamedTuple):
    """What came since the last time."""

    events: tuple[Event, ...]
    from_start: bool  # whether they begin with the first: what was read before is among them, thinned out


class RunFollower:
    """Follows one run through its folder; incomplete and invalid lines are left out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = FollowedFile(folder / EVENTS)
        self._lines = LineSplitter()
        self._is_first = True

    def run(self) -> LiveRun:
        """Return what runs and who watches it, as that is now; raises StorageError if it was removed."""
        return read_run(self._folder)

    def poll(self) -> NewEvents:
        """Return the events that came since the last call."""
        lines: list[str] = []
        from_start, self._is_first = self._is_first, False
        while data := self._read():
            if self._file.restarts:
                self._file.restarts, self._lines = 0, LineSplitter()
                lines, from_start = [], True
            lines += self._lines.split(data)
        return NewEvents(tuple(event for line in lines if (event := parsed_event(line)) is not None), from_start)

    def close(self) -> None:
        self._file.close()

    def _read(self) -> bytes:
        data = self._file.read()
        self._file.notices.clear()
        return data


def parsed_event(line: str) -> Event | None:
    """Return the event of a line; None where it holds none."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def newest_look(folder: Path) -> Event:
    """Return the newest sample of a run, from the end of its events; empty where there is none."""
    try:
        with (folder / EVENTS).open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    events = (event for line in reversed(lines) if (event := parsed_event(line)) is not None)
    return next((event for event in events if event.get("event") in LOOKS), {})


Axis = Literal["step", "seconds"]
Curve: TypeAlias = list[tuple[float, float]]
MOST_POINTS = 500
MOST_EVENTS = 200  # Events besides samples that are kept, the newest
COURSE = "course"  # The event with what a log held before the first sample: steps, and figures by name, as lists
LOSS, STEP_SECONDS, TOKENS, SAMPLES = "loss", "step_seconds", "tokens_per_second", "samples_per_second"
DEVICE_MEMORY, MAIN_MEMORY = "device_memory_bytes", "main_memory_bytes"
_LOOK_FIGURES = (LOSS, TOKENS, SAMPLES)  # Figures that a sample has directly
_MAIN_MEMORY = ("rss_bytes", "memory_bytes")


@dataclass(slots=True)
class RunCourse:
    """The course of one run."""

    curves: dict[str, Curve] = field(default_factory=dict)  # by figure, points of rising place on the figure's axis
    axes: dict[str, Axis] = field(default_factory=dict)  # the axis of each figure
    look: Event = field(default_factory=dict)  # the newest sample; empty before the first
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))  # other events, the newest last
    _began: float = 0.0

    def take(self, events: Iterable[Event]) -> None:
        """Take what came."""
        for event in events:
            kind = event.get("event")
            if kind in LOOKS:
                self._take_look(event)
            elif kind == COURSE:
                self._take_course(event)
            else:
                self.events.append(event)

    def _take_look(self, event: Event) -> None:
        written_at = event_time(event)
        self._began = self._began or written_at
        seconds, step = written_at - self._began, number(event.get("step"))
        for figure in _LOOK_FIGURES:
            self._put(figure, step, seconds, number(event.get(figure)))
        recent = None if step is None else [step, event.get(STEP_SECONDS)]  # all that older versions wrote
        for timed in _pairs(event.get("step_times", [recent])):
            self._put(STEP_SECONDS, timed[0], seconds, timed[1])
        self._put(DEVICE_MEMORY, None, seconds, _device_memory(event))
        self._put(MAIN_MEMORY, None, seconds, _main_memory(event))
        self.look = event

    def _take_course(self, event: Event) -> None:
        steps = event.get("steps")
        for figure in (LOSS, STEP_SECONDS, TOKENS, SAMPLES):
            values = event.get(figure)
            if isinstance(steps, list) and isinstance(values, list):
                for step, value in zip(map(number, steps), map(number, values), strict=False):
                    if step is not None:
                        self._put(figure, step, 0.0, value)

    def _put(self, figure: str, step: float | None, seconds: float, value: float | None) -> None:
        if value is None:
            return
        axis: Axis = "seconds" if step is None else "step"
        position = seconds if step is None else step
        curve = self.curves.setdefault(figure, [])
        if self.axes.setdefault(figure, axis) != axis:
            self.axes[figure] = axis
            curve.clear()  # the log began to have steps
        while curve and curve[-1][0] >= position:
            curve.pop()  # repeated by a run that resumed from an earlier step
        curve.append((position, value))


def course_of(curve: RunCurve) -> Event:
    """Return the event with what a log held before the first sample, thinned to ``MOST_POINTS`` at most."""
    seconds = dict(zip(*(column.tolist() for column in curve.step_seconds()), strict=True))
    points = curve.points[:: max(1, -(-len(curve.points) // MOST_POINTS))]
    columns = {name: [finite(point.figures.get(name)) for point in points] for name in _LOOK_FIGURES}
    columns[STEP_SECONDS] = [finite(seconds.get(point.step)) for point in points]
    known = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return {"event": COURSE, "steps": [point.step for point in points], **known}


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold."""
    return value if value is not None and math.isfinite(value) else None


def number(value: object) -> float | None:
    """Return a finite number of an event, else None."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def gpus_of(event: Event) -> tuple[Mapping[str, object], ...]:
    """Return a sample's data of each GPU, under the names of ``monitor``."""
    gpus = event.get("gpus")
    return tuple(gpu for gpu in gpus if isinstance(gpu, dict)) if isinstance(gpus, list) else ()


def memory_of_run(gpu: Mapping[str, object]) -> float | None:
    """Return what the run holds of a GPU, else of all processes."""
    amounts = [number(gpu.get(name)) for name in ("memory_own_bytes", "run_memory_bytes", "memory_used_bytes")]
    return next((amount for amount in amounts if amount is not None), None)


def _pairs(value: object) -> Iterator[tuple[float, float]]:
    """Yield steps with their seconds, as far as they are numbers."""
    for pair in value if isinstance(value, list) else ():
        if isinstance(pair, list | tuple) and len(pair) == 2:
            step, seconds = number(pair[0]), number(pair[1])
            if step is not None and seconds is not None:
                yield step, seconds


def _device_memory(event: Event) -> float | None:
    amounts_held = [memory for gpu in gpus_of(event) if (memory := memory_of_run(gpu)) is not None]
    return max(amounts_held, default=None)


def _main_memory(event: Event) -> float | None:
    process = event.get("process")
    table = process if isinstance(process, dict) else event
    return next((amount for name in _MAIN_MEMORY if (amount := number(table.get(name))) is not None), None)


MOST_BYTES = 4 << 20  # Bytes of events; when there are more, those of every sample are thinned out
THINNED_LOOKS = 1_000
_THINNED_EVENTS = 1_000
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


class RunWriter:
    """Writes what is seen of one run into its folder.

    A process that was watched before and still runs continues in its folder.
    """

    def __init__(
        self, record: RunRecord, watcher: str, pid: int | None = None, log: str = "", folder: Path | None = None
    ) -> None:
        process = None if pid is None else identity_of(pid)
        self.problem = ""  # what went wrong first, in one line; empty as long as all is well
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._is_within_line = False
        runs_home = folder or runs_folder()
        known = list_runs(runs_home)
        same = (run for run in known if process is not None and run.process == process)
        before = next((run for run in same if run.goes_on and not run.is_watched), None)
        if before is not None:
            record = replace(record, started=before.record.started)
        home = runs_home / record.id if before is None else before.folder
        self.run = LiveRun(home, record, watcher, process, identity_of(os.getpid()), log)
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
        """Record that the run has ended, and its result; its folder stays for a while."""
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
        self._is_within_line = bool(size) and os.pread(self._handle, 1, size - 1) != b"\n"

    def _append(self, handle: int, event: Mapping[str, object]) -> None:
        line = json.dumps(event, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        remaining = memoryview(b"\n" + line if self._is_within_line else line)
        self._is_within_line = True
        while remaining:
            remaining = remaining[os.write(handle, remaining) :]
        self._is_within_line = False

    def _thin_out(self) -> None:
        """Rewrite the file with fewer samples; readers see another file, and read it from its start."""
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


def thinned(lines: Sequence[str], looks: int = THINNED_LOOKS) -> list[str]:
    """Return fewer lines of events: samples evenly over time with the newest of them, and the newest other events."""
    entries = [(line, event) for line in lines if (event := parsed_event(line)) is not None]
    repeated = [event_time(event) for _, event in entries if event.get("event") in LOOKS]
    step = (repeated[-1] - repeated[0]) / looks if repeated else 0.0
    spare = len(entries) - len(repeated) - _THINNED_EVENTS
    due, seen, result = 0.0, 0, []
    for line, event in entries:
        if event.get("event") not in LOOKS:
            spare -= 1
            if spare < 0:
                result.append(line)
            continue
        seen += 1
        seconds, to_come = event_time(event), len(repeated) - seen
        # Where clocks ran back there is no telling what lies evenly: then the newest stay.
        if to_come == 0 or (seconds >= due if step > 0 else to_come < looks):
            due = seconds + step
            result.append(line)
    return result
