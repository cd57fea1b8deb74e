"""What a benchmark measured, beside what is wanted of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure."""

    what: str  # what was measured
    value: float
    unit: str  # its unit; empty for a ratio
    wanted: float | None = None  # the most that is wanted, or the least; None where nothing is
    is_least: bool = False  # whether more is better

    @property
    def is_met(self) -> bool | None:
        """Whether it is as wanted; None where nothing is."""
        if self.wanted is None:
            return None
        return self.value >= self.wanted if self.is_least else self.value <= self.wanted

    @property
    def text(self) -> str:
        """The figure with its unit."""
        return _text(self.value, self.unit)

    @property
    def wanted_text(self) -> str:
        """What is wanted, with its unit."""
        return "" if self.wanted is None else f"{'≥' if self.is_least else '≤'} {_text(self.wanted, self.unit)}"


def show(figures: Iterable[Figure]) -> None:
    """Print figures, one a line, each as soon as it is known."""
    for figure in figures:
        wanted = f"  wanted {figure.wanted_text}" if figure.wanted is not None else ""
        print(f"{figure.what:<58}{figure.text:>18}{wanted}", flush=True)


def _text(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 or value == round(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit or 'x'}"
