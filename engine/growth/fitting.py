"""Fits one law to measured sizes: weighted least squares of logarithms, over a grid that closes in on the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.growth.choices import chosen_number
from capacity_tui.engine.growth.laws import Law, grown, shape
from capacity_tui.engine.growth.measured_sizes import Floats, MeasuredSizes

_ODDS = 30.0
"""Largest logarithm of odds between what grows and what does not: beyond it the smaller is nothing."""
_POWERS = (0.02, 4.0)
_FIRST, _THEN, _ROUNDS = 121, 13, 26
_STEPS_ASIDE = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class FittedLaw:
    """A law as it was fitted.

    Attributes:
        law: which.
        start: what a run of any size takes.
        rate: factor of what grows.
        power: exponent of the size, given or fitted.
        misfit: squared distances from the measured sizes in units of their variances, added up.
    """

    law: Law
    start: float
    rate: float
    power: float
    misfit: float

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


def _around(values: Floats, place: int, ends: tuple[float, float]) -> Floats:
    """Return values closer about the best of some."""
    aside = np.max(np.diff(values)) * _STEPS_ASIDE
    return np.clip(np.linspace(values[place] - aside, values[place] + aside, _THEN), *ends)


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
