"""Everything an attempt reports: its output, the events of its trainer's callback, and its listeners."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.guard.attempt import Attempt
from capacity_tui.engine.runs.guard.callback import RESTART, TRAINER_EVENTS
from capacity_tui.engine.runs.guard.keeper import OLDER, OUTPUTS
from capacity_tui.engine.runs.history.records import RunRecord
from capacity_tui.engine.runs.logs.line_reader import LONGEST_LINE, LineReader, LogEntry
from capacity_tui.engine.runs.logs.log_files import FollowedFile, LineSplitter
from capacity_tui.engine.runs.monitor.run_monitor import RunState

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
        """Close the streams."""
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
                event = _event(line)
                if event is None:
                    entries += [entry for entry in (self._reader.read(line),) if entry is not None]
                else:
                    events.append(event)
                    self.restart = event if event["event"] == RESTART else self.restart
        return entries, events

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _event(line: str) -> Mapping[str, object] | None:
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) and "event" in document else None
