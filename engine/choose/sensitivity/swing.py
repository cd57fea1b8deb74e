"""How far one thing moves a figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["knob", "unknown"]
# A figure that moves by less than this share stands still.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Swing:
    """One thing that moves a figure, alone.

    Attributes:
        kind: ``knob`` for a field of the plan, ``unknown`` for what nobody decides.
        key: path of the field; of an unknown the name it goes by.
        label: what it is called.
        now: its value in the plan.
        start: its value with which the figure is ``low``.
        end: its value with which the figure is ``high``.
        low: the smallest value of the figure.
        high: the largest.
        unit: unit of its values; ``x`` for a ratio of measured to estimated.
    """

    kind: Kind
    key: str
    label: str
    now: object
    start: object
    end: object
    low: float
    high: float
    unit: str = ""

    @property
    def swing(self) -> float:
        """The difference that it makes."""
        return self.high - self.low


def swing_of(
    kind: Kind, key: str, label: str, now: object, tried: Iterable[tuple[object, float | None]], unit: str = ""
) -> Swing | None:
    """Return how far something moves a figure; None where the figure stands still.

    Args:
        tried: its values, each with the figure; None where there is no figure.
    """
    values = [(number, value) for value, number in tried if number is not None]
    if not values:
        return None
    low, start = min(values, key=lambda pair: pair[0])
    high, end = max(values, key=lambda pair: pair[0])
    if high - low <= _LEAST * max(abs(low), abs(high)):
        return None
    return Swing(kind, key, label, now, start, end, low, high, unit)
