"""Runs that go on or are past, and this machine as it is measured, as plain frozen data."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from capacity_tui.engine.record import dataclass


class Standing(StrEnum):
    """How a run stands."""

    GOES_ON = "goes on"
    UNWATCHED = "running, not watched"
    ENDED = "ended"
    FAILED = "failed"
    PAST = "past"
    EXAMPLE = "an example, made up"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run."""

    id: str  # what it is called
    standing: Standing  # how it stands
    cells: tuple[str, ...]  # what it has in each column
    has_plan: bool = False  # whether it followed a plan


class Band(NamedTuple):
    """What was predicted of a figure: the value with its range."""

    low: float
    value: float
    high: float


@dataclass(frozen=True, slots=True)
class RunGraph:
    """One figure of a run as it went."""

    title: str  # what it is
    now: str  # its newest value, as shown
    points: tuple[tuple[float, float], ...]  # place and value, by rising place
    places: tuple[float, float]  # the first and the last place that there is room for
    first: str  # the first place, as shown
    last: str  # the last place, as shown
    low: str  # lowest value that is drawn, as shown
    high: str  # highest value that is drawn, as shown
    ends: tuple[float, float]  # both as numbers
    band: Band | None = None  # what was predicted; None where nothing was
    predicted: str = ""  # the same, as shown
    verdict: str = ""  # on which side of the prediction it lies; empty without one
    is_inside: bool = True  # whether it lies within
    unit: str = ""  # of its values
    axis: str = "step"  # what places count: ``step`` or ``seconds``


@dataclass(frozen=True, slots=True)
class RunDevice:
    """A device, and who works on it."""

    name: str  # what it is called
    text: str  # how busy, full, hot it is
    share: float | None = None  # how busy, 1 for full; None where that is not known
    warning: str = ""  # what holds it back; empty for nothing
    processes: tuple[str, ...] = ()  # who holds its memory, a line each


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that was reported of a run."""

    time: str  # when, as shown
    level: str  # ``note``, ``warning`` or ``error``
    text: str


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """All there is to show of one run."""

    id: str  # what it is called
    head: str = ""  # how far it is, in one line
    graphs: tuple[RunGraph, ...] = ()  # its figures, those beside a prediction first
    devices: tuple[RunDevice, ...] = ()  # what it runs on
    events: tuple[RunEvent, ...] = ()  # what was reported of it, the newest first
    remarks: tuple[str, ...] = ()  # why it differs from its plan, and what to know of it


@dataclass(frozen=True, slots=True)
class Reading:
    """One live quantity at one moment."""

    name: str  # what it is called, constant over time
    value: float | None  # its value, None where the sensor is missing
    maximum: float | None  # value at which the graph is full, None to fit what was seen
    text: str  # the value as shown
    reason: str = ""  # why there is no value


@dataclass(frozen=True, slots=True)
class BenchmarkStep:
    """How far the benchmarks are."""

    name: str  # what is measured now
    number: int  # which of them it is, from 1
    total: int  # how many there are
    latest: str = ""  # the figure that just came in, with its spread, or why it was not measured; empty for none


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """How the benchmarks ended."""

    figures: int  # how many figures came in
    is_complete: bool  # whether none was stopped
    doubt: str = ""  # why the figures are kept apart and estimates do not use them; empty where they do


class Sampler(Protocol):
    """Reads the sensors of this machine."""

    def sample(self) -> tuple[Reading, ...]:
        """Return the present readings; may take some tens of milliseconds."""
