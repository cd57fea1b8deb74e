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
# Evaluations of all runs at most, the gain in loss at which they end, and shares of a step that are tried.
EVALUATIONS, ENOUGH, SHORTER = 20, 1e-3, (1.0, 0.5, 0.25, 0.1)
# Times that least squares are weighed anew at most, and the move, in spreads, at which they end.
REWEIGHED, NEAR = 100, 1e-3


@dataclass(frozen=True, slots=True)
class Errors:
    """Residuals of runs and what they change by, at one set of constants."""

    residuals: Floats  # ln(estimated / measured), by run
    slopes: Floats  # their change for each constant's distance from its prior, runs by constants

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


class Batch(Protocol):
    """Runs that one call estimates."""

    @property
    def places(self) -> Sequence[int]:
        """Where they stand among all runs."""

    @property
    def takes_arrays(self) -> bool:
        """Whether arrays of constants make an array of estimates."""

    def reads(self, constant: Constant) -> bool:
        """Whether a constant may change the estimates."""

    def figures(self, catalog: Catalog) -> Number:
        """Return the figures as estimated with a catalogue; the last dimension is that of the runs."""


@dataclass(frozen=True)
class Alone(Generic[RunT]):
    """A run that has a call of its own."""

    place: int  # where it stands among all runs
    run: RunT

    @property
    def places(self) -> Sequence[int]:
        """Where it stands."""
        return (self.place,)

    @property
    def takes_arrays(self) -> bool:
        """Whether arrays of constants make an array of estimates."""
        return self.run.takes_arrays

    def reads(self, constant: Constant) -> bool:
        """Whether a constant may change the estimate."""
        return self.run.reads(constant)

    def figures(self, catalog: Catalog) -> Number:
        """Return the figure as estimated with a catalogue."""
        return self.run.figure(catalog)


@dataclass(frozen=True)
class Problem(Generic[RunT]):
    """What is fitted to what."""

    runs: Sequence[RunT]  # with what was measured
    constants: Sequence[Constant]  # what may move
    catalog: Catalog  # everything that does not
    # makes batches of the runs; each has a call of its own where nothing does
    batched: Callable[[Sequence[RunT], Catalog], Sequence[Batch]] | None = None

    @cached_property
    def batches(self) -> Sequence[Batch]:
        """The runs as they are estimated."""
        if self.batched is None:
            return tuple(Alone(place, run) for place, run in enumerate(self.runs))
        return self.batched(self.runs, self.catalog)

    def errors(self, distances: Floats) -> Errors:
        """Return residuals and slopes, from one array-valued estimate a batch of runs where it takes arrays."""
        logarithms = np.zeros(len(self.runs))
        slopes = np.zeros((len(self.runs), len(self.constants)))
        for batch in self.batches:
            columns = [column for column, constant in enumerate(self.constants) if batch.reads(constant)]
            moves = np.zeros((len(columns), len(columns) + 1, 1))
            moves[range(len(columns)), range(1, len(columns) + 1)] = STEP
            values = {
                self.constants[column]: self.constants[column].value(distances[column] + move)
                for column, move in zip(columns, moves, strict=True)
            }
            found = np.log(self._figures(batch, values, len(columns) + 1))
            places = list(batch.places)
            logarithms[places] = found[0]
            slopes[np.ix_(places, columns)] = (found[1:] - found[0]).T / STEP
        return Errors(logarithms - self._measured, slopes)

    def _figures(self, batch: Batch, values: Mapping[Constant, Number], count: int) -> Floats:
        shape = count, len(batch.places)
        if batch.takes_arrays:
            return np.broadcast_to(batch.figures(with_values(self.catalog, values)), shape)
        each = [{constant: float(np.ravel(row)[place]) for constant, row in values.items()} for place in range(count)]
        figures = [batch.figures(with_values(self.catalog, single)) for single in each]
        return np.array(figures, dtype=float).reshape(shape)

    def residuals(self, distances: Floats, chosen: Sequence[int]) -> Floats:
        """Return ln(estimated / measured) of the runs at some places."""
        wanted, found = set(chosen), np.zeros(len(self.runs))
        for batch in self.batches:
            if wanted.isdisjoint(batch.places):
                continue
            values = {
                constant: constant.value(distance)
                for constant, distance in zip(self.constants, distances, strict=True)
                if batch.reads(constant)
            }
            found[list(batch.places)] = np.log(batch.figures(with_values(self.catalog, values)))
        return (found - self._measured)[list(chosen)]

    @cached_property
    def _measured(self) -> Floats:
        return np.log([run.measured for run in self.runs])

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


@dataclass(frozen=True)
class Fit(Generic[RunT]):
    """A fitted problem."""

    problem: Problem[RunT]  # what was fitted
    distances: Floats  # of the constants from their priors
    errors: Errors  # of the runs, at the fit
    unseen: Floats  # residuals of every run with its publisher left out of the fit

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

    found = _solve(errors, problem.shipped, Weighing(problem.weights, problem.spreads), evaluations)
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
        weighing = Weighing(problem.weights[others], problem.spreads[moving])
        without = distances.copy()
        without[moving] = weighing.lowest(near, distances[moving])
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


@dataclass(frozen=True, slots=True)
class Weighing:
    """What a set of constants weighs: weights · ln(1 + (residual / scale)²), and (distance / spread)²."""

    weights: Floats  # of the runs
    spreads: Floats  # of the constants around their priors

    def loss(self, residuals: Floats, distances: Floats) -> float:
        """Return what residuals and distances from the priors weigh together."""
        runs = self.weights @ np.log1p((residuals / RESIDUAL_SCALE) ** 2)
        return float(runs + np.sum((distances / self.spreads) ** 2))

    def lowest(self, errors: Errors, start: Floats) -> Floats:
        """Return the distances that weigh least where residuals follow their slopes: least squares, weighed anew."""
        distances = start
        for _ in range(REWEIGHED):
            residuals = errors.moved(distances - start)
            strength = self.weights / (RESIDUAL_SCALE**2 + residuals**2)
            curvature = errors.slopes.T @ (errors.slopes * strength[:, None]) + np.diag(self.spreads**-2.0)
            downhill = errors.slopes.T @ (strength * residuals) + distances / self.spreads**2
            step = np.linalg.solve(curvature, downhill)
            distances = distances - step
            if np.all(np.abs(step) < NEAR * self.spreads):
                break
        return np.asarray(distances)


def _solve(
    errors: Callable[[Floats], Errors], start: Floats, weighing: Weighing, evaluations: int | None = None
) -> Floats:
    """Return the distances that weigh least, each step to where they would if residuals followed their slopes."""
    distances, now = start, errors(start)
    loss = weighing.loss(now.residuals, distances)
    for _ in range((evaluations or EVALUATIONS) - 1):
        step = weighing.lowest(now, distances) - distances
        for share in SHORTER:
            stepped = errors(distances + share * step)
            better = weighing.loss(stepped.residuals, distances + share * step)
            if better < loss:
                break
        else:
            return distances
        distances, now, gained, loss = distances + share * step, stepped, loss - better, better
        if gained < ENOUGH * loss:
            break
    return distances
