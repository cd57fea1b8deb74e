"""What is run under guard, and one attempt of it, followed from its start, or from where another guard left it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import NamedTuple, cast

import psutil

from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.files import make_folder, write_atomically
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.runs.guard.attempt import Attempt, CommandOutput, Event, Listeners, TrainerWords
from capacity_tui.engine.runs.guard.callback import SAVE_EVERY, SAVED
from capacity_tui.engine.runs.guard.checkpoints import Checkpoint, CheckpointFolder, save_interval
from capacity_tui.engine.runs.guard.failures import Failure, KernelWatch, failure_of, failure_of_alarm
from capacity_tui.engine.runs.guard.pauses import PauseControl, step_seconds_of
from capacity_tui.engine.runs.guard.placeholders import (
    ATTEMPT,
    CHECKPOINT,
    FOLDER,
    RUN,
    RewrittenFiles,
    environment_of,
    filled_words,
    keys_in,
    values_of,
)
from capacity_tui.engine.runs.history.records import RunRecord
from capacity_tui.engine.runs.logs.line_reader import LineReader
from capacity_tui.engine.runs.logs.sources import open_log
from capacity_tui.engine.runs.monitor.alarms import Alarm
from capacity_tui.engine.runs.monitor.run_monitor import RunMonitor, RunState

_FILE = "guard.json"


@dataclass(frozen=True)
class Order:
    """What is run under guard."""

    words: tuple[str, ...]  # the command with its placeholders
    plan: Plan  # every default filled in, as changed so far
    # of which the command gets copies with values in the place of placeholders, as its words name them
    files: tuple[str, ...]
    checkpoints: Path | None  # folder of its checkpoints; None where nothing is known of them
    log: str  # where it writes its log besides its output; empty for nowhere
    work: Path
    attempt: int = 1  # how often it was started, this time included
    steps: tuple[Mapping[str, object], ...] = ()  # what was changed after each end, as plain data

    def next(self, plan: Plan, step: Mapping[str, object]) -> Order:
        """Return the order of the next attempt, with a changed plan."""
        return replace(self, plan=plan, attempt=self.attempt + 1, steps=(*self.steps, step))

    def write(self, folder: Path) -> None:
        """Write it into the folder of the run; raises StorageError if it cannot be written."""
        data = {field.name: getattr(self, field.name) for field in fields(self)} | {"plan": self.plan.plain_data()}
        write_atomically(folder / _FILE, json.dumps(data, default=str) + "\n", overwrite=True)


def read_order(folder: Path) -> Order:
    """Return what is run in the folder of a run; raises StorageError where that is not guarded, or cannot be read."""
    try:
        data = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return record_of_data(Order, {**data, "plan": plan_from_data(data["plan"], str(folder / _FILE))})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StorageError("no guarded run can be read there", str(error), place=Place(str(folder))) from None


class Start(NamedTuple):
    """What an attempt is started with."""

    words: tuple[str, ...]
    variables: Mapping[str, str]  # what is added to its environment
    copies: Mapping[Path, str]  # files as the command gets them, by where those copies lie


def start_of(order: Order, folder: Path, run: str, checkpoint: Checkpoint | None) -> Start:
    """Return what an attempt of an order is started with, from a checkpoint or from nothing; nothing is written."""
    run_values = {RUN: run, ATTEMPT: str(order.attempt), FOLDER: str(folder.parent)}
    if checkpoint is not None:
        run_values[CHECKPOINT] = str(checkpoint.path)
    values = values_of(order.plan, run_values)
    files = RewrittenFiles(order.files, order.work, folder)
    copies, words = files.texts(values), filled_words(files.words(order.words), values)
    variables: dict[str, str] = {}
    for step in order.steps:
        variables |= cast("Mapping[str, str]", step.get("environment", {}))
    return Start(words, {**variables, **environment_of(values)}, copies)


def newest_checkpoint(order: Order, folder: CheckpointFolder | None = None) -> Checkpoint | None:
    """Return the newest complete checkpoint of an order, or the one before where its last step says so.

    Args:
        folder: that of its checkpoints, where it was looked at while they were written.
    """
    folder = folder or (CheckpointFolder(order.checkpoints) if order.checkpoints is not None else None)
    checkpoints = folder.complete() if folder else ()
    is_before = bool(order.steps) and order.steps[-1].get("checkpoint") == "before"
    return next(iter(checkpoints[1:] if is_before else checkpoints), None)


def why_not_from_checkpoint(order: Order) -> str:
    """Return why a command that was ended from outside cannot go on; empty where it can, as whatever serves a model."""
    if order.plan.is_inference:
        return ""
    if order.checkpoints is None:
        return "no folder of its checkpoints is named (--checkpoints)"
    checkpoint = newest_checkpoint(order)
    if checkpoint is None:
        return f"no checkpoint below {order.checkpoints} is complete"
    if not any(f"{{{CHECKPOINT}}}" in text for text in _texts_of(order)):
        return f"nothing of the command takes {{{CHECKPOINT}}}; go on by hand from {checkpoint.path}"
    return ""


def _texts_of(order: Order) -> list[str]:
    """Return the words of a command and the files of which it gets copies, as far as they can be read."""
    texts = [*order.words]
    for file in order.files:
        with suppress(OSError, ValueError):
            texts.append((order.work / file).read_text(encoding="utf-8"))
    return texts


def keys_not_taken(order: Order, change: Mapping[str, object]) -> list[str]:
    """Return the changed fields of a plan where no word and no file of an order takes the value of any of them.

    A command may read its environment instead, of which nothing is known.
    """
    used_keys = {key for text in _texts_of(order) for key in keys_in(text)}
    return [] if used_keys & change.keys() else list(change)


def write_copies(start: Start) -> None:
    """Write the copies of files that a command gets; raises StorageError if one cannot be written."""
    for path, text in start.copies.items():
        make_folder(path.parent)
        write_atomically(path, text, overwrite=True)


PASS_SECONDS = 0.1  # How often output is passed on
_SAME_INTERVAL = 0.2  # Share by which the time between checkpoints may change without a new announcement
PATIENCE_SECONDS = 20.0  # How long processes have to end by themselves before they are killed
_PATIENT_SECONDS = 2.0  # How long ending processes may run on before that is announced
_LEAST_FREE_BYTES = 1 << 16  # A disk with less free space is full
_NAMED_PROCESSES = 3


class AttemptEnd(NamedTuple):
    """How an attempt ended."""

    exit_code: int  # of the command, 128 and its number for a signal
    state: RunState
    entry: RunRecord | None  # its result; None where nothing was measured
    failure: Failure | None  # why it ended, or was ended by its guard; None for no reason that is known
    # what a trainer asked for by its callback before it ended by itself; nothing where it did not
    wanted: Mapping[str, object]


class Following:
    """Follows one attempt."""

    def __init__(
        self, attempt: Attempt, order: Order, answer: Answer, listeners: Listeners, checkpoints: CheckpointFolder | None
    ) -> None:
        self._attempt = attempt
        self._order = order
        self._listeners = listeners
        self._checkpoints = checkpoints
        self._answer = answer
        self._interval = 0.0
        self._announced: set[str] = set()
        self._halts = PauseControl(attempt, order.plan, listeners.event)
        reader = LineReader()
        self._output = CommandOutput(attempt, listeners.output, reader)
        log = open_log(order.log, reader) if order.log else None
        folders = [order.work, *([] if order.checkpoints is None else [_existing_parent(order.checkpoints)])]
        self._monitor = RunMonitor(log, attempt.pid, answer, tuple(dict.fromkeys(folders)), clock=self._clock)
        self._trainer = TrainerWords(attempt.folder, reader)
        self._kernel = KernelWatch()

    def to_the_end(self) -> AttemptEnd:
        """Follow until the command has ended, and all that it left running."""
        interval = float(self._order.plan.watch.interval)
        due, failure = time.monotonic(), None
        try:
            while failure is None and not self._attempt.wait(0.0 if self._output.is_behind else PASS_SECONDS):
                self._pass_output()
                if time.monotonic() >= due:
                    failure = self._look()
                    due = time.monotonic() + interval
            self._halts.over()
            began = time.monotonic()
            self._attempt.end(PATIENCE_SECONDS, lambda alive: self._wait_for(alive, time.monotonic() - began))
            self._pass_output(last=True)
            self._tell_limits()
            self._hear_trainer()
            state = self._monitor.look(last=True)
            self._listeners.state(state, True)
            self._tell_checkpoints()
            code = self._attempt.ended_with()
            entry = self._monitor.entry(state, self._order.words, code)
            kernel = self._kernel.report()
        finally:
            self._output.close()
            self._monitor.close()
            self._kernel.close()
            self._trainer.close()
        tail = self._output.tail.decode("utf-8", "replace")
        failure = failure or failure_of(code, tail, kernel, self._kernel.pids)
        return AttemptEnd(code, state, entry, failure, self._trainer.restart)

    def _pass_output(self, last: bool = False) -> None:
        self._monitor.take(self._output.poll(last), self._clock())

    def _look(self) -> Failure | None:
        """Check the run; return the failure for which it is to end now, if any."""
        self._monitor.curve.clock.paused_seconds = self._halts.seconds
        state = self._monitor.look()
        self._listeners.state(state, False)
        self._tell_limits()
        self._tell_checkpoints()
        self._hear_trainer()
        self._halts.look(self._monitor, state)
        if state.observation is not None:
            self._kernel.see(process.pid for process in state.observation.run.processes)
        return next((trouble for alarm in state.alarms if (trouble := self._trouble(alarm)) is not None), None)

    def _wait_for(self, alive: Sequence[psutil.Process], seconds: float) -> None:
        """Read the output of what is to end, and announce it where that takes long."""
        self._pass_output()
        if seconds >= _PATIENT_SECONDS:
            self._announce("ending", processes=_named(alive), kill_seconds=PATIENCE_SECONDS)

    def _tell_limits(self) -> None:
        """Announce once what keeps the run from being recorded, read or ended."""
        asked = self._attempt.asked_to_end
        if asked is not None and time.monotonic() - asked >= _PATIENT_SECONDS and self._attempt.goes_on:
            self._announce("signal_unanswered", processes=_named(self._attempt.processes()))
        if self._output.unread_lines:
            self._announce("lines_unread", lines=self._output.unread_lines)
        if _is_full(self._attempt.folder):
            self._announce("disk_full", path=str(self._attempt.folder))

    def _announce(self, event: str, **data: object) -> None:
        if event not in self._announced:
            self._announced.add(event)
            self._listeners.event({"event": event, **data})

    def _trouble(self, alarm: Alarm) -> Failure | None:
        """Return the failure behind an alarm, where the plan wants the run to end for it."""
        failure = failure_of_alarm(alarm.kind, alarm.title, alarm.where, alarm.detail)
        if failure is None:
            return None
        plan = self._order.plan
        ends = {
            "unstable": plan.watch.nan == "stop" and alarm.level == "error",
            "hang": plan.recovery.hang == "restart",
        }
        return failure if ends.get(failure.kind) else None

    def _hear_trainer(self) -> None:
        entries, events = self._trainer.poll()
        self._monitor.take(entries, self._clock())
        for event in events:
            self._listeners.event(event)
            if event["event"] == SAVED and "seconds" in event:
                self._tell_interval(float(str(event["seconds"])))

    def _tell_checkpoints(self) -> None:
        for checkpoint in () if self._checkpoints is None else self._checkpoints.look():
            self._listeners.event(_checkpoint_event(checkpoint))
            self._tell_interval(checkpoint.seconds)

    def _tell_interval(self, save_seconds: float) -> None:
        """Set the time between checkpoints, also in the trainer, where it has changed."""
        interval = (
            save_interval(self._answer, save_seconds, step_seconds_of(self._monitor)) if save_seconds > 0 else None
        )
        if interval is None or abs(interval.seconds - self._interval) <= _SAME_INTERVAL * self._interval:
            return
        self._interval = interval.seconds
        self._listeners.event({"event": "save_interval", **asdict(interval)})
        with suppress(CapacityError):
            write_atomically(self._attempt.folder / SAVE_EVERY, f"{interval.seconds}\n", overwrite=True)

    def _clock(self) -> float:
        """Return seconds in which the run could work: a pause is no stall."""
        return time.monotonic() - self._halts.seconds


def _checkpoint_event(checkpoint: Checkpoint) -> Event:
    return {
        "event": "checkpoint",
        "path": str(checkpoint.path),
        "step": checkpoint.step,
        "bytes": checkpoint.bytes,
        "seconds": round(checkpoint.seconds, 3),
    }


def _named(processes: Sequence[psutil.Process]) -> list[str]:
    """Return some processes by number and name."""
    names = []
    for process in processes[:_NAMED_PROCESSES]:
        with suppress(psutil.Error):
            names.append(f"{process.pid} {process.name()}")
    return names


def _is_full(folder: Path) -> bool:
    try:
        stats = os.statvfs(folder)
    except OSError:
        return False
    return stats.f_bavail * stats.f_frsize < _LEAST_FREE_BYTES


def _existing_parent(folder: Path) -> Path:
    """Return a folder, or the nearest above it that exists."""
    return next((candidate for candidate in (folder, *folder.parents) if candidate.exists()), folder)
