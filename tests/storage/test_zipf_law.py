"""Zipf's law: expectations against brute force, simulation and what is known of large samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.storage import expected_distinct
from capacity_tui.engine.storage.zipf import (
    distinct_in_large_samples,
    frequency_at_rank,
    kinds_for_distinct,
    kinds_of_corpus,
    most_frequent,
    upper_incomplete_gamma,
)

EXPONENTS = [0.3, 0.7, 1.0, 1.3, 2.0]


def chances(alpha, kinds):
    weights = np.arange(1, kinds + 1.0) ** -alpha
    return weights / weights.sum()


@pytest.mark.parametrize(("rank", "times"), [(1, 100_000), (100, 1_000), (10_000, 10)])
def test_frequencies_fall_with_the_rank(rank, times):
    assert frequency_at_rank(100_000.0, rank, 1.0) == pytest.approx(times, rel=1e-12)


@pytest.mark.parametrize("alpha", EXPONENTS)
@pytest.mark.parametrize("kinds", [1, 7, 1_000, 300_000])
def test_the_expectation_is_the_sum_over_all_ranks(alpha, kinds):
    occurrences = np.array([1.0, 10.0, 1e4, 1e7])
    p = np.minimum(chances(alpha, kinds), 1 - 1e-15)
    by_hand = [np.sum(-np.expm1(n * np.log1p(-p))) for n in occurrences]
    assert expected_distinct(occurrences, alpha, kinds) == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize("alpha", EXPONENTS)
def test_the_expectation_is_what_simulated_draws_hold(alpha):
    random, draws, kinds = np.random.default_rng(7), 20_000, 50_000
    ends = np.cumsum(chances(alpha, kinds))
    found = [len(np.unique(np.searchsorted(ends, random.random(draws)))) for _ in range(25)]
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - float(expected_distinct(draws, alpha, kinds))) < 4 * error


def test_sizes_from_a_hundred_to_ten_billion_are_one_call():
    samples = np.geomspace(1e2, 1e10, 9)
    kinds = kinds_of_corpus(samples, 1.0)
    exact = expected_distinct(samples, 1.0, kinds)
    assert exact.shape == (9,)
    assert np.all(np.diff(exact) > 0) and np.all(np.diff(exact / samples) < 0)
    assert distinct_in_large_samples(samples, 1.0, kinds) == pytest.approx(exact, rel=0.01)
    assert distinct_in_large_samples(samples, 1.0, kinds)[3:] == pytest.approx(exact[3:], rel=1e-5)


@settings(max_examples=30)
@given(alpha=st.floats(0.2, 3.0), size=st.floats(1e4, 1e12), share=st.floats(0.01, 1e4))
def test_the_closed_form_meets_the_exact_expectation(alpha, size, share):
    kinds = min(max(float(kinds_of_corpus(size, alpha)) * share, 10.0), 1e14)
    exact = float(expected_distinct(size, alpha, kinds))
    if exact > 100:
        assert float(distinct_in_large_samples(size, alpha, kinds)) == pytest.approx(exact, rel=1e-3)


def test_unlimited_kinds_grow_as_heaps_law_says():
    zeta = 2.6123753486854883  # of 3/2
    law = math.gamma(1 / 3) * (1e8 / zeta) ** (2 / 3)
    assert float(expected_distinct(1e8, 1.5, 1e15)) == pytest.approx(law, rel=1e-4)


@settings(max_examples=30)
@given(alpha=st.floats(0.1, 3.0), size=st.floats(2.0, 1e12))
def test_the_rarest_kind_of_a_corpus_is_expected_once(alpha, size):
    kinds = kinds_of_corpus(size, alpha)
    assert float(frequency_at_rank(most_frequent(size, alpha, kinds), kinds, alpha)) == pytest.approx(1.0, rel=1e-6)


def test_kinds_are_found_for_a_number_of_different_patterns():
    kinds = kinds_for_distinct(4e5, 1e6, 1.0)
    assert float(expected_distinct(1e6, 1.0, kinds)) == pytest.approx(4e5, rel=1e-6)
    assert np.isinf(kinds_for_distinct(9e5, 1e6, 3.0)), "a steep law repeats more, whatever the number of kinds"


@pytest.mark.parametrize(
    ("order", "start", "integral"),
    [(1.0, 2.0, math.exp(-2)), (0.5, 1.0, math.sqrt(math.pi) * math.erfc(1.0)), (0.0, 1.0, 0.21938393439552)],
)
def test_the_incomplete_gamma_function_has_its_known_values(order, start, integral):
    assert float(upper_incomplete_gamma(order, start)) == pytest.approx(integral, rel=1e-6)
    below = upper_incomplete_gamma(np.array([order - 1.0]), np.array([0.3, start]))
    above = upper_incomplete_gamma(np.array([order]), np.array([0.3, start]))
    starts = np.array([0.3, start])
    step = (order - 1.0) * below + starts ** (order - 1.0) * np.exp(-starts)
    assert above == pytest.approx(step, rel=1e-5)


def test_a_corpus_in_which_everything_repeats_has_one_kind() -> None:
    with np.errstate(all="raise"):
        assert float(kinds_for_distinct(0.0, 1e9, 1.0)) == pytest.approx(1.0)
