"""Laws by which time, memory and disk grow with the size of a job, and their fits to measured sizes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.catalog import named_numbers
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import formula
from capacity_tui.engine.record import dataclass

shape = formula()
grown = formula()


@dataclass(frozen=True, slots=True)
class Law:
    """A law of growth."""

    name: str  # as it is usually written
    power: float | None = 0.0  # exponent of the size; None where it is fitted
    logarithms: float = 0.0  # exponent of the size's logarithm
    grows: bool = True  # whether there is more than the start

    @property
    def coefficients(self) -> int:
        """How many numbers are fitted to the measurements."""
        return 1 + self.grows + (self.power is None)


CONSTANT = Law("O(1)", grows=False)
LINEAR = Law("O(n)", 1.0)
POWER = Law("power law", None)

LAWS = (
    CONSTANT,
    Law("O(log n)", 0.0, 1.0),
    LINEAR,
    Law("O(n log n)", 1.0, 1.0),
    Law("O(n^2)", 2.0),
    Law("O(n^3)", 3.0),
    POWER,
)
"""The laws there are, the slowest first; the power law has any exponent."""


def chosen_number(key: str) -> float:
    return named_numbers("growth_limits.yaml")[key].value


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSizes:
    """Measurements of one figure at several sizes; one place of each array is one size, the smallest first."""

    sizes: Floats  # different sizes
    logs: Floats  # means of the logarithms of what was measured
    counts: Floats  # how often each size was measured
    variances: Floats  # of these means
    freedom: float  # degrees of freedom that the variances rest on; 0 without repeats

    @property
    def measurements(self) -> int:
        return int(self.counts.sum())

    @property
    def noise(self) -> float:
        """Spread of a single measurement, as a share."""
        return float(np.sqrt(np.mean(self.variances * self.counts)))


def measured_sizes(points: Iterable[tuple[float, float]]) -> MeasuredSizes:
    """Return measurements gathered by size.

    Noise is a share of what is measured: its logarithm spreads alike at all sizes, more or less.
    """
    pairs = np.array(sorted(points), dtype=np.float64).reshape(-1, 2)
    if not len(pairs):
        raise CapacityError("nothing was measured", hint="give sizes with what was measured at each")
    if not (np.isfinite(pairs).all() and (pairs[:, 0] >= 1).all()):
        raise CapacityError("a size is below 1", hint="count in smaller units, such as samples")
    if not (pairs[:, 1] > 0).all():
        raise CapacityError("a measured value is not above 0", hint="leave it out: laws of growth are of what is there")
    sizes, index = np.unique(pairs[:, 0], return_inverse=True)
    logs = np.log(pairs[:, 1])
    counts = np.bincount(index).astype(np.float64)
    means = np.bincount(index, logs) / counts
    squares = np.bincount(index, (logs - means[index]) ** 2)
    freedom = float(counts.sum() - len(sizes))
    pooled = float(squares.sum() / freedom) if freedom else 0.0
    many = chosen_number("pooled_repeats")
    own = (many * pooled + squares) / (many + counts - 1)
    return MeasuredSizes(sizes, means, counts, own / counts + chosen_number("least_noise") ** 2, freedom)


_ODDS = 30.0  # Largest logarithm of odds between what grows and what does not: beyond it the smaller is nothing
_POWERS = (0.02, 4.0)
_FIRST, _THEN, _ROUNDS = 121, 13, 26
_STEPS_ASIDE = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class FittedLaw:
    """A law as it was fitted."""

    law: Law
    start: float  # what a run of any size takes
    rate: float  # factor of what grows
    power: float  # exponent of the size, given or fitted
    misfit: float  # squared distances from the measured sizes in units of their variances, added up

    def at(self, sizes: Floats) -> Floats:
        """Return what runs of some sizes take."""
        if not self.law.grows:
            return np.full(np.shape(sizes), self.start)
        return np.asarray(grown(self.start, self.rate, shape(sizes, self.power, self.law.logarithms)))

    def slopes(self, sizes: Floats) -> Floats:
        """Return by how much logarithms move with each coefficient, a row a size.

        The first columns are those of start and rate as shares, then that of a fitted exponent; the last is that of an
        exponent by which growth differs from the law.
        """
        values, last = self.at(sizes), np.log(sizes)
        columns = [np.full(np.shape(sizes), self.start) / values] if not self.law.grows else []
        if self.law.grows:
            largest = values.max()
            growing = np.asarray(shape(sizes, self.power, self.law.logarithms))
            columns = [largest / values, largest * growing / growing.max() / values]
        if self.law.power is None:
            columns.append(self.rate * np.power(sizes, self.power) * last / values)
        return np.stack([*columns, last], axis=-1)

    def variances(self, measured: MeasuredSizes, sizes: Floats, bent: bool = True) -> Floats:
        """Return how sure the logarithms at some sizes are, as variances.

        Args:
            bent: whether growth may also differ from the law a little, more so the farther away.
        """
        together = np.concatenate([measured.sizes, np.atleast_1d(sizes)])
        slopes = self.slopes(together)
        slopes[:, -1] -= np.log(measured.sizes[-1])
        if not bent:
            slopes = slopes[:, :-1]
        here, there = slopes[: len(measured.sizes)], slopes[len(measured.sizes) :]
        precision = here.T @ (here / measured.variances[:, None])
        if bent:
            precision[-1, -1] += chosen_number("exponent_spread") ** -2
        # In units of their own; a coefficient that the measurements do not move at all is left where it is.
        units = np.sqrt(np.maximum(np.diag(precision), np.finfo(float).tiny))
        covariance = np.linalg.pinv(precision / np.outer(units, units), hermitian=True)
        spreads = np.sqrt(np.einsum("ij,jk,ik->i", there / units, covariance, there / units))
        # What may add many times the value moves its logarithm by the logarithm of that.
        return np.asarray(np.log1p(spreads) ** 2)


def fit_law(law: Law, measured: MeasuredSizes) -> FittedLaw:
    """Return a law fitted to measured sizes; neither start nor rate is below zero."""
    if not law.grows:
        weights = 1.0 / measured.variances
        mean = float(np.sum(weights * measured.logs) / np.sum(weights))
        return FittedLaw(law, float(np.exp(mean)), 0.0, 0.0, float(np.sum(weights * (measured.logs - mean) ** 2)))
    odds = np.linspace(-_ODDS, _ODDS, _FIRST)
    powers = np.linspace(*_POWERS, _FIRST) if law.power is None else np.array([law.power])
    for _ in range(_ROUNDS):
        misfits, _ = _misfits(law, measured, odds, powers)
        best = np.unravel_index(np.argmin(misfits), misfits.shape)
        odds = _around(odds, int(best[0]), (-_ODDS, _ODDS))
        powers = _around(powers, int(best[1]), _POWERS) if law.power is None else powers
    misfits, scales = _misfits(law, measured, odds, powers)
    best = np.unravel_index(np.argmin(misfits), misfits.shape)
    scale, power = float(np.exp(scales[best])), float(powers[best[1]])
    share = 1.0 / (1.0 + np.exp(-odds[best[0]]))
    largest = float(shape(measured.sizes[-1], power, law.logarithms))
    return FittedLaw(law, scale * float(1.0 - share), scale * float(share) / largest, power, float(misfits[best]))


def _around(values: Floats, index: int, ends: tuple[float, float]) -> Floats:
    """Return values closer about the best of some."""
    aside = np.max(np.diff(values)) * _STEPS_ASIDE
    return np.clip(np.linspace(values[index] - aside, values[index] + aside, _THEN), *ends)


def _misfits(law: Law, measured: MeasuredSizes, odds: Floats, powers: Floats) -> tuple[Floats, Floats]:
    """Return misfit and logarithm of the best scale, for each share of what grows (rows) and exponent (columns).

    The value at the largest size is that scale; a share of it grows.
    """
    share = (1.0 / (1.0 + np.exp(-odds)))[:, None, None]
    growing = np.asarray(shape(measured.sizes, powers[:, None], law.logarithms))
    with np.errstate(divide="ignore"):
        logs = np.log1p(-share * (1.0 - growing / growing[:, -1:]))
    weights = 1.0 / measured.variances
    off = measured.logs - logs
    scales = np.sum(off * weights, axis=-1) / np.sum(weights)
    with np.errstate(invalid="ignore"):
        misfits = np.sum(weights * (off - scales[..., None]) ** 2, axis=-1)
    return np.where(np.isfinite(misfits), misfits, np.inf), scales
