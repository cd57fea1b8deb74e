"""Reads the events of a run as they are written, by any process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from capacity_tui.engine.observe.logs.following import FollowedFile, LineSplitter
from capacity_tui.engine.observe.runs.live_run import EVENTS, LOOKS, LiveRun, read_run

Event = dict[str, object]
_TAIL_BYTES = 1 << 16


class NewEvents(NamedTuple):
    """What came since the last time.

    Attributes:
        events: in their order.
        from_start: whether they begin with the first: what was read before is among them, thinned out.
    """

    events: tuple[Event, ...]
    from_start: bool


class RunFollower:
    """Follows one run through its folder; incomplete and invalid lines are left out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = FollowedFile(folder / EVENTS)
        self._lines = LineSplitter()
        self._is_first = True

    def run(self) -> LiveRun:
        """Return what runs and who watches it, as that is now.

        Raises:
            StorageError: it was removed.
        """
        return read_run(self._folder)

    def poll(self) -> NewEvents:
        """Return the events that came since the last call."""
        lines: list[str] = []
        from_start, self._is_first = self._is_first, False
        while data := self._read():
            if self._file.started_anew:
                self._file.started_anew, self._lines = 0, LineSplitter()
                lines, from_start = [], True
            lines += self._lines.split(data)
        return NewEvents(tuple(event for line in lines if (event := _event(line)) is not None), from_start)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> bytes:
        data = self._file.read()
        self._file.notices.clear()
        return data


def _event(line: str) -> Event | None:
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def newest_look(folder: Path) -> Event:
    """Return the newest look at a run, from the end of its events; empty where there is none."""
    try:
        with (folder / EVENTS).open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    events = (event for line in reversed(lines) if (event := _event(line)) is not None)
    return next((event for event in events if event.get("event") in LOOKS), {})
