"""One start of a guarded command: a separate process group that outlives its guard, and everything it reports.

A keeper stays between: it passes output on to the guard that started it, records the newest of it for one who comes
later, and writes down its number first and the exit code last.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import psutil

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import make_folder
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.command import BY_SIGNAL, CommandError, signals
from capacity_tui.engine.runs.guard import keeper
from capacity_tui.engine.runs.guard.callback import RESTART, TRAINER_EVENTS
from capacity_tui.engine.runs.guard.keeper import OLDER, OUTPUTS
from capacity_tui.engine.runs.history.records import RunRecord
from capacity_tui.engine.runs.live_run import ProcessIdentity, identity_of
from capacity_tui.engine.runs.logs.line_reader import LONGEST_LINE, LineReader, LogEntry
from capacity_tui.engine.runs.logs.sources import FollowedFile, LineSplitter
from capacity_tui.engine.runs.monitor.run_monitor import RunState
from capacity_tui.engine.runs.run_events import parsed_event

RUN_VARIABLE, ATTEMPT_VARIABLE = "CAPACITY_TUI_RUN_ID", "CAPACITY_TUI_RUN_ATTEMPT"
"""Variables that mark the processes of an attempt, regardless of their parents."""
_KEEPER = (sys.executable, "-I", "-S", keeper.__file__)
_AT_DEFAULT = signals("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGQUIT", "SIGTERM")
_TO_ALL = signals("SIGINT", "SIGQUIT")  # Signals that a terminal sends to a whole group
_ENDING = signals("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_FIRST_WORD_SECONDS = 10.0
_POLL_SECONDS = 0.05


class Attempt:
    """One start of a command, made by this process or by one before it."""

    def __init__(self, folder: Path, run: str, number: int) -> None:
        self.folder = folder
        self.run = run
        self.number = number
        # file descriptors with its standard output and error, where this process started it; else empty
        self.pipes: tuple[int, ...] = ()
        # when it was first sent a signal that ends most commands, by the monotonic clock; None if never
        self.asked_to_end: float | None = None
        self._keeper: ProcessIdentity | None = None
        self._child: int | None = None
        self._reaped_exit_code: int | None = None

    @property
    def pid(self) -> int | None:
        """Number of its first process; None where that never started."""
        return self._written(keeper.PID)

    @property
    def exit_code(self) -> int | None:
        """How it ended, 128 and the number of a signal; None while it runs, or where unknown.

        Whoever started it knows by itself, whatever the disk did; others read what was written down.
        """
        return self._written(keeper.EXIT_CODE) if self._reaped_exit_code is None else self._reaped_exit_code

    @property
    def goes_on(self) -> bool:
        """Whether its first process lives."""
        self._reap()
        if self._keeper is None:
            self._find_keeper()
        return self._keeper is not None and bool(self._keeper.lives)

    def start(self, words: Sequence[str], environment: Mapping[str, str], work: Path, stdin: int) -> None:
        """Start the command, which reads a descriptor; returns once its number stands in the folder.

        Raises:
            CapacityError: it cannot be started, or its folder cannot be written.
        """
        make_folder(self.folder)
        marked = {**environment, RUN_VARIABLE: self.run, ATTEMPT_VARIABLE: str(self.number)}
        pipes = [os.pipe() for _ in keeper.OUTPUTS]
        actions = [(os.POSIX_SPAWN_DUP2, end, at) for at, end in enumerate((stdin, *(end for _, end in pipes)))]
        command = (*_KEEPER, str(self.folder), str(work), *words)
        try:
            pid = os.posix_spawn(
                command[0], command, marked, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_AT_DEFAULT
            )
        except OSError as error:
            for end, _ in pipes:
                os.close(end)
            raise CommandError(f"{words[0]} cannot be started", str(error.strerror or error).lower()) from None
        finally:
            for _, end in pipes:
                os.close(end)
        self.pipes = tuple(end for end, _ in pipes)
        self._child, self._keeper = pid, identity_of(pid)
        until = time.monotonic() + _FIRST_WORD_SECONDS
        while self.pid is None and self.goes_on and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        if self.pid is None:
            raise StorageError("cannot be written", hint="free some space", place=Place(str(self.folder)))

    def was_started(self) -> bool:
        """Return whether its command was started, by any guard; waits for one that is just starting."""
        until = time.monotonic() + _FIRST_WORD_SECONDS
        while self.pid is None:
            if not self.processes() or time.monotonic() > until:
                return self.pid is not None
            time.sleep(_POLL_SECONDS)
        return True

    def wait(self, seconds: float) -> bool:
        """Wait for the end at most so long; return whether it has come."""
        until = time.monotonic() + seconds
        while self.goes_on:
            if (remaining := until - time.monotonic()) <= 0:
                return False
            time.sleep(min(_POLL_SECONDS, remaining))
        return True

    def ended_with(self) -> int:
        """Return the exit code of one that has ended; one without any record was killed together with its keeper."""
        code = self.exit_code
        return BY_SIGNAL + signal.SIGKILL if code is None else code

    def processes(self) -> tuple[psutil.Process, ...]:
        """Return its processes that live, found by what all of them were given in their environment."""
        return tuple(process for process in psutil.process_iter() if self._is_mine(process))

    def send(self, number: int) -> None:
        """Send a signal as a terminal would: those of keys to the group, others to the command alone."""
        pid = self.pid
        if pid is None or not self.goes_on:
            return
        if number in _ENDING:
            self.asked_to_end = self.asked_to_end or time.monotonic()
        with suppress(ProcessLookupError, PermissionError, psutil.Error):
            children = () if number in _TO_ALL else psutil.Process(pid).children()
            if children:
                os.kill(children[0].pid, number)
            else:
                os.killpg(pid, number)
        if number in _ENDING:  # a halted process would not receive it
            self.send_to_all(signal.SIGCONT)

    def send_to_all(self, number: int) -> None:
        """Send a signal to every process of the attempt."""
        for process in self.processes():
            with suppress(psutil.Error):
                process.send_signal(number)

    def end(self, patience: float, meanwhile: Callable[[tuple[psutil.Process, ...]], object] = len) -> None:
        """End every process: those that do not by themselves within some seconds are killed.

        Args:
            patience: seconds to wait.
            meanwhile: called again and again with those that are left; reads the output, which would hold them up.
        """
        self.send_to_all(signal.SIGTERM)
        self.send_to_all(signal.SIGCONT)
        until = time.monotonic() + patience
        while alive := self.processes():
            meanwhile(alive)
            for process in alive if time.monotonic() >= until else ():
                with suppress(psutil.Error):
                    process.kill()
            self.wait(_POLL_SECONDS)
            time.sleep(_POLL_SECONDS)

    def _written(self, name: str) -> int | None:
        """Return a number that the keeper has written down whole."""
        with suppress(OSError, ValueError):
            text = (self.folder / name).read_text()
            return int(text) if text.endswith("\n") else None
        return None

    def _reap(self) -> None:
        """Take the exit code of a first process that this one started, and that has ended."""
        if self._child is None:
            return
        ended, status = os.waitpid(self._child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            self._child, self._reaped_exit_code = None, code if code >= 0 else BY_SIGNAL - code

    def _find_keeper(self) -> None:
        """Find the first process of one that another guard started; a number may be another process's by now."""
        pid = self.pid
        with suppress(psutil.Error, OSError):
            if pid is not None and self._is_mine(psutil.Process(pid)):
                self._keeper = identity_of(pid)

    def _is_mine(self, process: psutil.Process) -> bool:
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                return False
            environment = process.environ()
        except (psutil.Error, OSError):
            return False
        return environment.get(RUN_VARIABLE) == self.run and environment.get(ATTEMPT_VARIABLE) == str(self.number)


PassOn: TypeAlias = Callable[[int, bytes], None]  # Takes what came on stdout (1) or stderr (2)
PASSING_SECONDS, READING_SECONDS = 0.1, 0.1  # What a call takes at most to pass output on, and to read lines of it
MOST_LINES, MOST_CHARACTERS = 20_000, 1 << 23  # Lines, and characters of lines, that wait to be read at most
_PIECE = 1 << 18
_MUCH = 1 << 15  # Half of what a pipe holds
_LONGEST_TAIL = 1 << 16


class CommandOutput:
    """The output of an attempt, from its start as far as it is still there.

    Args:
        attempt: which; its output is passed on where this process started it, else only what is still to come is.
        pass_on: takes every piece that was not passed on before.
    """

    def __init__(self, attempt: Attempt, pass_on: PassOn, reader: LineReader) -> None:
        if attempt.pipes:
            self._sources: list[_Pipe | _Record] = [_Pipe(end) for end in attempt.pipes]
        else:
            self._sources = [_Record(attempt, name) for name in OUTPUTS]
        self._pass_on = pass_on
        self._reader = reader
        self._splitters = [LineSplitter() for _ in self._sources]
        self._lines = _WaitingLines()
        self.tail = b""  # the newest of both streams
        # whether so much came with the last call that more is on its way: a full pipe holds the command up
        self.is_behind = False

    @property
    def unread_lines(self) -> int:
        """How many lines came too fast to be read; they were passed on."""
        return self._lines.dropped

    def poll(self, last: bool = False) -> list[LogEntry]:
        """Forward new output, and return the entries of its lines; ``last``: to the very end."""
        self._pass_on_all(last)
        if last:
            for splitter in self._splitters:
                self._lines.add(splitter.rest())
        entries, until = [], time.monotonic() + READING_SECONDS
        while (last or time.monotonic() < until) and (line := self._lines.next()) is not None:
            entry = self._reader.read(line)
            if entry is not None:
                entries.append(entry)
        return entries

    def close(self) -> None:
        for source in self._sources:
            source.close()

    def _pass_on_all(self, last: bool) -> None:
        until = time.monotonic() + PASSING_SECONDS
        has_more, passed = True, 0
        while has_more and (last or time.monotonic() < until):
            has_more = False
            for index, source in enumerate(self._sources):
                data, fresh = source.read()
                if fresh:
                    self._pass_on(index + 1, fresh)
                if data:
                    has_more, passed = True, passed + len(data)
                    self.tail = (self.tail + data)[-_LONGEST_TAIL:]
                    self._lines.add(self._splitters[index].split(data))
        self.is_behind = passed >= _MUCH


class _Pipe:
    """A stream that comes from the keeper of an attempt."""

    def __init__(self, end: int) -> None:
        self._end: int | None = end
        os.set_blocking(end, False)

    def read(self) -> tuple[bytes, bytes]:
        """Return what has come, all of it fresh."""
        data = b""
        with suppress(BlockingIOError):
            data = b"" if self._end is None else os.read(self._end, _PIECE)
        return data, data

    def close(self) -> None:
        """Close this end: the keeper continues without."""
        if self._end is not None:
            os.close(self._end)
            self._end = None


class _Record:
    """A stream as the keeper of an attempt records it, which another guard started."""

    def __init__(self, attempt: Attempt, name: str) -> None:
        path = attempt.folder / name
        parts = [path.with_name(name + OLDER), path]
        self._known = sum(part.stat().st_size for part in parts if part.exists())
        self._parts = [FollowedFile(part) for part in parts]

    def read(self) -> tuple[bytes, bytes]:
        """Return what has come; fresh is what was written since this guard began."""
        data = self._parts[0].read()
        if not data and len(self._parts) > 1:  # what the older part holds later was read as the newest
            self._parts.pop(0).close()
            data = self._parts[0].read()
        known = min(self._known, len(data))
        self._known -= known
        return data, data[known:]

    def close(self) -> None:
        for part in self._parts:
            part.close()


class _WaitingLines:
    """Lines that are still to be read; of too many the oldest are dropped."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._characters = 0
        self.dropped = 0

    def add(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._lines.append(line[:LONGEST_LINE])
            self._characters += min(len(line), LONGEST_LINE)
        while len(self._lines) > MOST_LINES or self._characters > MOST_CHARACTERS:
            self._characters -= len(self._lines.popleft())
            self.dropped += 1

    def next(self) -> str | None:
        if not self._lines:
            return None
        line = self._lines.popleft()
        self._characters -= len(line)
        return line


Event: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Listeners:
    """Callbacks of a guard."""

    event: Callable[[Event], None]  # takes what happened, as plain data
    # receives the state of the run after each sample, and whether that was the last of an attempt
    state: Callable[[RunState, bool], None]
    output: PassOn
    # keeps the result of the run; called once or, where guards were killed, more often with the same id
    entry: Callable[[RunRecord], None]


class TrainerWords:
    """The file to which the callback of an attempt appends."""

    def __init__(self, folder: Path, reader: LineReader) -> None:
        self._file = FollowedFile(folder / TRAINER_EVENTS)
        self._lines = LineSplitter()
        self._reader = reader
        # what the trainer asked for when it stopped to be started again; empty where it did not
        self.restart: Mapping[str, object] = {}

    def poll(self) -> tuple[list[LogEntry], list[Mapping[str, object]]]:
        """Return what came since the last call: figures of steps, and events."""
        entries: list[LogEntry] = []
        events: list[Mapping[str, object]] = []
        while data := self._file.read():
            for line in self._lines.split(data):
                event = parsed_event(line)
                if event is None or "event" not in event:
                    entries += [entry for entry in (self._reader.read(line),) if entry is not None]
                else:
                    events.append(event)
                    self.restart = event if event["event"] == RESTART else self.restart
        return entries, events

    def close(self) -> None:
        self._file.close()
