"""Logs, read as they grow: text files, documents that are written whole, event files, folders, pages of metrics."""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import time
import urllib.error
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.runs.logs.event_file import EventReader
from capacity_tui.engine.runs.logs.line_reader import LineReader, LogEntry, flattened, read_metrics

STANDARD_INPUT = "-"
ANSWER_SECONDS = 2.0
READING_SECONDS = 0.5  # What reading a pipe takes at most in one go
LARGEST_PAGE = 1 << 24
_PIPED_BYTES = 1 << 16
EVENT_FILES = "*tfevents*"

# In a folder, the newest file of the first kind that it holds.
IN_FOLDERS = (EVENT_FILES, "trainer_state.json", "metrics.csv", "*.jsonl", "*.log")

_TIMES = ("timestamp", "_timestamp", "time", "wall_time")
_LEAST_TIMESTAMP = 1e8  # seconds since 1970 of a date; smaller numbers are durations

MOST_BYTES = 1 << 23  # Bytes taken in one go, so that a long log does not block the watcher
HEAD_BYTES = 256
LARGEST_DOCUMENT = 1 << 26  # Bytes of a file that is read whole; a larger one is no log of a run


class FollowedFile:
    """New bytes of a file, which need not exist yet, with each read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []  # what happened to the file, in words, since they were last taken
        self.restarts = 0  # how often its content began again
        self._file: BinaryIO | None = None
        self._identity = (0, 0)
        self._head = b""
        self._position = 0
        self._reported_missing = False

    def read(self) -> bytes:
        """Return what was added, at most ``MOST_BYTES``; nothing where nothing was, or the file cannot be read now."""
        file = self._file or self._open()
        if file is None:
            return b""
        try:
            if self._began_again(file):
                self._start_over(f"{self.path.name} was rewritten, and is read from its start")
            data = self._read_on(file)
            if not data and self._replaced():
                self.close()
                file = self._open()
                if file is not None:
                    self._start_over(f"{self.path.name} was replaced, and the new file is read")
                    data = self._read_on(file)
        except OSError as error:
            self._tell(f"{self.path.name} cannot be read now: {error.strerror or error}")
            self.close()
            return b""
        return data

    def close(self) -> None:
        """Close the file; the next read opens it again, where it left off if it is the same."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO | None:
        try:
            opened, status = opened_file(self.path)
        except OSError as error:
            if not self._reported_missing:
                self._tell(f"waiting for {self.path.name}: {error.strerror or error}")
                self._reported_missing = True
            return None
        identity = (status.st_dev, status.st_ino)
        if identity != self._identity:
            self._identity, self._position, self._head = identity, 0, b""
        self._file, self._reported_missing = opened, False
        return opened

    def _read_on(self, file: BinaryIO) -> bytes:
        file.seek(self._position)
        data = file.read(MOST_BYTES)
        if len(self._head) < HEAD_BYTES and self._position == len(self._head):
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._position += len(data)
        return data

    def _began_again(self, file: BinaryIO) -> bool:
        """Return whether the file is shorter than what was read, or starts with something else."""
        if os.fstat(file.fileno()).st_size < self._position:
            return True
        file.seek(0)
        return file.read(len(self._head)) != self._head

    def _replaced(self) -> bool:
        """Return whether another file has the name now; one that was moved away is read until there is one."""
        try:
            status = self.path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) != self._identity

    def _start_over(self, notice: str) -> None:
        self._position, self._head = 0, b""
        self.restarts += 1
        self._tell(notice)

    def _tell(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


def opened_file(path: Path) -> tuple[BinaryIO, os.stat_result]:
    """Open a regular file to read, and return what it is; OSError for a pipe or device, which would block."""
    opened = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    status = os.fstat(opened.fileno())
    if not stat.S_ISREG(status.st_mode):
        opened.close()
        raise OSError(errno.EINVAL, "it is not a regular file")
    return opened, status


def whole_file(path: Path, most: int = LARGEST_DOCUMENT) -> bytes:
    """Return what a file holds; raises OSError where it cannot be read, is no regular file, or holds more bytes."""
    opened, status = opened_file(path)
    with opened:
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")
        return opened.read(most)


class LineSplitter:
    """Makes lines of bytes that come in any pieces; progress bars that overwrite themselves are a line each time.

    Args:
        longest: bytes of a line that are kept; the rest of it is dropped.
    """

    def __init__(self, longest: int = 1 << 20) -> None:
        self._longest = longest
        self._buffer = b""
        self._dropping = False

    def split(self, data: bytes) -> list[str]:
        """Return the lines that are complete by now."""
        *complete, tail = (self._buffer + data).replace(b"\r", b"\n").split(b"\n")
        if self._dropping and complete:
            complete[0] = b""
            self._dropping = False
        if len(tail) > self._longest:
            if not self._dropping:
                complete.append(tail[: self._longest])
            tail, self._dropping = b"", True
        elif self._dropping:
            tail = b""
        self._buffer = tail
        return [line[: self._longest].decode("utf-8", "replace") for line in complete if line]

    def rest(self) -> list[str]:
        """Return the last line, which nothing ended yet, and forget it."""
        last, self._buffer = self._buffer, b""
        return [last.decode("utf-8", "replace")] if last else []


class LogSource(Protocol):
    """A log that may grow; ``ended`` where it cannot any more."""

    notices: list[str]
    ended: bool = False
    files: tuple[FollowedFile, ...] = ()

    def poll(self, last: bool = False) -> list[LogEntry]:
        """Return what was added since the last call; ``last``: also what nothing ended yet."""

    def note(self, notice: str) -> None:
        """Give a notice that was not given since they were last taken."""
        if notice not in self.notices:
            self.notices.append(notice)

    def close(self) -> None:
        """Close its files."""
        for file in self.files:
            file.close()


class _FollowedLog(LogSource):
    """A file that grows."""

    def __init__(self, path: Path, reader: LineReader) -> None:
        self._file, self._reader, self._restarts = FollowedFile(path), reader, 0
        self.files, self.notices = (self._file,), self._file.notices
        self._begin()

    def _begin(self) -> None:
        """Forget what was read in part: the file began again."""

    def _pieces(self, last: bool) -> Iterator[bytes]:
        """Yield what was added: one piece, or all of it where the file is read for the last time."""
        while data := self._file.read():
            if self._file.restarts != self._restarts:
                self._restarts = self._file.restarts
                self._begin()
            yield data
            if not last:
                return


class TextLog(_FollowedLog):
    """A file of lines."""

    def _begin(self) -> None:
        self._splitter = LineSplitter()

    def poll(self, last: bool = False) -> list[LogEntry]:
        pieces = self._pieces(last)
        entries = [entry for data in pieces for entry in _parsed_lines(self._reader, self._splitter.split(data))]
        return entries + _parsed_lines(self._reader, self._splitter.rest()) if last else entries


class PipedLog(LogSource):
    """Lines that come through a pipe, by default this program's standard input.

    A call takes a bounded time: what comes faster waits in the pipe, and blocks the writer, so that none is lost.
    """

    def __init__(self, reader: LineReader, source: int = 0) -> None:
        self._source = source
        self._splitter = LineSplitter()
        self._reader = reader
        self.notices: list[str] = []

    def poll(self, last: bool = False) -> list[LogEntry]:
        """Return what has come by now; ``last``: with a line that nothing ended yet."""
        entries: list[LogEntry] = []
        until = time.monotonic() + READING_SECONDS
        while not self.ended and time.monotonic() < until and select.select([self._source], [], [], 0)[0]:
            data = os.read(self._source, _PIPED_BYTES)
            self.ended = not data
            entries += _parsed_lines(self._reader, self._splitter.split(data))
        return entries + _parsed_lines(self._reader, self._splitter.rest()) if self.ended or last else entries


class JsonDocument(LogSource):
    """A file that is written whole each time, with a list of records in it: that of the Trainer's state."""

    def __init__(self, path: Path, reader: LineReader) -> None:
        self._path = path
        self._names = reader.names
        self._seen = 0
        self._stamp: tuple[int, int] | None = None
        self.notices: list[str] = []

    def poll(self, last: bool = False) -> list[LogEntry]:  # noqa: ARG002 - it is always read to its end
        """Return the records that are new; a document that is being written is read at the next call."""
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return []
            document = json.loads(whole_file(self._path))
        except (OSError, ValueError, RecursionError) as error:
            self.note(f"waiting for {self._path.name}: {_why(error)}")
            return []
        self._stamp = stamp
        records = _records(document)
        new, self._seen = records[self._seen if len(records) >= self._seen else 0 :], len(records)
        head = document if isinstance(document, dict) else {}
        plain = {name: value for name, value in head.items() if not isinstance(value, dict | list)}
        return [entry for record in (*new, plain) if (entry := self._entry(record)) is not None]

    def _entry(self, record: dict[str, object]) -> LogEntry | None:
        figures, program = self._names.figures(flattened(record))
        times = (value for name in _TIMES if isinstance(value := record.get(name), int | float))
        at_seconds = next((float(value) for value in times if value > _LEAST_TIMESTAMP), None)
        return LogEntry(figures, program, at_seconds) if figures else None


class EventFile(_FollowedLog):
    """An event file of TensorBoard."""

    _reported_damage = False

    def _begin(self) -> None:
        self._events = EventReader()

    def poll(self, last: bool = False) -> list[LogEntry]:
        entries: list[LogEntry] = []
        for data in self._pieces(last):
            for tag, value, step, at_seconds in zip(*self._events.read(data), strict=True):
                figures, program = self._reader.names.figures([(tag, value)])
                if figures:
                    entries.append(LogEntry({"step": float(step), **figures}, program, at_seconds or None))
        if self._events.damaged and not self._reported_damage:
            self._reported_damage = True
            self.notices.append("records of the event file are damaged, and left out")
        return entries


class MetricsPage(LogSource):
    """A page, or a file, of metrics as Prometheus collects them: read whole each time."""

    def __init__(self, place: str, reader: LineReader) -> None:
        self._place = place
        self._names = reader.names
        self._before: dict[str, float] = {}
        self.notices: list[str] = []

    def poll(self, last: bool = False) -> list[LogEntry]:  # noqa: ARG002 - a page has no end to wait for
        """Return what the page says now; means of what is counted in histograms are those since the last call."""
        try:
            text = self._text()
        except (OSError, ValueError, urllib.error.URLError) as error:
            self.note(f"no answer from {self._place}: {_why(error)}")
            return []
        values, self._before = read_metrics(text, self._before)
        figures, program = self._names.figures(values.items())
        return [LogEntry(figures, program)] if figures else []

    def _text(self) -> str:
        if not _is_address(self._place):
            return whole_file(Path(self._place), LARGEST_PAGE).decode("utf-8", "replace")
        from urllib.request import Request, urlopen  # noqa: PLC0415 - few runs have a page of metrics

        request = Request(self._place, headers={"Accept": "text/plain"})  # noqa: S310 - http(s) alone
        with urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - likewise
            page: bytes = answer.read(LARGEST_PAGE)
        return page.decode("utf-8", "replace")


def open_log(place: str, reader: LineReader) -> LogSource:
    """Return the log at a place: a file, which need not exist yet, a folder with one, a page of metrics, or ``-``."""
    if place == STANDARD_INPUT:
        return PipedLog(reader)
    if _is_address(place):
        return MetricsPage(place, reader)
    path = Path(place)
    if path.is_dir():
        path = _newest_in(path)
    if path.suffix == ".prom":
        return MetricsPage(str(path), reader)
    if path.match(EVENT_FILES):
        return EventFile(path, reader)
    return JsonDocument(path, reader) if path.suffix == ".json" else TextLog(path, reader)


def _parsed_lines(reader: LineReader, lines: Iterable[str]) -> list[LogEntry]:
    return [entry for line in lines if (entry := reader.read(line)) is not None]


def _is_address(place: str) -> bool:
    return urlsplit(place).scheme in ("http", "https")


def _newest_in(folder: Path) -> Path:
    try:
        for pattern in IN_FOLDERS:
            files = [path for path in folder.rglob(pattern) if path.is_file()]
            if files:
                return max(files, key=lambda path: path.stat().st_mtime)
    except OSError as error:
        raise StorageError(
            "the folder cannot be read", error.strerror or str(error), place=Place(str(folder))
        ) from None
    hint = f"name the file, or a folder with one of {', '.join(IN_FOLDERS)}"
    raise StorageError("the folder holds no log", hint=hint, place=Place(str(folder)))


def _records(document: object) -> Sequence[dict[str, object]]:
    """Return the longest list of objects in a document, or its own."""
    if isinstance(document, list):
        lists = [document]
    else:
        lists = [value for value in document.values() if isinstance(value, list)] if isinstance(document, dict) else []
    records = [[record for record in values if isinstance(record, dict)] for values in lists]
    return max(records, key=len, default=[])


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not a whole document"
