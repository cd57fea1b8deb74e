"""Serving under load: what more requests, longer queues, known prompts and guesses do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import SERVING, plan_of

from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.estimate.result import InferenceSpeed
from capacity_tui.engine.estimate.serving.queueing import closed_response, reading_wait, slot_wait
from capacity_tui.engine.estimate.serving.run import accepted_tokens, longest_output

FEW = settings(max_examples=8, deadline=None)


def estimate_of(**changes: Any) -> Estimate:
    """Return the estimate of a 7B model on one device; keyword arguments go to its inference section."""
    return estimate_plan(plan_of(SERVING, {f"inference.{name}": value for name, value in changes.items()})).estimate


def speed_of(**changes: Any) -> InferenceSpeed:
    """Return its speeds."""
    speed = estimate_of(**changes).computation.infer
    assert speed is not None
    return speed


def requests(**changes: Any) -> float:
    """Return the requests answered a second."""
    return float(speed_of(**changes).requests_per_second.value)


def first_token(**changes: Any) -> float:
    """Return the time to the first token."""
    return float(speed_of(**changes).time_to_first_token_seconds.value)


@FEW
@given(st.integers(1, 300), st.integers(1, 300))
def test_more_requests_at_once_are_never_answered_more_slowly_in_all(one: int, other: int) -> None:
    few, many = sorted((one, other))
    assert requests(concurrency=many) >= requests(concurrency=few) * (1 - 1e-9)


def test_beyond_what_the_cache_holds_requests_wait_and_the_rate_stays() -> None:
    full, fuller = estimate_of(concurrency=2000), estimate_of(concurrency=4000)
    speeds = [each.computation.infer for each in (full, fuller)]
    assert speeds[0] is not None
    assert speeds[1] is not None
    assert speeds[0].requests_per_second.value == pytest.approx(speeds[1].requests_per_second.value)
    assert speeds[1].time_to_first_token_seconds.value > 1.5 * speeds[0].time_to_first_token_seconds.value
    assert [note.code for note in full.warnings] == ["requests_wait"]
    assert full.fits


@FEW
@given(st.floats(0.05, 4.0), st.floats(0.05, 4.0))
def test_the_time_to_the_first_token_grows_with_the_rate(one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    assert first_token(request_rate=fast) >= first_token(request_rate=slow) * (1 - 1e-6)


def test_a_rate_that_can_be_answered_is_answered() -> None:
    speed = speed_of(request_rate=2.5)
    assert speed.requests_per_second.value == pytest.approx(2.5, rel=1e-4)
    assert speed.output_tokens_per_second is not None
    assert speed.output_tokens_per_second.value == pytest.approx(2.5 * 256, rel=1e-4)


def test_more_than_can_be_answered_is_said_to_saturate() -> None:
    estimate = estimate_of(request_rate=1000)
    speed = estimate.computation.infer
    assert speed is not None
    assert speed.largest_requests_per_second is not None
    assert speed.requests_per_second.value == pytest.approx(speed.largest_requests_per_second.value)
    assert math.isinf(float(speed.time_to_first_token_seconds.value))
    assert "the queue grows without end" in estimate.warnings[0].detail


def test_what_the_cache_does_not_hold_of_a_batch_adds_nothing_to_its_rate() -> None:
    large, larger = (speed_of(batch=batch, gpu_memory_utilization=0.4) for batch in (2000, 4000))
    assert large.requests_per_second.value == pytest.approx(larger.requests_per_second.value, rel=0.02)


def test_replicas_share_the_rate() -> None:
    one = plan_of(SERVING, {"inference.request_rate": 2.0})
    two = plan_of(SERVING, {"inference.request_rate": 4.0, "hardware.devices": 2, "parallelism.dp": 2})
    speeds = [estimate_plan(plan).estimate.computation.infer for plan in (one, two)]
    assert speeds[0] is not None
    assert speeds[1] is not None
    assert speeds[1].requests_per_second.value == pytest.approx(2 * speeds[0].requests_per_second.value, rel=1e-4)
    assert speeds[1].time_to_first_token_seconds.value == pytest.approx(
        speeds[0].time_to_first_token_seconds.value, rel=1e-3
    )


@FEW
@given(st.floats(0.0, 0.95), st.floats(0.0, 0.95), st.sampled_from([{}, {"concurrency": 32}]))
def test_a_cached_prompt_is_never_read_more_slowly(one: float, other: float, load: dict[str, int]) -> None:
    less, more = sorted((one, other))
    known = speed_of(prefix_cache_hit_rate=more, **load)
    unknown = speed_of(prefix_cache_hit_rate=less, **load)
    assert known.requests_per_second.value >= unknown.requests_per_second.value * (1 - 1e-9)
    assert known.time_to_first_token_seconds.value <= unknown.time_to_first_token_seconds.value * (1 + 1e-9)


def test_the_percentile_is_beyond_the_mean_and_grows_with_the_spread_of_prompts() -> None:
    even, uneven = (speed_of(request_rate=2.5, prompt_tokens_stddev=spread) for spread in (0, 512))
    assert even.time_to_first_token_percentile_seconds is not None
    assert uneven.time_to_first_token_percentile_seconds is not None
    assert even.time_to_first_token_percentile_seconds.value >= even.time_to_first_token_seconds.value
    assert uneven.time_to_first_token_percentile_seconds.value > even.time_to_first_token_percentile_seconds.value


def test_a_batch_of_unlike_answers_drains() -> None:
    assert requests(batch=32, output_tokens_stddev=128) < requests(batch=32)
    assert requests(batch=1, output_tokens_stddev=128) == pytest.approx(requests(batch=1), rel=0.01)
    assert longest_output(100.0, 0.5, 1.0) == 100.0


def test_guesses_pay_for_one_request_if_most_are_accepted() -> None:
    plain, guessed = requests(batch=1), requests(batch=1, num_speculative_tokens=4, acceptance_rate=0.8)
    assert 1.5 * plain < guessed < 4 * plain
    assert requests(batch=1, num_speculative_tokens=4, acceptance_rate=0.0) < plain
    assert accepted_tokens(3.0, 1.0) == 4.0
    assert accepted_tokens(3.0, 0.5) == pytest.approx(1.875)


def test_prompts_cut_to_smaller_passes_are_read_later() -> None:
    assert first_token(concurrency=64, max_num_batched_tokens=256) > first_token(concurrency=64)


def test_queues_follow_what_is_known_of_them() -> None:
    # One server at half load with fixed service waits half a service; with exponential service a whole one.
    assert reading_wait(0.5, 1.0, 0.0) == pytest.approx(0.5)
    assert reading_wait(0.5, 1.0, 1.0) == pytest.approx(1.0)
    assert slot_wait(0.5, 1.0, 1.0, 1.0) == pytest.approx(1.0)
    assert slot_wait(np.array([0.5]), np.array([1.0]), np.array([64.0]), 1.0)[0] < 0.01
    # Nothing else to do: all wait for the one server. Nothing to wait for: only its own work.
    assert closed_response(1.0, 0.0, 8.0) == pytest.approx(8.0)
    assert closed_response(1.0, 1e9, 8.0) == pytest.approx(1.0, rel=1e-6)
