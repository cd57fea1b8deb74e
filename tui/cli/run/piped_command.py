"""A command whose output is read as it goes by: what it writes, its signals and its exit code stay its own."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

import click

from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import runs
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.runs import logs
from capacity_tui.engine.runs import monitor as monitoring
from capacity_tui.engine.runs import profile as profiling
from capacity_tui.tui.cli.output import tell
from capacity_tui.tui.cli.run.run_output import (
    JsonLines,
    LiveBlock,
    RecordedOutput,
    RunOutput,
    SharedOutput,
    finish,
    output_for,
    stream_of_events,
    tell_problems_of,
)

_PIECE = 1 << 16
_LAST_WAIT = 1.0
"""Seconds for which output is still read after the command ended: what it left running may hold on to it."""


def watch_command(
    command: tuple[str, ...],
    log: logs.LogSource | None,
    reader: logs.LineReader,
    answer: estimates.Answer | None,
    interval: float,
    outlets: runs.Outlets,
    as_json: bool,
    no_history: bool,
) -> int:
    """Run a command and watch it; return its exit code; raises CapacityError where it cannot be started."""
    # Python writes its lines when they are said, not when a buffer is full.
    running, sources = _started(command, {"PYTHONUNBUFFERED": "1", **os.environ})
    run = monitoring.RunMonitor(log, running.pid, answer, (Path.cwd(),))
    writer = runs.RunWriter(run.beginning(command), "monitor", running.pid)
    with output_for(stream_of_events(as_json), as_json) as output:
        streams = (sys.stderr if as_json else sys.stdout, sys.stderr)
        passed = PassedStreams(
            PassedOutput(end, stream.fileno(), output if isinstance(output, LiveBlock) and stream.isatty() else None)
            for end, stream in zip(sources, streams, strict=True)
        )
        shared = SharedOutput(output, outlets)
        watching = _Watching(run, reader, passed, RecordedOutput(shared, writer, run.curve), interval)
        outlets.start()
        watching.start()
        ended = running.wait()
        state = watching.end()
        if isinstance(output, JsonLines):
            output.event({"event": "end", "exit_code": ended.exit_code, "seconds": round(ended.seconds, 3)})
    entry = None if state is None else run.entry(state, command, ended.exit_code)
    finish(writer, entry, no_history, ended.exit_code)
    run.close()
    tell_problems_of(outlets)
    return ended.exit_code


def _started(
    command: tuple[str, ...], environment: dict[str, str] | None = None
) -> tuple[runs.RunningCommand, tuple[int, int]]:
    """Start a command, and return it with the ends of pipes at which what it writes can be read."""
    (out, out_end), (error, error_end) = os.pipe(), os.pipe()
    try:
        return runs.RunningCommand(command, environment, outputs=(out_end, error_end)), (out, error)
    finally:
        os.close(out_end)
        os.close(error_end)


class PassedOutput(threading.Thread):
    """Reads what a command writes, passes it on at once, and keeps a copy to be read as a log.

    Args:
        source: the end of a pipe to read; closed at the end.
        block: a block at the foot of that terminal, above which whole lines are printed.
    """

    def __init__(self, source: int, target: int, block: LiveBlock | None) -> None:
        super().__init__(name="output", daemon=True)
        self._source = source
        self._target = target
        self._block = block
        self._line = b""
        self._copy: list[tuple[float, bytes]] = []
        self._lock = threading.Lock()

    def run(self) -> None:
        """Pass on until the command, and all that it started, wrote the last."""
        try:
            while data := os.read(self._source, _PIECE):
                self._pass(data)
                with self._lock:
                    self._copy.append((time.monotonic(), data))
        except OSError:
            # Whoever read the output is gone; the command is told the same way when it writes again.
            pass
        finally:
            os.close(self._source)

    def taken(self) -> list[tuple[float, bytes]]:
        """Return what came since the last call, each piece with the time when it came."""
        with self._lock:
            pieces, self._copy = self._copy, []
        return pieces

    def _pass(self, data: bytes) -> None:
        if self._block is not None:
            # Bars that overwrite themselves would fight with the block, which shows what they say.
            *lines, rest = (self._line + data).split(b"\n")
            for line in lines:
                self._block.above(line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace"))
            self._line = rest.rpartition(b"\r")[2]
            return
        while data:
            data = data[os.write(self._target, data) :]


class PassedStreams:
    """What a command writes to its streams, passed on, and as lines."""

    def __init__(self, passed: Iterable[PassedOutput]) -> None:
        self._passed = [(stream, logs.LineSplitter()) for stream in passed]

    def start(self) -> None:
        for stream, _ in self._passed:
            stream.start()

    def join(self) -> None:
        for stream, _ in self._passed:
            stream.join(_LAST_WAIT)

    def lines(self, last: bool = False) -> Iterator[tuple[float, list[str]]]:
        """Yield the lines that came since the last call, each with when; at last also one without an end."""
        pieces = [(at, data, splitter) for stream, splitter in self._passed for at, data in stream.taken()]
        # A bar goes to one stream and its losses to the other: what came first is read first.
        for at, data, splitter in sorted(pieces, key=itemgetter(0)):
            yield at, splitter.split(data)
        for _, splitter in self._passed if last else ():
            yield time.monotonic(), splitter.rest()


class _Watching(threading.Thread):
    """Looks at a run in its interval, until it is told to end."""

    def __init__(
        self,
        run: monitoring.RunMonitor,
        reader: logs.LineReader,
        passed: PassedStreams,
        output: RunOutput,
        interval: float,
    ) -> None:
        super().__init__(name="watching", daemon=True)
        self._run = run
        self._reader = reader
        self._passed = passed
        self._output = output
        self._interval = interval
        self._over = threading.Event()
        self._failed = False
        self._state: monitoring.RunState | None = None

    def run(self) -> None:
        """Look until the end, and once more then."""
        self._passed.start()
        while not self._over.wait(self._interval):
            self._look(last=False)
        self._passed.join()
        self._look(last=True)

    def end(self) -> monitoring.RunState | None:
        """Look for the last time; return how the run stood then."""
        self._over.set()
        self.join()
        return self._state

    def _look(self, last: bool) -> None:
        """Look; whatever goes wrong with that is reported once, and the command goes on."""
        if self._failed:
            return
        try:
            for at, lines in self._passed.lines(last):
                self._run.take([entry for line in lines if (entry := self._reader.read(line)) is not None], at)
            self._state = self._run.look(last)
            self._output.show(self._state, last)
        except Exception as error:
            self._failed = True
            what = error.one_line() if isinstance(error, CapacityError) else f"{type(error).__name__}: {error}"
            tell(f"capacity-tui: watching failed, the command goes on: {what}")


_STREAMS = (1, 2)


def work_in_output(samples: str | None, stages: tuple[str, ...]) -> tuple[float | None, profiling.WorkInOutput | None]:
    """Return how many samples there are where that is given, and what finds work in the output where it must be read.

    Raises:
        CapacityError: an expression cannot be read.
    """
    try:
        count = None if samples is None else float(samples)
    except ValueError:
        count = None
    if count is not None and not 0 < count < math.inf:
        raise click.UsageError("--samples must be above 0")
    parts = (stage.partition("=") for stage in stages)
    expressions = {name: expression for name, equals, expression in parts if equals}
    if len(stages) > 1 and len(expressions) < len(stages):
        raise click.UsageError("several stages need NAME=REGEX each, and names of their own")
    counting = samples if count is None else None
    return count, profiling.WorkInOutput(counting, expressions) if counting is not None or expressions else None


class OutputReading:
    """Reads what a command writes while it is passed on, and finds work in it."""

    def __init__(self, work: profiling.WorkInOutput) -> None:
        self._work = work
        self._passed = PassedStreams(())
        self._lock = threading.Lock()

    def started(self, command: tuple[str, ...]) -> runs.RunningCommand:
        """Start the command, its output in pipes; raises CapacityError where it cannot be started."""
        running, sources = _started(command)
        self._passed = PassedStreams(PassedOutput(*ends, None) for ends in zip(sources, _STREAMS, strict=True))
        self._passed.start()
        return running

    def look(self, engine: profiling.ProfilingEngine, last: bool = False) -> None:
        """Tell a profile what the output has told since the last look."""
        with self._lock:
            for at, lines in self._passed.lines(last):
                for line in lines:
                    self._work.take(line, at, engine)

    def end(self, engine: profiling.ProfilingEngine) -> None:
        """Tell the rest, once the command has ended."""
        self._passed.join()
        self.look(engine, last=True)
        self._work.end(time.monotonic(), engine)
        for name in self._work.never_begun(engine):
            engine.add_problem(f"stage {name} never began: no line of the output is as its expression says")
