"""Runs that go on or are past, and this machine as it is measured, as plain frozen data."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    pass


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
    """One run.

    Attributes:
        id: what it is called.
        standing: how it stands.
        cells: what it has in each column.
        has_plan: whether it followed a plan.
    """

    id: str
    standing: Standing
    cells: tuple[str, ...]
    has_plan: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """What was predicted of a figure: the value with its range."""

    low: float
    value: float
    high: float


@dataclass(frozen=True, slots=True)
class RunGraph:
    """One figure of a run as it went.

    Attributes:
        title: what it is.
        now: its newest value, as shown.
        points: place and value, by rising place.
        places: the first and the last place that there is room for.
        first: the first place, as shown.
        last: the last place, as shown.
        low: lowest value that is drawn, as shown.
        high: highest value that is drawn, as shown.
        ends: both as numbers.
        band: what was predicted; None where nothing was.
        predicted: the same, as shown.
        verdict: on which side of the prediction it lies; empty without one.
        is_inside: whether it lies within.
        unit: of its values.
        axis: what places count: ``step`` or ``seconds``.
    """

    title: str
    now: str
    points: tuple[tuple[float, float], ...]
    places: tuple[float, float]
    first: str
    last: str
    low: str
    high: str
    ends: tuple[float, float]
    band: Band | None = None
    predicted: str = ""
    verdict: str = ""
    is_inside: bool = True
    unit: str = ""
    axis: str = "step"


@dataclass(frozen=True, slots=True)
class RunDevice:
    """A device, and who works on it.

    Attributes:
        name: what it is called.
        text: how busy, full, hot it is.
        share: how busy, 1 for full; None where that is not known.
        warning: what holds it back; empty for nothing.
        processes: who holds its memory, a line each.
    """

    name: str
    text: str
    share: float | None = None
    warning: str = ""
    processes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that was reported of a run.

    Attributes:
        time: when, as shown.
        level: ``note``, ``warning`` or ``error``.
        text: what.
    """

    time: str
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """All there is to show of one run.

    Attributes:
        id: what it is called.
        head: how far it is, in one line.
        graphs: its figures, those beside a prediction first.
        devices: what it runs on.
        events: what was reported of it, the newest first.
        remarks: why it differs from its plan, and what to know of it.
    """

    id: str
    head: str = ""
    graphs: tuple[RunGraph, ...] = ()
    devices: tuple[RunDevice, ...] = ()
    events: tuple[RunEvent, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """One live quantity at one moment.

    Attributes:
        name: what it is called, constant over time.
        value: its value, None where the sensor is missing.
        maximum: value at which the graph is full, None to fit what was seen.
        text: the value as shown.
        reason: why there is no value.
    """

    name: str
    value: float | None
    maximum: float | None
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BenchmarkStep:
    """How far the benchmarks are.

    Attributes:
        name: what is measured now.
        number: which of them it is, from 1.
        total: how many there are.
        latest: the figure that just came in, with its spread, or why it was not measured; empty for none.
    """

    name: str
    number: int
    total: int
    latest: str = ""


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """How the benchmarks ended.

    Attributes:
        figures: how many figures came in.
        is_complete: whether none was stopped.
        doubt: why the figures are kept apart and estimates do not use them; empty where they do.
    """

    figures: int
    is_complete: bool
    doubt: str = ""


class Sampler(Protocol):
    """Reads the sensors of this machine."""

    def sample(self) -> tuple[Reading, ...]:
        """Return the present readings; may take some tens of milliseconds."""
