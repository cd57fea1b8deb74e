"""Events of a trainer's callback, read as they come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from capacity_tui.engine.observe.guard.trainers.callback import RESTART, TRAINER_EVENTS
from capacity_tui.engine.observe.logs.entry import LogEntry
from capacity_tui.engine.observe.logs.following import FollowedFile, LineSplitter
from capacity_tui.engine.observe.logs.line_reader import LineReader


class TrainerWords:
    """The file to which the callback of an attempt appends.

    Args:
        reader: reads its lines as those of a log.

    Attributes:
        restart: what the trainer asked for when it stopped to be started again; empty where it did not.
    """

    def __init__(self, folder: Path, reader: LineReader) -> None:
        self._file = FollowedFile(folder / TRAINER_EVENTS)
        self._lines = LineSplitter()
        self._reader = reader
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
