"""Zipf's law: how often the pattern of a rank occurs, and how many different ones a corpus is expected to hold.

All functions broadcast: many sizes of a corpus are one call. Sums over ranks, of which there may be 10^15, take the
first ranks one by one and the others by quadrature over the logarithm of the rank, where every term is smooth.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate import equation, formula
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.storage.corpus import Tally

MOST_KINDS = 1e15  # Beyond so many kinds the quadrature is not checked
_SINGLE_RANKS, _PANELS, _NODES = 256, 24, 12
_STEPS, _SAME = 40, 1e-12
_NEARLY_ONE = 1.0 - 1e-15
Floats = NDArray[np.float64]


frequency_at_rank = formula()  # How often the pattern of a rank occurs


@equation
def expected_distinct(occurrences: Number, alpha: Number, kinds: Number) -> Number:
    """Different patterns that a corpus is expected to hold."""
    occurrences, alpha = _over_ranks(occurrences), _over_ranks(alpha)
    ranks, weights = ranks_and_weights(_over_ranks(kinds))
    chances = ranks**-alpha
    chances = np.minimum(chances / _summed(chances, weights)[..., None], _NEARLY_ONE)
    return _summed(-np.expm1(occurrences * np.log1p(-chances)), weights)


@equation
def distinct_in_large_samples(occurrences: Number, alpha: Number, kinds: Number) -> Number:
    """Different patterns of a large corpus in closed form: within a thousandth where a hundred are expected."""
    most = most_frequent(occurrences, alpha, kinds)
    rarest = most * kinds**-alpha
    repeated = most ** (1.0 / alpha) * upper_incomplete_gamma(1.0 - 1.0 / alpha, rarest)
    return -(kinds + 0.5) * np.expm1(-rarest) - 0.5 + repeated


def most_frequent(occurrences: Number, alpha: Number, kinds: Number) -> Number:
    """Return how often the pattern of rank 1 is expected in a corpus."""
    ranks, weights = ranks_and_weights(_over_ranks(kinds))
    return occurrences / _summed(ranks ** -_over_ranks(alpha), weights)


def kinds_of_corpus(occurrences: Number, alpha: Number) -> Number:
    """Return the kinds of patterns with which the rarest of them is expected once in the corpus.

    So the law is read where its curve of frequencies ends, as Lü, Zhang, Zhou 2010 do; 1 for less than one occurrence.
    """
    occurrences, alpha = (np.asarray(occurrence, dtype=float) for occurrence in (occurrences, alpha))
    wanted = np.log(np.maximum(occurrences, 1.0))
    value = wanted + 0.0 * alpha
    # Newton on logarithms: the sum of r^-alpha up to V grows by V^-alpha with the next rank.
    for _ in range(_STEPS):
        kinds = np.exp(value)
        once = occurrences / most_frequent(occurrences, alpha, kinds)
        slope = alpha + kinds ** (1.0 - alpha) / once
        before, value = value, np.clip(value - (alpha * value + np.log(once) - wanted) / slope, 0.0, wanted)
        if np.all(np.abs(value - before) <= _SAME * value):
            break
    return np.asarray(np.exp(value))


def kinds_for_distinct(distinct: Number, occurrences: Number, alpha: Number) -> Number:
    """Return the kinds with which a corpus is expected to hold so many different patterns; infinite where none do.

    A corpus has one at least.
    """
    wanted: Number = np.maximum(distinct, 1.0)
    low = np.zeros(np.broadcast_shapes(np.shape(distinct), np.shape(occurrences), np.shape(alpha)))
    high = np.full_like(low, np.log(MOST_KINDS))

    def missing(logarithm: Number) -> Number:
        return np.log(wanted / expected_distinct(occurrences, alpha, np.exp(logarithm)))

    above, below = missing(low), missing(high)
    one_does, none_do = above <= 0.0, below > 0.0
    settled = one_does | none_do
    result = low
    # The line through both ends meets zero; an end that stays counts half (Illinois), else it would stay for good.
    for _ in range(_STEPS):
        result = np.where(settled, 0.0, (low * below - high * above) / np.where(settled, 1.0, below - above))
        here = missing(result)
        if np.all(settled | (np.abs(here) <= _SAME)):
            break
        rises = here > 0.0
        low, high = np.where(rises, result, low), np.where(rises, high, result)
        above, below = np.where(rises, here, above / 2.0), np.where(rises, below / 2.0, here)
    return np.where(none_do, np.inf, np.exp(result))


def ranks_and_weights(kinds: Floats) -> tuple[Floats, Floats]:
    """Return ranks, and how many ranks each stands for in a sum over all from 1 to ``kinds``.

    Args:
        kinds: last rank; of shape (..., 1), the last axis becomes that of the ranks.
    """
    single = np.arange(1.0, _SINGLE_RANKS + 1.0)
    counted = np.clip(kinds + 1.0 - single, 0.0, 1.0)
    first, last = _SINGLE_RANKS + 0.5, np.maximum(kinds + 0.5, _SINGLE_RANKS + 0.5)
    width = np.log(last / first) / _PANELS
    nodes, shares = _quadrature()
    far = first * np.exp(width * nodes)
    stands_for = far * width * shares
    shape = (*kinds.shape[:-1], _SINGLE_RANKS)
    return (
        np.concatenate((np.broadcast_to(single, shape), far), axis=-1),
        np.concatenate((counted, stands_for), axis=-1),
    )


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return places and weights over all panels, each panel one long."""
    nodes, shares = np.polynomial.legendre.leggauss(_NODES)
    return (np.arange(_PANELS)[:, None] + (nodes + 1.0) / 2.0).ravel(), np.tile(shares / 2.0, _PANELS)


def _over_ranks(value: Number) -> Floats:
    return np.asarray(value, dtype=float)[..., None]


def _summed(values: Floats, weights: Floats) -> Floats:
    return np.asarray(np.sum(values * weights, axis=-1))


_SERIES_TERMS, _FRACTION_TERMS = 40, 120
_POLE_GAP = 1e-7  # How far an order is kept from 0, -1, -2 ...: there the terms of the series cancel only in the limit
_gamma = np.vectorize(math.gamma, otypes=[float])


def upper_incomplete_gamma(order: Number, start: Number) -> Number:
    """Return the integral of t^(order - 1) e^-t from ``start`` to infinity, to about six digits.

    Source: Abramowitz and Stegun 1964, 6.5.29 (series) and 6.5.31 (continued fraction).
    """
    s, x = np.broadcast_arrays(np.asarray(order, dtype=float), np.asarray(start, dtype=float))
    nearest = np.round(s)
    s = np.where((nearest <= 0) & (np.abs(s - nearest) < _POLE_GAP), nearest + _POLE_GAP, s)
    small = x < 1.0
    return np.where(small, _by_series(s, np.where(small, x, 1.0)), _by_fraction(s, np.where(small, 1.0, x)))


def _by_series(s: Number, x: Number) -> Number:
    term, below = np.ones_like(x), np.zeros_like(x)
    for k in range(_SERIES_TERMS):
        below = below + term / (s + k)
        term = -term * x / (k + 1)
    return np.asarray(_gamma(s) - x**s * below)


def _by_fraction(s: Number, x: Number) -> Number:
    fraction = np.zeros_like(x)
    for k in range(_FRACTION_TERMS, 0, -1):
        fraction = k * (k - s) / (x + 2.0 * k + 1.0 - s - fraction)
    return np.asarray(np.exp(-x) * x**s / (x + 1.0 - s - fraction))


FARTHEST = 0.1  # Distance of counts from a law up to which it is said to hold
LEAST_KINDS, LEAST_REPEATED = 50, 20
"""Different things, and those among them that came twice, below which counts say nothing of a law."""

_EXPONENTS = (0.05, 5.0)
_EVEN = 0.2  # Exponent below which things come about equally often, so that rank says little
_SINGLE = 32
_WIDER = 1.5
_MOST_RANKS = 1000
_POINTS, _ROUNDS = 13, 6
_DEVIATIONS = 1.2816  # Standard deviations from the middle of a normal distribution to its 10th and 90th percentile
_STEP = 0.01
_NEARLY_NOTHING = 1e-300


@dataclass(frozen=True, slots=True)
class LawFit:
    """The law that makes counts most likely."""

    alpha: float  # exponent
    # alpha_low, alpha_high: its 10th and 90th percentile, by the curvature of the likelihood
    alpha_low: float
    alpha_high: float
    kinds: float  # how many different things there could be
    occurrences: int  # that were counted
    # largest difference between the shares that law and counts give to things, or to occurrences, up to some count
    distance: float
    why_not: str  # why the law does not hold; empty where it does

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
        what = "1 distinct pattern" if round(tally.distinct) == 1 else f"{tally.distinct:.0f} distinct patterns"
        return f"only {what}: too few to tell a law"
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
        alphas = np.clip(middle + reach * np.linspace(-1.0, 1.0, _POINTS), *_EXPONENTS)
        middle = float(alphas[np.argmax(_log_likelihood(edges, seen, size, alphas))])
        reach *= 2.0 / (_POINTS - 1)
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
    rarer, result = np.zeros_like(expected), []
    count = 0
    for edge in edges:
        if edge > _SINGLE:
            result.append(np.minimum((most / (edge - 0.5)) ** (1.0 / alpha), kinds))
            continue
        while count < edge:
            rarer = rarer + probability
            count += 1
            probability = probability * expected / count
        result.append(np.sum(weights * (1.0 - rarer), axis=-1))
    return np.stack(result)


def _distance(edges: Floats, seen: Floats, tally: Tally, alpha: float, kinds: float) -> float:
    """Return the largest difference of shares: of things up to a count, and of occurrences up to a rank."""
    above = _kinds_from(edges, float(tally.occurrences), np.array(alpha), np.array(kinds))
    of_things = above / above[0] - np.cumsum(seen[::-1])[::-1] / np.sum(seen)
    frequent = min(int(np.sum(tally.counts > _SINGLE)), _MOST_RANKS)
    held = np.cumsum(tally.counts[:frequent]) / tally.occurrences
    law = most_frequent(1.0, alpha, kinds) / np.asarray(most_frequent(1.0, alpha, np.arange(1.0, frequent + 1.0)))
    return float(max(np.max(np.abs(of_things)), np.max(np.abs(law - held), initial=0.0)))
