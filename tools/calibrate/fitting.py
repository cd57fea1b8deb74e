"""Fit constants to published runs, and judge the fit on publishers it has not seen.

Residuals are logarithms of estimated over measured. Every publisher counts at most once however many rows it has,
outliers weigh less (Cauchy), and a constant strays from its prior only as far as the runs ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.numeric import Number
from tools.calibrate.constants import Constant, with_values

Floats = NDArray[np.float64]

# A residual of this size weighs half as much as a small one.
RESIDUAL_SCALE = 0.10
# Independent observations that one publisher's rows are worth, and the rows at which half of that is reached.
WORTH, HALF_WORTH = 12.0, 4.0
# Logarithm by which a constant is moved to see what follows.
STEP = 0.02


@dataclass(frozen=True, slots=True)
class Errors:
    """Residuals of runs and what they change by, at one set of constants.

    Attributes:
        residuals: ln(estimated / measured), by run.
        slopes: their change for each constant's distance from its prior, runs by constants.
    """

    residuals: Floats
    slopes: Floats

    def moved(self, by: Floats) -> Floats:
        """Return the residuals with constants moved, by the slopes alone."""
        return np.asarray(self.residuals + self.slopes @ by)


class Fitted(Protocol):
    """What constants are fitted to: one measured figure."""

    @property
    def measured(self) -> float:
        """The figure."""

    @property
    def publisher(self) -> str:
        """Who measured it, or on what."""

    @property
    def takes_arrays(self) -> bool:
        """Whether arrays of constants make an array of estimates."""

    def reads(self, constant: Constant) -> bool:
        """Whether a constant may change the estimate."""

    def figure(self, catalog: Catalog) -> Number:
        """Return the figure as estimated with a catalogue."""


RunT = TypeVar("RunT", bound=Fitted)


@dataclass(frozen=True)
class Problem(Generic[RunT]):
    """What is fitted to what.

    Attributes:
        runs: with what was measured.
        constants: what may move.
        catalog: everything that does not.
    """

    runs: Sequence[RunT]
    constants: Sequence[Constant]
    catalog: Catalog

    def errors(self, distances: Floats) -> Errors:
        """Return residuals and slopes, from one array-valued estimate a run where it takes arrays."""
        residuals = np.zeros(len(self.runs))
        slopes = np.zeros((len(self.runs), len(self.constants)))
        for place, run in enumerate(self.runs):
            columns = self._columns(run)
            moves = np.zeros((len(columns), len(columns) + 1))
            moves[range(len(columns)), range(1, len(columns) + 1)] = STEP
            values = {
                self.constants[column]: self.constants[column].value(distances[column] + move)
                for column, move in zip(columns, moves, strict=True)
            }
            logarithms = np.log(self._figures(run, values, len(columns) + 1) / run.measured)
            residuals[place] = logarithms[0]
            slopes[place, columns] = (logarithms[1:] - logarithms[0]) / STEP
        return Errors(residuals, slopes)

    def _figures(self, run: RunT, values: Mapping[Constant, Number], count: int) -> Floats:
        if run.takes_arrays:
            return np.broadcast_to(run.figure(with_values(self.catalog, values)), count)
        each = [{constant: np.asarray(row)[place] for constant, row in values.items()} for place in range(count)]
        return np.array([run.figure(with_values(self.catalog, single)) for single in each], dtype=float)

    def residuals(self, distances: Floats, chosen: Sequence[int]) -> Floats:
        """Return ln(estimated / measured) of the runs at some places."""
        found = []
        for run in (self.runs[place] for place in chosen):
            values = {
                self.constants[column]: self.constants[column].value(distances[column]) for column in self._columns(run)
            }
            found.append(np.log(run.figure(with_values(self.catalog, values)) / run.measured))
        return np.array(found, dtype=float)

    @cached_property
    def shipped(self) -> Floats:
        """Distances from their priors of what the catalogue holds."""
        return np.array([constant.distance(constant.shipped(self.catalog)) for constant in self.constants])

    @cached_property
    def spreads(self) -> Floats:
        """Spreads of the constants around their priors."""
        return np.array([constant.spread for constant in self.constants])

    @cached_property
    def weights(self) -> Floats:
        """Weight of every run, such that each publisher counts at most once."""
        publishers = [run.publisher for run in self.runs]
        return np.array([WORTH / (publishers.count(each) + HALF_WORTH) for each in publishers])

    def places(self, publisher: str) -> list[int]:
        """Return where a publisher's runs stand."""
        return [place for place, run in enumerate(self.runs) if run.publisher == publisher]

    @property
    def publishers(self) -> tuple[str, ...]:
        """Who measured the runs, in their order."""
        return tuple(dict.fromkeys(run.publisher for run in self.runs))

    def _columns(self, run: RunT) -> list[int]:
        return [column for column, constant in enumerate(self.constants) if run.reads(constant)]


@dataclass(frozen=True)
class Fit(Generic[RunT]):
    """A fitted problem.

    Attributes:
        problem: what was fitted.
        distances: of the constants from their priors.
        errors: of the runs, at the fit.
        unseen: residuals of every run with its publisher left out of the fit.
    """

    problem: Problem[RunT]
    distances: Floats
    errors: Errors
    unseen: Floats

    @property
    def values(self) -> dict[Constant, float]:
        """Fitted values."""
        pairs = zip(self.problem.constants, self.distances, strict=True)
        return {constant: float(constant.value(distance)) for constant, distance in pairs}

    @property
    def learned(self) -> Floats:
        """How much of each prior's variance the runs removed: 0 where they say nothing, 1 where they decide."""
        weights, spreads = self.problem.weights, self.problem.spreads
        strength = weights / (RESIDUAL_SCALE**2 + self.errors.residuals**2)
        slopes = self.errors.slopes
        curvature = slopes.T @ (slopes * strength[:, None]) + np.diag(1.0 / spreads**2)
        left: Floats = np.diag(np.linalg.inv(curvature)) / spreads**2
        return np.asarray(1.0 - left)


def fit(problem: Problem[RunT], evaluations: int | None = None) -> Fit[RunT]:
    """Fit the constants, from what is shipped on, with at most so many evaluations of all runs."""
    known: dict[bytes, Errors] = {}

    def errors(distances: Floats) -> Errors:
        key = distances.tobytes()
        if key not in known:
            known.clear()
            known[key] = problem.errors(distances)
        return known[key]

    found = _solve(errors, problem.shipped, problem.weights, problem.spreads, evaluations)
    return judged(problem, found, errors(found))


def as_shipped(problem: Problem[RunT]) -> Fit[RunT]:
    """Return the problem with what the catalogue holds, its publishers left out in turn."""
    return judged(problem, problem.shipped, problem.errors(problem.shipped))


def judged(problem: Problem[RunT], distances: Floats, errors: Errors) -> Fit[RunT]:
    """Return a fit with the residuals of each publisher's runs from constants fitted to all others'.

    These fits move by the slopes of the whole one; only their residuals are estimated anew.
    """
    unseen = left_out(problem, distances, errors, [run.publisher for run in problem.runs])
    return Fit(problem, distances, errors, unseen)


def left_out(
    problem: Problem[RunT], distances: Floats, errors: Errors, groups: Sequence[str], *, anew: bool = True
) -> Floats:
    """Return the residuals of every run from constants fitted to the runs of all other groups.

    Args:
        problem: runs and constants.
        distances: of the constants from their priors, where the whole fit is.
        errors: of the runs there.
        groups: group of each run.
        anew: whether the residuals are estimated anew; else they move by the slopes of the whole fit as well.
    """
    unseen = errors.residuals.copy()
    if not problem.constants:
        return unseen
    keys = np.array(groups)
    for group in dict.fromkeys(groups):
        own = np.flatnonzero(keys == group)
        others, moving = _touched(errors.slopes, own)
        if not len(others):
            moving = np.flatnonzero(np.any(errors.slopes[own] != 0, axis=0))
        near = Errors(errors.residuals[others], errors.slopes[np.ix_(others, moving)])
        start = distances[moving]

        def moved(tried: Floats, near: Errors = near, start: Floats = start) -> Errors:
            return Errors(near.moved(tried - start), near.slopes)

        without = distances.copy()
        without[moving] = _solve(moved, start, problem.weights[others], problem.spreads[moving])
        if anew:
            unseen[own] = problem.residuals(without, own.tolist())
        else:
            unseen[own] = Errors(errors.residuals[own], errors.slopes[own]).moved(without - distances)
    return unseen


def _touched(slopes: Floats, own: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the other runs and the constants that have anything to do with some runs, however far around."""
    reads = slopes != 0
    constants = reads[own].any(axis=0)
    while True:
        runs = reads[:, constants].any(axis=1)
        wider = constants | reads[runs].any(axis=0)
        if (wider == constants).all():
            break
        constants = wider
    return np.setdiff1d(np.flatnonzero(runs), own), np.flatnonzero(constants)


def _solve(
    errors: Callable[[Floats], Errors],
    start: Floats,
    weights: Floats,
    spreads: Floats,
    evaluations: int | None = None,
) -> Floats:
    """Return the distances that weigh least: weights · ln(1 + (residual / scale)²), and (distance / spread)²."""

    def residuals(distances: Floats) -> Floats:
        return np.concatenate((errors(distances).residuals / RESIDUAL_SCALE, distances / spreads))

    def slopes(distances: Floats) -> Floats:
        return np.concatenate((errors(distances).slopes / RESIDUAL_SCALE, np.diag(1.0 / spreads)))

    def loss(squares: Floats) -> Floats:
        """Value and first two derivatives: Cauchy's of the runs, the square itself of the priors."""
        found = np.stack((squares, np.ones_like(squares), np.zeros_like(squares)))
        runs = 1.0 + squares[: len(weights)]
        found[:, : len(weights)] = weights * np.stack((np.log(runs), 1.0 / runs, -1.0 / runs**2))
        return found

    found = least_squares(
        residuals, start, slopes, loss=loss, x_scale=spreads, ftol=1e-5, xtol=1e-4, max_nfev=evaluations
    )
    return np.asarray(found.x, dtype=float)
