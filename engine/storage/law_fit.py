"""A Zipf law fitted to counts by maximum likelihood, and how far the counts are from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.numeric import Number
from capacity_tui.engine.storage.counting import Tally
from capacity_tui.engine.storage.zipf import (
    MOST_KINDS,
    expected_distinct,
    frequency_at_rank,
    kinds_for_distinct,
    most_frequent,
    ranks_and_weights,
)

Floats = NDArray[np.float64]

FARTHEST = 0.1
"""Distance of counts from a law up to which it is said to hold."""
LEAST_KINDS, LEAST_REPEATED = 50, 20
"""Different things, and those among them that came twice, below which counts say nothing of a law."""
_EXPONENTS = (0.05, 5.0)
_EVEN = 0.2
"""Exponent below which things come about equally often, so that rank says little."""
_SINGLE = 32
_WIDER = 1.5
_MOST_RANKS = 1000
_PLACES, _ROUNDS = 13, 6
_DEVIATIONS = 1.2816
"""Standard deviations from the middle of a normal distribution to its 10th and 90th percentile."""
_STEP = 0.01
_NEARLY_NOTHING = 1e-300


@dataclass(frozen=True, slots=True)
class LawFit:
    """The law that makes counts most likely.

    Attributes:
        alpha: exponent.
        alpha_low, alpha_high: its 10th and 90th percentile, by the curvature of the likelihood.
        kinds: how many different things there could be.
        occurrences: that were counted.
        distance: largest difference between the shares that law and counts give to things, or to occurrences, up to
            some count.
        why_not: why the law does not hold; empty where it does.
    """

    alpha: float
    alpha_low: float
    alpha_high: float
    kinds: float
    occurrences: int
    distance: float
    why_not: str

    @property
    def holds(self) -> bool:
        """Whether counts follow the law."""
        return not self.why_not

    @property
    def goodness(self) -> float:
        """1 for counts that are exactly as expected, 0 for ones that could not be farther from it."""
        return 1.0 - self.distance

    def fitted(self, rank: Number) -> Number:
        """Return how often the thing of a rank is expected."""
        return frequency_at_rank(most_frequent(float(self.occurrences), self.alpha, self.kinds), rank, self.alpha)

    def distinct(self, occurrences: Number) -> Number:
        """Return how many different things so many occurrences are expected to hold."""
        return expected_distinct(occurrences, self.alpha, self.kinds)


def fit_law(tally: Tally) -> LawFit:
    """Return the law of counts.

    Which rank a thing has is not known, only how often it came. So the likelihood is that of the counts of counts:
    each kind comes a Poisson number of times about its expectation, and the law says how many kinds have which.
    Likelihood and distance are taken over classes of counts, single up to a few and then ever wider.
    """
    edges = _edges(int(tally.counts[0]) if len(tally.counts) else 1)
    classes = np.searchsorted(edges, tally.counts, side="right") - 1
    seen = np.bincount(classes, tally.stands_for, len(edges)).astype(np.float64)
    size = float(tally.occurrences)
    alpha = _likeliest(edges, seen, size)
    kinds = float(_kinds(tally.distinct, size, np.array(alpha)))
    spread = _spread(edges, seen, size, alpha)
    distance = _distance(edges, seen, tally, alpha, kinds)
    low, high = max(alpha - _DEVIATIONS * spread, _EXPONENTS[0]), min(alpha + _DEVIATIONS * spread, _EXPONENTS[1])
    repeated = float(np.sum(seen[1:]))
    return LawFit(alpha, low, high, kinds, tally.occurrences, distance, _why_not(tally, repeated, alpha, distance))


def _why_not(tally: Tally, repeated: float, alpha: float, distance: float) -> str:
    if tally.distinct < LEAST_KINDS:
        return f"only {tally.distinct:.0f} different ones: too few to tell a law"
    if repeated < LEAST_REPEATED:
        return f"only {repeated:.0f} of them came twice: too few to tell a law"
    if alpha < _EVEN:
        return "all come about equally often"
    if alpha > _EXPONENTS[1] * 0.98:
        return "the frequent ones fall off faster than any power of their rank"
    if distance > FARTHEST:
        return f"counts are {distance:.0%} off the law where they are farthest from it"
    return ""


def _edges(largest: int) -> Floats:
    """Return the least count of each class; the last class holds all from there on."""
    edges = [float(count) for count in range(1, 9)]
    while edges[-1] * _WIDER <= largest:
        edges.append(np.ceil(edges[-1] * _WIDER))
    return np.array(edges)


def _likeliest(edges: Floats, seen: Floats, size: float) -> float:
    """Return the likeliest exponent, on ever finer rows of them."""
    middle, reach = sum(_EXPONENTS) / 2.0, (_EXPONENTS[1] - _EXPONENTS[0]) / 2.0
    for _ in range(_ROUNDS):
        alphas = np.clip(middle + reach * np.linspace(-1.0, 1.0, _PLACES), *_EXPONENTS)
        middle = float(alphas[np.argmax(_log_likelihood(edges, seen, size, alphas))])
        reach *= 2.0 / (_PLACES - 1)
    return middle


def _spread(edges: Floats, seen: Floats, size: float, alpha: float) -> float:
    """Return the standard deviation of the exponent, by the curvature of the likelihood; all there is if flat."""
    below, here, above = _log_likelihood(edges, seen, size, alpha + np.array([-_STEP, 0.0, _STEP]))
    curvature = (2.0 * here - below - above) / _STEP**2
    return float(1.0 / np.sqrt(curvature)) if curvature > 0 else _EXPONENTS[1] - _EXPONENTS[0]


def _log_likelihood(edges: Floats, seen: Floats, size: float, alphas: Floats) -> Floats:
    """Return the logarithm of the likelihood of things by class, up to a constant, of each exponent.

    The kinds there could be are those with which as many different things are expected as there are.
    """
    above = _kinds_from(edges, size, alphas, _kinds(float(np.sum(seen)), size, alphas))
    inside = np.maximum(above - np.concatenate((above[1:], np.zeros_like(above[:1]))), _NEARLY_NOTHING)
    return np.asarray(np.tensordot(seen, np.log(inside), 1) - above[0])


def _kinds(distinct: float, size: float, alphas: Floats) -> Floats:
    return np.minimum(kinds_for_distinct(distinct, size, alphas), MOST_KINDS)


def _kinds_from(edges: Floats, size: float, alpha: Floats, kinds: Floats) -> Floats:
    """Return how many kinds are expected to come at least as often as each edge says, along a new first axis.

    Up to a few times that is a sum of Poisson probabilities; beyond, a count hardly differs from its expectation, and
    the rank where the law has it is the number.
    """
    most = np.asarray(most_frequent(size, alpha, kinds))
    ranks, weights = ranks_and_weights((kinds + 0.0 * alpha)[..., None])
    expected = most[..., None] * ranks ** -alpha[..., None]
    probability = np.exp(-expected)
    rarer, found = np.zeros_like(expected), []
    count = 0
    for edge in edges:
        if edge > _SINGLE:
            found.append(np.minimum((most / (edge - 0.5)) ** (1.0 / alpha), kinds))
            continue
        while count < edge:
            rarer = rarer + probability
            count += 1
            probability = probability * expected / count
        found.append(np.sum(weights * (1.0 - rarer), axis=-1))
    return np.stack(found)


def _distance(edges: Floats, seen: Floats, tally: Tally, alpha: float, kinds: float) -> float:
    """Return the largest difference of shares: of things up to a count, and of occurrences up to a rank."""
    above = _kinds_from(edges, float(tally.occurrences), np.array(alpha), np.array(kinds))
    of_things = above / above[0] - np.cumsum(seen[::-1])[::-1] / np.sum(seen)
    frequent = min(int(np.sum(tally.counts > _SINGLE)), _MOST_RANKS)
    held = np.cumsum(tally.counts[:frequent]) / tally.occurrences
    law = most_frequent(1.0, alpha, kinds) / np.asarray(most_frequent(1.0, alpha, np.arange(1.0, frequent + 1.0)))
    return float(max(np.max(np.abs(of_things)), np.max(np.abs(law - held), initial=0.0)))
