"""Waiting for room that comes of arrivals which scatter, while it builds up from an empty engine."""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np

from capacity_tui.engine.estimate.serving.loads.pass_times import LEAST, Floats
from capacity_tui.engine.numeric import Number

# Drifts, in standard deviations, at which the sum is worked out, up to that beyond which nothing is added.
POINTS = 400
FURTHEST = -NormalDist().inv_cdf(float(np.finfo(float).eps))
# A sum over whole numbers from the first is the integral from half of it.
FIRST = 0.5
# Standard deviation over the mean of a normal number's size.
HALF_NORMAL = math.sqrt(math.pi / 2.0 - 1.0)


def transient_wait(
    before: Floats, rate: Floats, largest: Floats, slots: Floats, spread: Number, lasting: Number
) -> tuple[Floats, Floats]:
    """Return how long requests wait for room because arrivals and answers scatter, beyond what their means say, s.

    These are the mean, and the standard deviation: first that of a normal number's size, at last of an exponential one.

    The wait is the sum over k of E[max(S_k, 0)] / k (Spitzer 1956), less the same without scatter. S_k is by how much k
    groups of as many requests as there are slots take longer than they take to come, as requests of equal answers wait
    for the slot that the one a group before them had; it is taken for normal. Where fewer come than are answered, the
    sum goes to the wait in the steady state.

    Args:
        before: requests that came before.
        rate: requests that arrive in a second, by a Poisson process.
        largest: requests that are answered in a second at most.
        slots: requests at work at once at most, from 1.
        spread: standard deviation of an answer's length over the mean, from 0.
        lasting: seconds of the wait in the steady state; infinite where there is none.
    """
    deviation = np.sqrt(slots * (1.0 / rate**2 + (spread / largest) ** 2))
    drift = np.maximum(slots * np.abs(1.0 / largest - 1.0 / rate) / deviation, LEAST)
    first, last = _summed(drift * np.sqrt(FIRST)), _summed(np.full_like(drift, np.inf))
    # The first group waits for nobody; on the whole a request has as many groups before it as whole ones and half.
    groups = np.maximum(before / slots - 1.0, 0.0)
    until = _summed(drift * np.sqrt(FIRST + groups + np.minimum(groups, FIRST)))
    whole = 2.0 * deviation / drift
    ends = np.isfinite(lasting)
    share = np.where(ends, (until - first) / np.maximum(last - first, LEAST), 0.0)
    mean = np.where(ends, share * np.where(ends, lasting, 0.0), whole * (until - first))
    return mean, mean * (HALF_NORMAL + (1.0 - HALF_NORMAL) * share)


def _summed(drifts: Floats) -> Floats:
    """Return the integral up to each drift of the mean by which a normal number exceeds it."""
    return np.interp(drifts, *_integral())


@cache
def _integral() -> tuple[Floats, Floats]:
    drifts = np.linspace(0.0, FURTHEST, POINTS)
    normal = NormalDist()
    below = np.array([normal.cdf(drift) for drift in drifts])
    density = np.array([normal.pdf(drift) for drift in drifts])
    return drifts, (below - 0.5 - drifts**2 * (1.0 - below) + drifts * density) / 2.0
