"""What the screen shows of measuring this machine: readings of sensors, and benchmarks, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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
class Sample:
    """All live quantities at one moment."""

    readings: tuple[Reading, ...]


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


@dataclass(frozen=True, slots=True)
class Load:
    """How full or how busy a part of this machine is.

    Attributes:
        name: the part.
        text: how much, as shown.
        share: the same, 1 for full.
    """

    name: str
    text: str
    share: float


class Sampler(Protocol):
    """Reads the sensors of this machine."""

    def sample(self) -> Sample:
        """Return the present readings; may take some tens of milliseconds."""
