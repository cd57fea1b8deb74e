"""What a guarded command writes to its files, passed on as it comes and read as a log."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from capacity_tui.engine.observe.logs.entry import LogEntry
from capacity_tui.engine.observe.logs.following import LineSplitter
from capacity_tui.engine.observe.logs.line_reader import LineReader

PassOn: TypeAlias = Callable[[int, bytes], None]
"""Takes what came on stdout (1) or stderr (2)."""
_PIECE = 1 << 20
_LONGEST_TAIL = 1 << 16


class CommandOutput:
    """The files of an attempt's output, from their start.

    Args:
        files: of stdout and stderr.
        pass_on: takes every piece that was not passed on before.
        reader: reads its lines as a log.
        is_new: whether nothing was passed on before; else only what is still to come is.
    """

    def __init__(self, files: tuple[Path, ...], pass_on: PassOn, reader: LineReader, is_new: bool) -> None:
        self._files = files
        self._pass_on = pass_on
        self._reader = reader
        self._splitters = [LineSplitter() for _ in files]
        self._read = [0 for _ in files]
        self._passed = [0 if is_new else _size(file) for file in files]
        self.tail = b""

    def poll(self, last: bool = False) -> list[LogEntry]:
        """Pass on what came since the last call, and return what its lines tell; ``last``: also the one without end."""
        lines: list[str] = []
        for place, file in enumerate(self._files):
            while data := _piece(file, self._read[place]):
                seen = self._passed[place] - self._read[place]
                self._read[place] += len(data)
                self.tail = (self.tail + data)[-_LONGEST_TAIL:]
                lines += self._splitters[place].split(data)
                if seen < len(data):
                    self._pass_on(place + 1, data[max(0, seen) :])
                    self._passed[place] = self._read[place]
            if last:
                lines += self._splitters[place].rest()
        return [entry for line in lines if (entry := self._reader.read(line)) is not None]


def _piece(file: Path, start: int) -> bytes:
    try:
        with file.open("rb") as opened:
            if os.fstat(opened.fileno()).st_size <= start:
                return b""
            opened.seek(start)
            return opened.read(_PIECE)
    except OSError:
        return b""


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
