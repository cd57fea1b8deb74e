"""Reads the events of a run as they are written, by any process."""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from capacity_tui.engine.runs.live_run import EVENTS, LOOKS, LiveRun, moment, read_run
from capacity_tui.engine.runs.logs.followed_file import FollowedFile, LineSplitter
from capacity_tui.engine.runs.logs.run_curve import RunCurve

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


Axis = Literal["step", "seconds"]

Curve: TypeAlias = list[tuple[float, float]]

MOST_POINTS = 500

MOST_EVENTS = 200
"""Events besides looks that are kept, the newest."""

COURSE = "course"
"""The event with what a log held before anybody looked: steps, and figures by name, as lists."""

LOSS, STEP_SECONDS, TOKENS, SAMPLES = "loss", "step_seconds", "tokens_per_second", "samples_per_second"

DEVICE_MEMORY, MAIN_MEMORY = "device_memory_bytes", "main_memory_bytes"

_LOOK_FIGURES = (LOSS, TOKENS, SAMPLES)
"""Figures that a look has directly."""

_MAIN_MEMORY = ("rss_bytes", "memory_bytes")


@dataclass(slots=True)
class RunCourse:
    """The course of one run.

    Attributes:
        curves: by figure, points of rising place on the figure's axis.
        axes: the axis of each figure.
        look: the newest look; empty before the first.
        events: other events, the newest last.
    """

    curves: dict[str, Curve] = field(default_factory=dict)
    axes: dict[str, Axis] = field(default_factory=dict)
    look: Event = field(default_factory=dict)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    _began: float = 0.0
    _before: tuple[float, float] | None = None

    def take(self, events: Iterable[Event]) -> None:
        """Take what came."""
        for event in events:
            kind = event.get("event")
            if kind in LOOKS:
                self._take_look(event)
            elif kind == COURSE:
                self._take_course(event)
            else:
                self.events.append(event)

    def _take_look(self, event: Event) -> None:
        at = moment(event)
        self._began = self._began or at
        seconds, step = at - self._began, number(event.get("step"))
        for figure in _LOOK_FIGURES:
            self._put(figure, step, seconds, number(event.get(figure)))
        if step is not None:
            # Between two looks, so that evaluations and checkpoints count as often as they came.
            if self._before is not None and step > self._before[0]:
                self._put(STEP_SECONDS, step, seconds, (at - self._before[1]) / (step - self._before[0]))
            if self._before is None or step != self._before[0]:
                self._before = (step, at)
        self._put(DEVICE_MEMORY, None, seconds, _device_memory(event))
        self._put(MAIN_MEMORY, None, seconds, _main_memory(event))
        self.look = event

    def _take_course(self, event: Event) -> None:
        steps = event.get("steps")
        for figure in (LOSS, STEP_SECONDS, TOKENS, SAMPLES):
            values = event.get(figure)
            if isinstance(steps, list) and isinstance(values, list):
                for step, value in zip(map(number, steps), map(number, values), strict=False):
                    if step is not None:
                        self._put(figure, step, 0.0, value)

    def _put(self, figure: str, step: float | None, seconds: float, value: float | None) -> None:
        if value is None:
            return
        axis: Axis = "seconds" if step is None else "step"
        position = seconds if step is None else step
        curve = self.curves.setdefault(figure, [])
        if self.axes.setdefault(figure, axis) != axis:
            self.axes[figure] = axis
            curve.clear()  # the log began to have steps
        while curve and curve[-1][0] >= position:
            curve.pop()  # repeated by a run that resumed from an earlier step
        curve.append((position, value))


def course_of(curve: RunCurve, most: int = MOST_POINTS) -> Event:
    """Return the event with what a log held before anybody looked, at most so many steps of it."""
    seconds = dict(zip(*(column.tolist() for column in curve.step_seconds()), strict=True))
    points = curve.points[:: max(1, -(-len(curve.points) // most))]
    columns = {name: [finite(point.figures.get(name)) for point in points] for name in _LOOK_FIGURES}
    columns[STEP_SECONDS] = [finite(seconds.get(point.step)) for point in points]
    known = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return {"event": COURSE, "steps": [point.step for point in points], **known}


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold."""
    return value if value is not None and math.isfinite(value) else None


def number(value: object) -> float | None:
    """Return a number of an event; None where it is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def gpus_of(event: Event) -> tuple[Mapping[str, object], ...]:
    """Return a look's data of each GPU, under the names of ``monitor``."""
    gpus = event.get("gpus")
    return tuple(gpu for gpu in gpus if isinstance(gpu, dict)) if isinstance(gpus, list) else ()


def own_memory(gpu: Mapping[str, object]) -> float | None:
    """Return what the run holds of a GPU, else what anybody does."""
    amounts = [number(gpu.get(name)) for name in ("memory_own_bytes", "run_memory_bytes", "memory_used_bytes")]
    return next((held for held in amounts if held is not None), None)


def _device_memory(event: Event) -> float | None:
    held = [memory for gpu in gpus_of(event) if (memory := own_memory(gpu)) is not None]
    return max(held, default=None)


def _main_memory(event: Event) -> float | None:
    process = event.get("process")
    table = process if isinstance(process, dict) else event
    return next((held for name in _MAIN_MEMORY if (held := number(table.get(name))) is not None), None)
