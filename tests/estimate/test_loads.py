"""Serving under load: what more requests, longer queues, known prompts and guesses do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import SERVING, plan_of

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate, estimate_plan, resolve_plan
from capacity_tui.engine.estimate.result import InferenceSpeed
from capacity_tui.engine.estimate.serving import serving_run
from capacity_tui.engine.estimate.serving.queueing import closed_response, reading_wait, slot_wait
from capacity_tui.engine.estimate.serving.run import ServingRun, accepted_tokens, longest_output
from capacity_tui.engine.estimate.serving.speed import decode, launch_seconds, prefill
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.estimate.work import Phase
from capacity_tui.engine.plan import Plan

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


def test_none_is_said_to_wait_where_all_but_a_part_of_one_run() -> None:
    assert 0 < speed_of(concurrency=64).waiting_requests < 1
    assert not estimate_of(concurrency=64).warnings


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
    assert "the queue grows without bound" in estimate.warnings[0].detail


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
@given(
    st.floats(0.0, 0.95), st.floats(0.0, 0.95), st.sampled_from([{}, {"concurrency": 32, "output_tokens_stddev": 64}])
)
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
    load = {"concurrency": 64, "output_tokens_stddev": 64}
    assert first_token(**load, max_num_batched_tokens=256) > first_token(**load)


def test_queues_follow_what_is_known_of_them() -> None:
    # One server at half load with fixed service waits half a service; with exponential service a whole one.
    assert reading_wait(0.5, 1.0, 0.0) == pytest.approx(0.5)
    assert reading_wait(0.5, 1.0, 1.0) == pytest.approx(1.0)
    assert slot_wait(0.5, 1.0, 1.0, 1.0) == pytest.approx(1.0)
    assert slot_wait(np.array([0.5]), np.array([1.0]), np.array([64.0]), 1.0)[0] < 0.01
    # Nothing else to do: all wait for the one server. Nothing to wait for: only its own work.
    assert closed_response(1.0, 0.0, 8.0) == pytest.approx(8.0)
    assert closed_response(1.0, 1e9, 8.0) == pytest.approx(1.0, rel=1e-6)


def test_a_request_waits_for_its_host_before_anything_is_read() -> None:
    row = load_catalog().engines["vllm"]
    for load in ({"batch": 1}, {"concurrency": 1}, {"request_rate": 0.1}):
        seconds = [first_token(engine="vllm", prompt_tokens=16, **load), first_token(engine="vllm", **load)]
        assert min(seconds) > row.request_us * 1e-6


def test_a_slower_host_delays_requests_passes_and_sequences() -> None:
    def speeds(host: float, **load: Any) -> InferenceSpeed:
        changed = {f"inference.{name}": value for name, value in {"engine": "vllm", **load}.items()}
        speed = estimate_plan(plan_of(SERVING, {"hardware.host_speed": host, **changed})).estimate.computation.infer
        assert speed is not None
        return speed

    row = load_catalog().engines["vllm"]
    fast, slow = (speeds(host, batch=1, prompt_tokens=64) for host in (1.0, 0.5))
    added = slow.time_to_first_token_seconds.value - fast.time_to_first_token_seconds.value
    assert added == pytest.approx((row.request_us + row.step_us + row.sequence_us) * 1e-6, rel=1e-6)
    assert slow.time_per_output_token_seconds is not None
    assert fast.time_per_output_token_seconds is not None
    later = slow.time_per_output_token_seconds.value - fast.time_per_output_token_seconds.value
    assert later == pytest.approx((row.step_us + row.sequence_us) * 1e-6, rel=1e-6)
    few, many = (speeds(host, concurrency=64) for host in (0.25, 1.0))
    assert few.requests_per_second.value < many.requests_per_second.value


def test_passes_without_a_captured_graph_wait_for_launches() -> None:
    catalog, launch = load_catalog(), 60e-6
    resolved = resolve_plan(plan_of(SERVING, {"inference.engine": "vllm", "inference.batch": 1}), catalog)
    assert resolved.shape is not None
    run = serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog)

    def seconds(phase: Callable[[ServingRun], Phase], prompt: float, **runtime: float) -> float:
        return float(phase_time(phase(replace(run, prompt=prompt, runtime=replace(run.runtime, **runtime)))).seconds)

    def eager(phase: Callable[[ServingRun], Phase], prompt: float) -> float:
        return seconds(phase, prompt, captured_context=1024.0, eager_seconds=launch)

    assert eager(decode, 512.0) == seconds(decode, 512.0)
    launches = run.runtime.kernels_per_layer * run.shape.layers * launch
    for late in (eager(decode, 4096.0), eager(prefill, 64.0)):
        assert late >= launches > seconds(decode, 4096.0)
    assert launch_seconds(0.0, 5e-6, np.array([0.0, 1.0])).tolist() == [0.0, 5e-6]
    assert launch_seconds(9e-6, 5e-6, 1.0) == 9e-6


def test_a_high_percentile_is_less_sure_than_the_median_and_a_batch_surer_than_a_load() -> None:
    def widths(percentile: float) -> tuple[float, float]:
        speed = speed_of(request_rate=8, percentile=percentile, engine="vllm==0.20.1")
        first, token = speed.time_to_first_token_percentile_seconds, speed.time_per_output_token_percentile_seconds
        assert first is not None
        assert token is not None
        return float(first.high / first.low), float(token.high / token.low)

    batch = speed_of(batch=8, engine="vllm==0.20.1").time_to_first_token_seconds
    assert widths(99)[0] > widths(50)[0] > float(batch.high / batch.low)
    assert widths(99)[1] > widths(50)[1]


@pytest.mark.filterwarnings("error")
def test_answers_of_one_token_have_rates_that_end() -> None:
    speed = speed_of(prompt_tokens=16, output_tokens=1, request_rate=0.1, requests=50)
    assert speed.decode_tokens_per_second is not None and speed.time_per_output_token_seconds is not None
    assert 0 < speed.decode_tokens_per_second.value < 1e6 and speed.time_per_output_token_seconds.value > 1e-6


def test_a_spread_that_no_lengths_have_is_refused() -> None:
    with pytest.raises(PlanError, match="at least 1 token"):
        estimate_of(prompt_tokens=1, prompt_tokens_stddev=5.0, request_rate=1.0)
    with pytest.raises(PlanError, match=r"inference\.output_tokens_stddev"):
        estimate_of(output_tokens=10, output_tokens_stddev=4000.0, request_rate=1.0)
    with pytest.raises(PlanError, match="no answer is longer"):
        estimate_of(output_tokens=1, longest_output_tokens=800)
    assert estimate_of(prompt_tokens=100, prompt_tokens_stddev=100.0, request_rate=1.0).fits


@FEW
@given(st.integers(1, 64), st.floats(0.0, 0.95), st.sampled_from([1, 4]))
def test_twice_the_prompt_never_answers_sooner(prompt: int, cached: float, stages: int) -> None:
    def first(tokens: int) -> float:
        changes = {"prompt_tokens": tokens, "prefix_cache_hit_rate": cached, "batch": 512, "engine": "llamacpp"}
        wanted = {f"inference.{name}": value for name, value in changes.items()}
        plan = plan_of(SERVING, {**wanted, "hardware.devices": stages, "parallelism.pp": stages, "parallelism.tp": 1})
        speed = estimate_plan(plan).estimate.computation.infer
        assert speed is not None
        return float(speed.time_to_first_token_seconds.value)

    assert first(2 * prompt) >= first(prompt) * (1 - 1e-9)


def served_on(hardware: str, devices: int = 1, model: str = "llama-3.1-8b", **inference: Any) -> InferenceSpeed:
    """Return the speeds of a model that some devices split."""
    changes = {"model.name": model, "hardware.name": hardware, "hardware.devices": devices, "parallelism.tp": devices}
    plan = plan_of(SERVING, changes | {f"inference.{name}": value for name, value in inference.items()})
    speed = estimate_plan(plan).estimate.computation.infer
    assert speed is not None
    return speed


@pytest.mark.parametrize(("hardware", "tokens"), [("a100-sxm-80gb", 2048), ("l40s", 2048), ("h100-sxm-80gb", 8192)])
def test_a_server_of_vllm_reads_as_many_tokens_a_pass_as_its_device_lets_it(hardware: str, tokens: int) -> None:
    load = {"engine": "vllm", "concurrency": 32, "prompt_tokens": 1024, "output_tokens": 128, "requests": 32}
    usual, given, other = (
        served_on(hardware, **load, **passes).time_to_first_token_seconds.value
        for passes in ({}, {"max_num_batched_tokens": tokens}, {"max_num_batched_tokens": 10240 - tokens})
    )
    assert float(usual) == pytest.approx(float(given))
    assert float(usual) != pytest.approx(float(other), rel=0.1)


def test_answers_stand_still_while_prompts_are_read_unless_passes_are_mixed() -> None:
    load = {"engine": "vllm", "request_rate": 4, "requests": 200, "prompt_tokens": 4096, "output_tokens_stddev": 100}
    mixed, apart = (served_on("h100-sxm-80gb", **load, chunked_prefill=mixes) for mixes in (True, False))
    assert float(apart.time_to_first_token_seconds.value) < float(mixed.time_to_first_token_seconds.value)
    # Releases before 0.8 mix passes where a model's context is long.
    old = {**load, "engine": "vllm==0.7.3", "prompt_tokens": 2048}
    usual, forced = (served_on("h100-sxm-80gb", **old, **given) for given in ({}, {"chunked_prefill": True}))
    assert float(usual.time_to_first_token_seconds.value) == float(forced.time_to_first_token_seconds.value)


def test_kernels_of_blocks_of_8_bit_floats_were_slow_before_spring_2025() -> None:
    load = {"concurrency": 4, "requests": 4, "prompt_tokens": 3200, "output_tokens": 800, "weights": "fp8"}
    whole = {"chunked_prefill": False, "max_num_batched_tokens": 163_840}
    old, new = (
        float(served_on("h200-sxm", 8, "deepseek-r1", engine=engine, **load, **whole).time_to_first_token_seconds.value)
        for engine in ("vllm==0.7.3", "vllm")
    )
    # A published server of 0.7.4 read four such prompts in 0.97 s.
    assert 0.7 < old < 1.4
    assert old > 1.5 * new


def test_fewer_requests_than_replicas_take_as_long_together_as_one() -> None:
    served = {"task": "infer", "model": {"name": "llama-3.1-8b"}, "hardware": {"name": "h100-sxm-80gb", "devices": 8}}
    load = {"engine": "vllm", "request_rate": 50.0, "requests": 4}
    plan = Plan.model_validate({**served, "inference": load, "parallelism": {"tp": 1, "pp": 1}})
    speed = estimate_plan(plan).estimate.computation.infer
    assert speed is not None
    assert speed.all_requests_seconds is not None
    assert speed.request_seconds is not None
    assert float(speed.all_requests_seconds.value) >= float(speed.request_seconds.value)
