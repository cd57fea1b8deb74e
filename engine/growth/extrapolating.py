"""What jobs of other sizes take, with ranges that widen the farther they are from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from capacity_tui.engine.growth.choosing import Choice
from capacity_tui.engine.growth.measured_sizes import Floats

LOW, HIGH = 0.1, 0.9
"""Ends of a range, as of every range of an estimate."""
_HALVINGS = 60
_LEAST_FREEDOM = 3.0
_FAR = 40.0


@dataclass(frozen=True, slots=True)
class Extrapolated:
    """What a job of some size takes: by the chosen law, and the ends of its range."""

    n: float
    value: float
    low: float
    high: float


def extrapolate(choice: Choice, sizes: Sequence[float]) -> tuple[Extrapolated, ...]:
    """Return what jobs of some sizes take; nothing where no law was chosen.

    The range is that of all laws that are not excluded, each as likely as its weight: how sure its numbers are, how
    much growth may differ from it beyond the measured sizes, and the noise of one more run.
    """
    if choice.chosen is None or not sizes:
        return ()
    wanted = np.array(sizes, dtype=np.float64)
    measured = choice.measured
    freedom = max(measured.freedom, _LEAST_FREEDOM)
    noise = measured.noise**2
    laws = choice.plausible
    middles = np.stack([np.log(law.fitted.at(wanted)) for law in laws])
    spreads = np.stack(
        [np.sqrt((law.fitted.variances(measured, wanted) + noise) * freedom / (freedom - 2.0)) for law in laws]
    )
    weights = np.array([law.possible for law in laws]) / sum(law.possible for law in laws)
    values = choice.chosen.fitted.at(wanted)
    low = np.minimum(np.exp(_quantile(LOW, middles, spreads, weights)), values)
    high = np.maximum(np.exp(_quantile(HIGH, middles, spreads, weights)), values)
    return tuple(Extrapolated(*map(float, row)) for row in zip(wanted, values, low, high, strict=True))


def _quantile(share: float, middles: Floats, spreads: Floats, weights: Floats) -> Floats:
    """Return the quantiles of mixtures of normal distributions, a column each."""
    below = np.min(middles - _FAR * spreads, axis=0)
    above = np.max(middles + _FAR * spreads, axis=0)
    for _ in range(_HALVINGS):
        tried = (below + above) / 2.0
        less = np.sum(weights[:, None] * _normal((tried - middles) / spreads), axis=0) < share
        below, above = np.where(less, tried, below), np.where(less, above, tried)
    return np.asarray((below + above) / 2.0)


def _normal(deviations: Floats) -> Floats:
    """Return the share of a normal distribution below some deviations."""
    cdf = NormalDist().cdf
    shares: Floats = np.array([cdf(deviation) for deviation in deviations.ravel()]).reshape(deviations.shape)
    return shares
