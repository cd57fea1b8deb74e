"""How figures of a job grow with its size: points in, a law with what it says of other sizes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capacity_tui.engine.growth.choosing import Choice, choose_law
from capacity_tui.engine.growth.extrapolating import Extrapolated, extrapolate
from capacity_tui.engine.growth.measured_sizes import measured_sizes

Points = Sequence[tuple[float, float]]

FIGURES = {"seconds": "s", "peak_memory_bytes": "B", "disk_bytes": "B", "cpu_seconds": "s"}
"""What is measured of a job, with the unit of each; time is what is asked about first."""
TARGETS = (1e8, 1e9)
"""Sizes that are looked ahead to where nobody names any."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowthFit:
    """How one figure grows.

    Attributes:
        figure: its key.
        unit: of it, empty where that is not known.
        points: size and value of each measurement.
        choice: the laws and what is decided.
        extrapolated: what jobs of other sizes take.
    """

    figure: str
    unit: str
    points: tuple[tuple[float, float], ...]
    choice: Choice
    extrapolated: tuple[Extrapolated, ...]


def fit_growth(figure: str, points: Points, targets: Sequence[float] = TARGETS) -> GrowthFit:
    """Return how one figure grows, and what it comes to at other sizes.

    Args:
        points: size and value of each measurement; several of one size say how much it spreads.

    Raises:
        CapacityError: there are no points, or some cannot be.
    """
    choice = choose_law(measured_sizes(points))
    return GrowthFit(figure, FIGURES.get(figure, ""), tuple(points), choice, extrapolate(choice, targets))


def fit_all(figures: Mapping[str, Points], targets: Sequence[float] = TARGETS) -> tuple[GrowthFit, ...]:
    """Return how each figure grows, in the order given.

    Raises:
        CapacityError: as for one.
    """
    return tuple(fit_growth(figure, points, targets) for figure, points in figures.items())
