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
_PLACES, _ROUNDS, _CLOSER = 11, 18, 0.65
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
    seen = np.bincount(classes, tally.stands_for, len(edges))
    size = float(tally.occurrences)
    alpha, depth = _likeliest(edges, seen, size)
    kinds = float(tally.distinct * np.exp(depth))
    spread = _spread(edges, seen, size, alpha, depth)
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


def _likeliest(edges: Floats, seen: Floats, size: float) -> tuple[float, float]:
    """Return the exponent, and the logarithm of the kinds over those seen, that are likeliest: on ever finer grids."""
    distinct = float(np.sum(seen))
    deepest = max(np.log(MOST_KINDS / max(distinct, 1.0)), 0.0)
    middle, reach = np.array([1.5, deepest / 4]), np.array([1.45, deepest / 4])
    limits = np.array([[_EXPONENTS[0], 0.0], [_EXPONENTS[1], deepest]])
    for _ in range(_ROUNDS):
        steps = np.linspace(-1.0, 1.0, _PLACES)
        alphas = np.clip(middle[0] + steps * reach[0], limits[0, 0], limits[1, 0])[:, None]
        depths = np.clip(middle[1] + steps * reach[1], limits[0, 1], limits[1, 1])[None, :]
        found = _log_likelihood(edges, seen, size, alphas, depths)
        first, second = np.unravel_index(int(np.argmax(found)), found.shape)
        best = np.array([alphas[first, 0], depths[0, second]])
        # A best point on the rim: the peak may lie beyond, so the next grid moves there before it grows finer.
        inside = (
            np.array([0 < first < _PLACES - 1, 0 < second < _PLACES - 1]) | (best == limits[0]) | (best == limits[1])
        )
        middle, reach = best, np.where(inside, reach * _CLOSER, reach)
    return float(middle[0]), float(middle[1])


def _spread(edges: Floats, seen: Floats, size: float, alpha: float, depth: float) -> float:
    """Return the standard deviation of the exponent, the number of kinds being as unknown; all there is if flat."""
    steps = np.array([-_STEP, 0.0, _STEP])
    found = _log_likelihood(edges, seen, size, (alpha + steps)[:, None], np.maximum(depth + steps, 0.0)[None, :])
    by_alpha = (found[0, 1] - 2 * found[1, 1] + found[2, 1]) / _STEP**2
    by_depth = (found[1, 0] - 2 * found[1, 1] + found[1, 2]) / _STEP**2
    mixed = (found[2, 2] - found[2, 0] - found[0, 2] + found[0, 0]) / (4 * _STEP**2)
    if by_depth >= 0 or depth < _STEP:
        mixed, by_depth = 0.0, -1.0
    curvature = mixed**2 / by_depth - by_alpha
    return float(1.0 / np.sqrt(curvature)) if curvature > 0 else _EXPONENTS[1] - _EXPONENTS[0]


def _log_likelihood(edges: Floats, seen: Floats, size: float, alphas: Floats, depths: Floats) -> Floats:
    """Return the logarithm of the likelihood of things by class, up to a constant."""
    kinds = float(np.sum(seen)) * np.exp(depths)
    above = _kinds_from(edges, size, alphas, kinds)
    inside = np.maximum(above - np.concatenate((above[1:], np.zeros_like(above[:1]))), _NEARLY_NOTHING)
    return np.asarray(np.tensordot(seen, np.log(inside), 1) - above[0])


def _kinds_from(edges: Floats, size: float, alpha: Number, kinds: Number) -> Floats:
    """Return how many kinds are expected to come at least as often as each edge says, along a new first axis.

    Up to a few times that is a sum of Poisson probabilities; beyond, a count hardly differs from its expectation, and
    the rank where the law has it is the number.
    """
    alpha, kinds = np.broadcast_arrays(np.asarray(alpha, dtype=float), np.asarray(kinds, dtype=float))
    most = np.asarray(most_frequent(size, alpha, kinds))
    ranks, weights = ranks_and_weights(kinds[..., None])
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
    above = _kinds_from(edges, float(tally.occurrences), alpha, kinds)
    of_things = above / above[0] - np.cumsum(seen[::-1])[::-1] / np.sum(seen)
    frequent = min(int(np.sum(tally.counts > _SINGLE)), _MOST_RANKS)
    held = np.cumsum(tally.counts[:frequent]) / tally.occurrences
    law = most_frequent(1.0, alpha, kinds) / np.asarray(most_frequent(1.0, alpha, np.arange(1.0, frequent + 1.0)))
    return float(max(np.max(np.abs(of_things)), np.max(np.abs(law - held), initial=0.0)))
