"""The simulation of replicas against queues whose waits are known."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from capacity_tui.engine.fleet.serving.question import Lengths, steady_requests, varying_requests
from capacity_tui.engine.fleet.serving.simulation import Answered, StepTimes, percentile_by, simulate

REPLICAS = 200
PROMPT = 100


def simple_times(answering: float, per_prompt: float, slots: int, longest: int = 16 * PROMPT) -> StepTimes:
    """Passes that take as long whatever their batch, and as much longer as their prompts have tokens."""
    seconds = np.full((slots + 1, 1, longest + 1), answering)
    seconds[:, :, 1:] = per_prompt * np.arange(1, longest + 1) / PROMPT
    return StepTimes(seconds, 1e9, 1.0, slots, np.inf, mixes=True)


def answered(rate: float, lengths: Lengths, times: StepTimes, warm_up: float, counted: float) -> Answered:
    requests = steady_requests(np.full(REPLICAS, rate), warm_up, np.full(REPLICAS, counted), 0.0, lengths, seed=7)
    ones = np.ones(REPLICAS)
    return simulate(requests, times, np.full(REPLICAS, times.slots), ones, ones)


@pytest.mark.parametrize("busy", [0.5, 0.8])
def test_prompts_of_one_length_wait_as_in_front_of_one_server_with_a_fixed_time(busy: float) -> None:
    # M/D/1: rate · work^2 / 2 / (1 - rate · work)
    work = 0.1
    found = answered(busy / work, Lengths(PROMPT, 0, 1, 0), simple_times(0.0, work, 1), 10.0, 30.0)
    assert found.first.mean() - work == pytest.approx(busy * work / 2 / (1 - busy), rel=0.04)
    assert found.busy.sum() / found.clock.sum() == pytest.approx(busy, rel=0.03)


def test_prompts_of_all_lengths_wait_as_pollaczek_and_khinchine_say() -> None:
    # M/G/1: (1 + spread^2) / 2 times what exponential work waits.
    work, busy, spread = 0.1, 0.7, 0.8
    times = simple_times(0.0, work, 1)
    found = answered(busy / work, Lengths(PROMPT, PROMPT * spread, 1, 0), times, 10.0, 40.0)
    assert found.first.mean() - work == pytest.approx(busy * work * (1 + spread**2) / 2 / (1 - busy), rel=0.06)


def test_exponential_answers_wait_for_a_place_as_erlang_says() -> None:
    # M/M/c: answers of exponential length in so many places, prompts that take no time.
    slots, step, tokens, busy = 4, 0.01, 60, 0.75
    times = simple_times(step, 1e-9, slots, longest=2)
    times.seconds[:, :, 1:] = step
    rate = busy * slots / (tokens * step)
    found = answered(rate, Lengths(1, 0, tokens, tokens), times, 20.0, 30.0)
    offered = busy * slots
    all_busy = offered**slots / factorial(slots) / (1 - busy)
    waits = all_busy / (sum(offered**each / factorial(each) for each in range(slots)) + all_busy)
    # A request waits for the end of a pass, and for the pass that reads it.
    assert found.first.mean() - 1.5 * step == pytest.approx(waits / (rate / busy - rate), rel=0.08)
    assert (found.first > 2.0 * step).mean() == pytest.approx(waits, rel=0.06)


def test_tokens_follow_each_other_at_the_time_of_a_pass() -> None:
    found = answered(0.2, Lengths(PROMPT, 0, 50, 0), simple_times(0.02, 0.1, 4), 0.0, 40.0)
    alone = np.isclose(found.first, 0.1)
    assert alone.mean() > 0.7
    assert np.nanmin(found.per_token) == pytest.approx(0.02)
    assert np.nanpercentile(found.per_token, 50) < 0.024


def test_the_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    lengths, ones = Lengths(PROMPT, 20, 30, 30), np.ones(3)
    one, again, other = (steady_requests(ones, 5.0, 20 * ones, 1.0, lengths, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.arrivals, again.arrivals)
    assert np.array_equal(one.outputs, again.outputs)
    assert not np.array_equal(one.arrivals[:3], other.arrivals[:3])


def test_a_load_that_varies_has_its_requests_where_it_is_high() -> None:
    rates = np.repeat([0.0, 10.0, 5.0, 0.0], 6)
    found = varying_requests(rates, 3600.0, 24, 600.0, 30.0, 10.0, Lengths(PROMPT, 0, 1, 0), seed=3)
    numbers = np.bincount(found.replicas[found.counts], minlength=24)
    assert numbers[1:5].sum() == 0
    assert numbers[7:11] == pytest.approx(6000, rel=0.06)
    assert numbers[13:17] == pytest.approx(3000, rel=0.08)


def test_lengths_have_the_mean_and_deviation_that_were_asked_for() -> None:
    found = steady_requests(np.array([500.0]), 0.0, np.array([100.0]), 0.0, Lengths(800, 400, 200, 200), seed=5)
    assert found.prompts.mean() == pytest.approx(800, rel=0.02)
    assert found.prompts.std() == pytest.approx(400, rel=0.03)
    assert found.outputs.mean() == pytest.approx(200, rel=0.02)
    assert found.outputs.std() == pytest.approx(200, rel=0.03)


def test_a_percentile_is_that_of_its_own_group() -> None:
    values, groups = np.array([5.0, 1.0, 9.0, np.nan, 3.0, 7.0]), np.array([0, 1, 0, 1, 1, 0])
    assert percentile_by(values, groups, 3, 50.0)[:2] == pytest.approx([7.0, 1.0])
    assert np.isnan(percentile_by(values, groups, 3, 50.0)[2])
