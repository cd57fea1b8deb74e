"""Named stages of a run: how long each took and how many samples it got done, however often it was entered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a run: seconds in it, and samples done in it, None where none were counted."""

    name: str
    seconds: float
    samples: float | None

    @property
    def samples_per_second(self) -> float | None:
        """The rate at which the stage works; None without samples."""
        return self.samples / self.seconds if self.samples is not None and self.seconds > 0 else None


class OpenStage:
    """An open stage, which counts finished samples."""

    def __init__(self) -> None:
        self.samples: float | None = None

    def done(self, samples: float = 1) -> None:
        """Count samples that are done."""
        self.samples = (self.samples or 0) + samples


Entry: TypeAlias = tuple[str, float, OpenStage]
"""A stage that was entered: its name, when, and what is counted in it."""


class Stages:
    """The stages of a run, entered by any of its threads.

    Args:
        clock: monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._closed: dict[str, tuple[float, float | None]] = {}
        self._open: list[Entry] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[OpenStage]:
        """Work on a stage."""
        entry = self.enter(name)
        try:
            yield entry[2]
        finally:
            self.leave(entry)

    def enter(self, name: str, at: float | None = None) -> Entry:
        """Begin a stage, now or at a moment of the clock, and return what ``leave`` ends it by."""
        entry = (name, self._clock() if at is None else at, OpenStage())
        with self._lock:
            self._open.append(entry)
            self._closed.setdefault(name, (0.0, None))
        return entry

    def leave(self, entry: Entry, at: float | None = None) -> None:
        """End a stage, now or at a moment of the clock."""
        with self._lock:
            if entry in self._open:
                self._open.remove(entry)
                self._closed[entry[0]] = self._with(entry, self._closed, self._clock() if at is None else at)

    @property
    def current(self) -> str:
        """The stage entered last of those that are open; nothing between stages."""
        with self._lock:
            return self._open[-1][0] if self._open else ""

    def totals(self) -> tuple[Stage, ...]:
        """Return all stages in the order in which they began; those open count until now."""
        with self._lock:
            totals = dict(self._closed)
            for entry in self._open:
                totals[entry[0]] = self._with(entry, totals, self._clock())
        return tuple(Stage(name, seconds, samples) for name, (seconds, samples) in totals.items())

    @staticmethod
    def _with(entry: Entry, totals: Mapping[str, tuple[float, float | None]], at: float) -> tuple[float, float | None]:
        """Return what a stage comes to with one more time that it was entered."""
        name, began, opened = entry
        seconds, samples = totals[name]
        if opened.samples is not None:
            samples = (samples or 0) + opened.samples
        return seconds + at - began, samples
