"""Curves over two logarithmic axes, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["", "B"]
"""What an axis counts: things, or bytes."""


@dataclass(frozen=True, slots=True)
class LogCurve:
    """One curve.

    Attributes:
        points: across and up, by rising place across; all above nothing.
        is_bound: whether it bounds another one, and is drawn in the background.
    """

    points: tuple[tuple[float, float], ...]
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class LogLimit:
    """A line across that says how far one may go up."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class LogChart:
    """A picture of curves over two logarithmic axes.

    Attributes:
        title: what it shows.
        curves: those that bound others first.
        limits: lines across.
        here: a point that stands out; None for none.
        up: what the axis at the left counts.
        about: the picture in words.
    """

    title: str
    curves: tuple[LogCurve, ...]
    limits: tuple[LogLimit, ...] = ()
    here: tuple[float, float] | None = None
    up: Unit = ""
    about: str = ""
