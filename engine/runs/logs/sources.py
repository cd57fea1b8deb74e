"""Where logs are: text files, documents that are written whole, event files, folders of them, pages of metrics."""

from __future__ import annotations

import json
import math
import os
import re
import select
import time
import urllib.error
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.runs.logs.event_file import EventReader
from capacity_tui.engine.runs.logs.line_reader import LineReader, LogEntry, flattened
from capacity_tui.engine.runs.logs.log_files import FollowedFile, LineSplitter, whole_file

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


class LogSource(Protocol):
    """A log that may grow; ``ended`` where it cannot any more."""

    notices: list[str]
    ended: bool = False
    files: tuple[FollowedFile, ...] = ()

    def poll(self, last: bool = False) -> list[LogEntry]:
        """Return what was added since the last call; ``last``: also what nothing ended yet."""

    def close(self) -> None:
        """Close its files."""
        for file in self.files:
            file.close()


class TextLog(LogSource):
    """A file of lines."""

    def __init__(self, path: Path, reader: LineReader) -> None:
        self._file = FollowedFile(path)
        self._splitter = LineSplitter()
        self._reader = reader
        self._restarts = 0
        self.files, self.notices = (self._file,), self._file.notices

    def poll(self, last: bool = False) -> list[LogEntry]:
        entries: list[LogEntry] = []
        while data := self._file.read():
            if self._file.restarts != self._restarts:
                self._restarts, self._splitter = self._file.restarts, LineSplitter()
            entries += _parsed_lines(self._reader, self._splitter.split(data))
            if not last:
                break
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
            notice = f"waiting for {self._path.name}: {_why(error)}"
            if notice not in self.notices:
                self.notices.append(notice)
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


class EventFile(LogSource):
    """An event file of TensorBoard."""

    def __init__(self, path: Path, reader: LineReader) -> None:
        self._file = FollowedFile(path)
        self._events = EventReader()
        self._names = reader.names
        self._reported_damage = False
        self._restarts = 0
        self.files, self.notices = (self._file,), self._file.notices

    def poll(self, last: bool = False) -> list[LogEntry]:
        entries: list[LogEntry] = []
        while data := self._file.read():
            if self._file.restarts != self._restarts:
                self._restarts, self._events = self._file.restarts, EventReader()
            for tag, value, step, at_seconds in zip(*self._events.read(data), strict=True):
                figures, program = self._names.figures([(tag, value)])
                if figures:
                    entries.append(LogEntry({"step": float(step), **figures}, program, at_seconds or None))
            if not last:
                break
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
            notice = f"no answer from {self._place}: {_why(error)}"
            if notice not in self.notices:
                self.notices.append(notice)
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


# A share is the same for all engines of a page, whereas what they count adds up.
_SHARE = re.compile(r"_(?:perc|ratio|usage)$")

_LINE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>(?:[^}\"]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*"
)

_BUCKET, _SUM, _COUNT = "_bucket", "_sum", "_count"


def read_metrics(text: str, before: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the numbers of a page by name, added up over labels, and what a later page is compared with.

    Of a histogram the mean of what came since the page before is given under its own name.
    """
    totals: dict[str, float] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _LINE.fullmatch(line.strip())
        if match is None or match["name"].endswith(_BUCKET):
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        if math.isfinite(value):
            name, known = match["name"], totals.get(match["name"], 0.0)
            totals[name] = max(known, value) if _SHARE.search(name) else known + value
    means: dict[str, float] = {}
    for name, total in totals.items():
        base = name.removesuffix(_SUM)
        if base != name and base + _COUNT in totals:
            count = totals[base + _COUNT] - before.get(base + _COUNT, 0.0)
            change = total - before.get(name, 0.0)
            if count > 0 and change >= 0:
                means[base] = change / count
    return {**totals, **means}, totals
