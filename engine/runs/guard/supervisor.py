"""Guards a command: starts it, follows it, and starts it again with a changed plan where that may help."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

from capacity_tui.engine.errors import CapacityError, StorageError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.files import lock_file, make_folder, storage_error
from capacity_tui.engine.machine import Machine, detect
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.runs.command import CommandNotFoundError, need_posix, signals
from capacity_tui.engine.runs.guard.attempt import Attempt, Event, Listeners
from capacity_tui.engine.runs.guard.attempt_monitor import (
    AttemptEnd,
    Following,
    Order,
    keys_not_taken,
    newest_checkpoint,
    read_order,
    start_of,
    why_not_from_checkpoint,
    write_copies,
)
from capacity_tui.engine.runs.guard.checkpoints import CheckpointFolder
from capacity_tui.engine.runs.guard.pauses import Pause, battery_plan, supply_now
from capacity_tui.engine.runs.guard.placeholders import CHECKPOINT, variable_of
from capacity_tui.engine.runs.guard.recovery_policy import Step, next_step, smaller_batch, why_no_step
from capacity_tui.engine.runs.history.records import history_entry
from capacity_tui.engine.runs.live_run import LOOKS, LiveRun, list_runs
from capacity_tui.engine.runs.run_events import RunFollower, RunWriter
from capacity_tui.engine.solve import answer

_PASSED_ON = signals("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_ENDING = signals("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_MOST_EVENTS = 500  # Events that the history keeps of a run, the newest


class Supervisor:
    """Guards one run from its start, or from where another guard left it, to its end.

    To be run in the main thread, since signals are passed on.
    """

    def __init__(
        self, order: Order, estimated: Answer, writer: RunWriter, listeners: Listeners, machine: Machine | None = None
    ) -> None:
        self._order = order
        self._answer = estimated
        self.writer = writer
        self._listeners = replace(listeners, event=self._announce)
        self._tell_others = listeners.event
        self._machine = machine
        self._folder = writer.run.folder
        self._began = time.monotonic()
        self._asked_to_end = False
        self._attempt: Attempt | None = None
        self._checkpoints = None if order.checkpoints is None else CheckpointFolder(order.checkpoints)

    def run(self) -> int:
        """Guard until the end; return the exit code of the command; raises CapacityError if it cannot be started."""
        with self._signals():
            ended = self._one_attempt()
            while self._goes_on_behind(ended):
                try:
                    ended = self._one_attempt()
                except StorageError as error:  # what has run is worth more than what cannot be started again
                    self._announce({"event": "no_step", "reason": f"not started again: {error.one_line()}"})
                    break
            return self._finish(ended)

    def _one_attempt(self) -> AttemptEnd:
        number = self._order.attempt
        attempt = self._attempt = Attempt(self._folder / f"attempt-{number}", self.writer.run.id, number)
        is_new = not attempt.was_started()
        if is_new:
            self._start(attempt)
        else:
            self._announce({"event": "attached", "attempt": number, "pid": attempt.pid, "goes_on": attempt.goes_on})
        if attempt.pid is not None:
            self.writer.go_on_as(attempt.pid)
        return Following(attempt, self._order, self._answer, self._listeners, self._checkpoints).to_the_end()

    def _start(self, attempt: Attempt) -> None:
        """Start an attempt from the newest complete checkpoint, with the values of the plan as it is now."""
        checkpoint = newest_checkpoint(self._order, self._checkpoints)
        start = start_of(self._order, attempt.folder, self.writer.run.id, checkpoint)
        write_copies(start)
        self._order.write(self._folder)
        # Python writes its lines at once, not when a buffer is full.
        environment = {"PYTHONUNBUFFERED": "1", **os.environ, **start.variables, **self._battery_variables()}
        with _quiet_input() as stdin:
            attempt.start(start.words, environment, self._order.work, stdin)
        self._announce(
            {
                "event": "started",
                "attempt": attempt.number,
                "pid": attempt.pid,
                "command": list(start.words),
                "checkpoint": None if checkpoint is None else str(checkpoint.path),
            }
        )

    def _battery_variables(self) -> dict[str, str]:
        """Return what an attempt is given besides while there is no power but the battery's; usually nothing."""
        battery = battery_plan(self._order.plan, supply_now(), os.cpu_count() or 1)
        if battery is None:
            return {}
        self._announce({"event": "battery", "reason": battery.reason})
        return battery.environment()

    def _goes_on_behind(self, ended: AttemptEnd) -> bool:
        """Change the plan so that another attempt may do better; return whether there is to be one."""
        if self._asked_to_end:
            return False
        if ended.failure is not None:
            self._announce({"event": "failure", **asdict(ended.failure), "where": ended.failure.where or None})
        is_killed = ended.failure is not None and ended.failure.kind == "killed"
        if is_killed and (why := why_not_from_checkpoint(self._order)):
            self._announce({"event": "no_step", "reason": f"not started again: {why}"})
            return False
        step = self._step_behind(ended)
        if step is None:
            if ended.failure is not None and (why := why_no_step(self._answer, ended.failure, self._order.steps)):
                self._announce({"event": "no_step", "reason": why})
            return False
        self._announce({"event": "step", **step.data()})
        unread = keys_not_taken(self._order, step.change)
        if unread and not step.environment:
            self._announce(
                {"event": "values_not_taken", "keys": unread, "variables": [variable_of(key) for key in unread]}
            )
        self._order, self._answer = self._order.next(step.plan, step.data()), step.answer
        return True

    def _step_behind(self, ended: AttemptEnd) -> Step | None:
        """Return what is changed for another attempt; None where there is to be none."""
        steps = self._order.steps
        if ended.failure is not None:
            return next_step(self._answer, ended.failure, steps, self._machine, detect=detect)
        return smaller_batch(self._answer, ended.wanted, steps, self._machine) if ended.wanted else None

    def _finish(self, ended: AttemptEnd) -> int:
        seconds, restarts = round(time.monotonic() - self._began, 3), self._order.attempt - 1
        self._announce({"event": "end", "exit_code": ended.exit_code, "seconds": seconds, "restarts": restarts})
        entry = ended.entry or history_entry(self._answer, "run")
        details = {
            **entry.details,
            "command": list(self._order.words),
            "exit_code": ended.exit_code,
            "restarts": restarts,
            "steps": list(self._order.steps),
            "events": self._all_events()[-_MOST_EVENTS:],
        }
        known = self.writer.run.record
        entry = replace(entry, id=known.id, started=known.started, details=details)
        self._listeners.entry(entry)
        self.writer.end(entry, ended.exit_code)
        return ended.exit_code

    def _announce(self, event: Event) -> None:
        self.writer.write(event)
        self._tell_others(event)

    def _all_events(self) -> list[Event]:
        """Return what happened since the run began, also under guards before this one."""
        follower = RunFollower(self._folder)
        try:
            return [event for event in follower.poll().events if event.get("event") not in LOOKS]
        finally:
            follower.close()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass signals on while the block runs; those that are ignored stay so."""
        handlers = {**dict.fromkeys(_PASSED_ON, self._pass_on), signal.SIGTSTP: self._halt}
        before = {
            number: signal.signal(number, handler)
            for number, handler in handlers.items()
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler_before in before.items():
                signal.signal(number, handler_before)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        self._asked_to_end = self._asked_to_end or number in _ENDING
        if self._attempt is not None:
            self._attempt.send(number)

    def _halt(self, _: int, __: FrameType | None) -> None:
        """Stop together with the run, as a job of the shell does, and continue with it."""
        pids = [] if self._attempt is None else [process.pid for process in self._attempt.processes()]
        pause = Pause(pids)
        os.kill(os.getpid(), signal.SIGSTOP)
        pause.over()


@contextmanager
def _quiet_input() -> Iterator[int]:
    """Give what a command reads: this program's input, but no terminal, which belongs to another session."""
    if not os.isatty(0):
        yield 0
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        yield nothing
    finally:
        os.close(nothing)


_LOCK = "guard.lock"
_COMMAND = "guard"


class GuardError(CapacityError):
    """A run that cannot be guarded."""


def new_order(
    words: Sequence[str], plan: Plan, files: Sequence[str] = (), checkpoints: Path | None = None, log: str = ""
) -> Order:
    """Return an order of what is to run here.

    Args:
        files: of which the command gets copies with values in the place of placeholders.
        checkpoints: folder of its checkpoints; None where nothing is known of them.
        log: where it writes its log besides its output.

    Raises:
        GuardError: the command asks for a checkpoint, but no folder of checkpoints is named.
    """
    if checkpoints is None and any(f"{{{CHECKPOINT}}}" in word for word in words):
        raise GuardError(
            f"the command has {{{CHECKPOINT}}}", "the checkpoint folder is not given", "add --checkpoints DIR"
        )
    work = Path.cwd()
    log_path = str(work / log) if log and "://" not in log else log
    return Order(tuple(words), plan, tuple(files), checkpoints and work / checkpoints, log_path, work)


def begin(order: Order, estimated: Answer, listeners: Listeners, machine: Machine | None = None) -> Supervisor:
    """Return what guards a new run."""
    need_posix("guarding a command")
    if shutil.which(order.words[0], path=os.environ.get("PATH")) is None:
        raise CommandNotFoundError(
            f"{order.words[0]} cannot be started", hint="check its name and that it may be executed"
        )
    record = history_entry(estimated, "run", details={"command": list(order.words)})
    start_of(order, Path(), record.id, None)
    writer = RunWriter(record, _COMMAND, log=order.log)
    make_folder(writer.run.folder)
    _lock_run(writer.run.folder)
    order.write(writer.run.folder)
    return Supervisor(order, estimated, writer, listeners, machine)


def take_up(name: str, listeners: Listeners, detect: Callable[[], Machine]) -> Supervisor:
    """Return a supervisor that continues to guard a run.

    Raises:
        CapacityError: there is none of this name, it has ended, or it is guarded.
    """
    run = _run_of(name)
    order = read_order(run.folder)
    _lock_run(run.folder)
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
    title = "several runs have that name" if matches else "no unfinished run has that name"
    raise GuardError(title, name, f"there are: {listed}" if listed else "history list shows past runs")


def _lock_run(folder: Path) -> None:
    """Make sure that no other guard has the run, until this process ends; raises CapacityError if another has it."""
    path = folder / _LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        lock_file(handle, waits=False)
    except BlockingIOError:
        raise GuardError("the run is guarded already", folder.name, "watch it: capacity-tui monitor") from None
    except OSError as error:
        raise storage_error(error, path, "cannot be locked") from None
