"""Zipf's law: how often the pattern of a rank occurs, and how many different ones a corpus is expected to hold.

All functions broadcast: many sizes of a corpus are one call. Sums over ranks, of which there may be 10^15, take the
first ranks one by one and the others by quadrature over the logarithm of the rank, where every term is smooth.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate import equation
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.storage.incomplete_gamma import upper_incomplete_gamma

MOST_KINDS = 1e15
"""Beyond so many kinds the quadrature is not checked."""
_SINGLE_RANKS, _PANELS, _NODES = 256, 24, 12
_STEPS, _SAME = 40, 1e-12
_NEARLY_ONE = 1.0 - 1e-15

Floats = NDArray[np.float64]


@equation(
    "frequency = most_frequent / rank^alpha", unit="", source="Zipf 1949; the exponent is 1 for words of many languages"
)
def frequency_at_rank(most_frequent: Number, rank: Number, alpha: Number) -> Number:
    """How often the pattern of a rank occurs.

    Args:
        most_frequent: how often the one of rank 1 does.
        rank: place in the order of frequency, from 1.
        alpha: exponent of the law.
    """
    return most_frequent / rank**alpha


@equation(
    "expected = Σ over ranks r from 1 to kinds of (1 - (1 - r^-alpha / H)^occurrences), H = Σ r^-alpha",
    unit="",
    source="the mean number of different kinds among independent draws, each kind missed with its own probability",
)
def expected_distinct(occurrences: Number, alpha: Number, kinds: Number) -> Number:
    """Different patterns that a corpus is expected to hold.

    Args:
        occurrences: patterns in it, repeated ones as often as they are.
        alpha: exponent of the law.
        kinds: how many different patterns there could be.
    """
    occurrences, alpha = _over_ranks(occurrences), _over_ranks(alpha)
    ranks, weights = ranks_and_weights(_over_ranks(kinds))
    chances = ranks**-alpha
    chances = np.minimum(chances / _summed(chances, weights)[..., None], _NEARLY_ONE)
    return _summed(-np.expm1(occurrences * np.log1p(-chances)), weights)


@equation(
    "expected = (kinds + 0.5) · (1 - e^-rarest) - 0.5 + most^(1 / alpha) · Γ(1 - 1 / alpha, rarest), "
    "most = occurrences / H, rarest = most / kinds^alpha",
    unit="",
    source="the sum as an integral; Font-Clos, Corral 2015; unlimited kinds: Karlin 1967, Heaps' power 1 / alpha",
)
def distinct_in_large_samples(occurrences: Number, alpha: Number, kinds: Number) -> Number:
    """Different patterns of a large corpus in closed form: within a thousandth where a hundred are expected.

    Args:
        occurrences: patterns in it, repeated ones as often as they are.
        alpha: exponent of the law.
        kinds: how many different patterns there could be.
    """
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
    occurrences, alpha = (np.asarray(each, dtype=float) for each in (occurrences, alpha))
    wanted = np.log(np.maximum(occurrences, 1.0))
    found = wanted + 0.0 * alpha
    # Newton on logarithms: the sum of r^-alpha up to V grows by V^-alpha with the next rank.
    for _ in range(_STEPS):
        kinds = np.exp(found)
        once = occurrences / most_frequent(occurrences, alpha, kinds)
        slope = alpha + kinds ** (1.0 - alpha) / once
        before, found = found, np.clip(found - (alpha * found + np.log(once) - wanted) / slope, 0.0, wanted)
        if np.all(np.abs(found - before) <= _SAME * found):
            break
    return np.asarray(np.exp(found))


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
    found = low
    # The line through both ends meets zero; an end that stays counts half (Illinois), else it would stay for good.
    for _ in range(_STEPS):
        found = np.where(settled, 0.0, (low * below - high * above) / np.where(settled, 1.0, below - above))
        here = missing(found)
        if np.all(settled | (np.abs(here) <= _SAME)):
            break
        rises = here > 0.0
        low, high = np.where(rises, found, low), np.where(rises, high, found)
        above, below = np.where(rises, here, above / 2.0), np.where(rises, below / 2.0, here)
    return np.where(none_do, np.inf, np.exp(found))


def ranks_and_weights(kinds: Floats) -> tuple[Floats, Floats]:
    """Return ranks, and how many ranks each stands for in a sum over all from 1 to ``kinds``.

    Args:
        kinds: last rank; of shape (..., 1), the last axis becomes that of the ranks.
    """
    single = np.arange(1.0, _SINGLE_RANKS + 1.0)
    counted = np.clip(kinds + 1.0 - single, 0.0, 1.0)
    first, last = _SINGLE_RANKS + 0.5, np.maximum(kinds + 0.5, _SINGLE_RANKS + 0.5)
    width = np.log(last / first) / _PANELS
    places, shares = _quadrature()
    far = first * np.exp(width * places)
    stands_for = far * width * shares
    shape = (*kinds.shape[:-1], _SINGLE_RANKS)
    return (
        np.concatenate((np.broadcast_to(single, shape), far), axis=-1),
        np.concatenate((counted, stands_for), axis=-1),
    )


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return places and weights over all panels, each panel one long."""
    places, shares = np.polynomial.legendre.leggauss(_NODES)
    return (np.arange(_PANELS)[:, None] + (places + 1.0) / 2.0).ravel(), np.tile(shares / 2.0, _PANELS)


def _over_ranks(value: Number) -> Floats:
    return np.asarray(value, dtype=float)[..., None]


def _summed(values: Floats, weights: Floats) -> Floats:
    return np.asarray(np.sum(values * weights, axis=-1))
