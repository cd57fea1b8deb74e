"""One attempt of a guarded command, followed from its start, or from where another guard left it, to its end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from capacity_tui.engine.estimate.estimate import Answer
from capacity_tui.engine.observe.guard.attempt import OUTPUTS, Attempt
from capacity_tui.engine.observe.guard.checkpoints import Checkpoint, CheckpointFolder
from capacity_tui.engine.observe.guard.order import Order
from capacity_tui.engine.observe.guard.output import CommandOutput
from capacity_tui.engine.observe.guard.told import Event, Told
from capacity_tui.engine.observe.history.records import RunRecord
from capacity_tui.engine.observe.logs.line_reader import LineReader
from capacity_tui.engine.observe.logs.sources import open_log
from capacity_tui.engine.observe.monitor.run_monitor import RunMonitor, RunState

PASS_SECONDS = 0.05
"""How often output is passed on."""
PATIENCE_SECONDS = 20.0
"""How long processes have to end by themselves before they are killed."""


class AttemptEnd(NamedTuple):
    """How an attempt ended.

    Attributes:
        exit_code: of the command, 128 and its number for a signal.
        tail: the newest of what it wrote.
        state: how the run stood then.
        entry: what it came to; None where nothing was measured.
        trouble: the alarm for which it was ended by its guard; empty where it ended by itself.
    """

    exit_code: int
    tail: str
    state: RunState
    entry: RunRecord | None
    trouble: str


class Following:
    """Follows one attempt.

    Args:
        attempt: which.
        order: what is run.
        answer: its plan, estimated.
        told: whom it tells.
        is_new: whether it was just started, so that nothing of it was passed on before.
        checkpoints: where it leaves checkpoints.
    """

    def __init__(
        self,
        attempt: Attempt,
        order: Order,
        answer: Answer,
        told: Told,
        is_new: bool,
        checkpoints: CheckpointFolder | None,
    ) -> None:
        self._attempt = attempt
        self._order = order
        self._told = told
        self._checkpoints = checkpoints
        self._halted_seconds = 0.0
        reader = LineReader()
        files = tuple(attempt.folder / name for name in OUTPUTS)
        self._output = CommandOutput(files, told.output, reader, is_new)
        log = open_log(order.log, reader) if order.log else None
        folders = [order.work, *([] if order.checkpoints is None else [_there(order.checkpoints)])]
        self._monitor = RunMonitor(log, attempt.pid, answer, tuple(dict.fromkeys(folders)), clock=self._clock)
        self._command = order.words

    def to_the_end(self) -> AttemptEnd:
        """Follow until the command has ended, and all that it left running."""
        interval = float(self._order.plan.watch.interval)
        due, trouble = time.monotonic(), ""
        try:
            while not self._attempt.wait(PASS_SECONDS):
                self._pass_output()
                if time.monotonic() >= due:
                    trouble = self._look()
                    due = time.monotonic() + interval
                if trouble:
                    break
            self._attempt.end(PATIENCE_SECONDS)
            self._pass_output(last=True)
            state = self._monitor.look(last=True)
            self._told.state(state, True)
            self._tell_checkpoints()
            entry = self._monitor.entry(state, self._command, self._attempt.ended_with())
        finally:
            self._monitor.close()
        tail = self._output.tail.decode("utf-8", "replace")
        return AttemptEnd(self._attempt.ended_with(), tail, state, entry, trouble)

    def _pass_output(self, last: bool = False) -> None:
        self._monitor.take(self._output.poll(last), self._clock())

    def _look(self) -> str:
        """Look at the run; return the alarm for which it is to end now, mostly none."""
        state = self._monitor.look()
        self._told.state(state, False)
        self._tell_checkpoints()
        return ""

    def _tell_checkpoints(self) -> None:
        for found in () if self._checkpoints is None else self._checkpoints.look():
            self._told.event(_checkpoint_event(found))

    def _clock(self) -> float:
        """Return seconds in which the run could go on: it is no stall where it was halted."""
        return time.monotonic() - self._halted_seconds


def _checkpoint_event(found: Checkpoint) -> Event:
    return {
        "event": "checkpoint",
        "path": str(found.path),
        "step": found.step,
        "bytes": found.bytes,
        "seconds": round(found.seconds, 3),
    }


def _there(folder: Path) -> Path:
    """Return a folder, or the nearest above it that exists."""
    return next((place for place in (folder, *folder.parents) if place.exists()), folder)
