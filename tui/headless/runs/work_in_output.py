"""Work that a profiled command tells of in its output, which is read only where that is asked for."""

from __future__ import annotations

import math
import os
import threading
import time
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.runs.monitored_command import PassedOutput

if TYPE_CHECKING:
    from capacity_tui.engine.observe import RunningCommand
    from capacity_tui.engine.observe.logs import LineSplitter
    from capacity_tui.engine.observe.profile import ProfilingEngine, WorkInOutput

_STREAMS = (1, 2)
_LAST_WAIT = 1.0
"""Seconds for which output is still read after the command ended: what it left running may hold on to it."""


def found_work(samples: str | None, stages: tuple[str, ...]) -> tuple[float | None, WorkInOutput | None]:
    """Return how many samples there are where that is given, and what finds work in the output where it must be read.

    Raises:
        CapacityError: an expression cannot be read.
    """
    from capacity_tui.engine.observe.profile import WorkInOutput

    try:
        count = None if samples is None else float(samples)
    except ValueError:
        count = None
    if count is not None and not 0 < count < math.inf:
        raise click.UsageError("--samples must be above 0")
    told = {name: expression for name, equals, expression in (stage.partition("=") for stage in stages) if equals}
    if len(stages) > 1 and len(told) < len(stages):
        raise click.UsageError("several stages need NAME=REGEX each, and names of their own")
    counting = samples if count is None else None
    return count, WorkInOutput(counting, told) if counting is not None or told else None


class OutputReading:
    """Reads what a command writes while it is passed on.

    Args:
        work: what finds work in it.
    """

    def __init__(self, work: WorkInOutput) -> None:
        self._work = work
        self._passed: list[tuple[PassedOutput, LineSplitter]] = []
        self._lock = threading.Lock()

    def started(self, command: tuple[str, ...]) -> RunningCommand:
        """Start the command, its output in pipes.

        Raises:
            CapacityError: it cannot be started.
        """
        from capacity_tui.engine.observe import RunningCommand
        from capacity_tui.engine.observe.logs import LineSplitter

        pipes = (os.pipe(), os.pipe())
        try:
            running = RunningCommand(command, outputs=(pipes[0][1], pipes[1][1]))
        finally:
            for _, end in pipes:
                os.close(end)
        for (source, _), stream in zip(pipes, _STREAMS, strict=True):
            passed = PassedOutput(source, stream, None)
            passed.start()
            self._passed.append((passed, LineSplitter()))
        return running

    def look(self, engine: ProfilingEngine) -> None:
        """Tell a profile what the output has told since the last look."""
        with self._lock:
            for passed, splitter in self._passed:
                for at, data in passed.taken():
                    for line in splitter.split(data):
                        self._work.take(line, at, engine)

    def end(self, engine: ProfilingEngine) -> None:
        """Tell the rest, once the command has ended."""
        for passed, _ in self._passed:
            passed.join(_LAST_WAIT)
        self.look(engine)
        now = time.monotonic()
        for _, splitter in self._passed:
            for line in splitter.rest():
                self._work.take(line, now, engine)
        self._work.end(now, engine)
        for name in self._work.never_begun(engine):
            engine.add_problem(f"stage {name} never began: no line of the output is as its expression says")
