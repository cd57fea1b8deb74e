"""Laws that every served load keeps, whatever engine answers it: Little's, monotony, capacity, shares up to 1."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, estimate_plan, figure, figures_of
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.uncertainty import Interval

SOME = settings(max_examples=12, deadline=None)
ENGINES = ["vllm", "sglang", "tensorrt-llm", "llamacpp", "transformers", "exllamav2", "mlc", "tgi", "lmdeploy"]
MODELS = ["llama-3.1-8b", "bert-large", "t5-large", "qwen3-30b-a3b"]
RIPPLE = 0.03  # What kernels of other sizes make of two nearly equal runs

lengths = st.sampled_from([(128, 1), (512, 128), (2048, 2), (4096, 512)])
served = st.tuples(st.sampled_from(ENGINES), st.sampled_from(MODELS), lengths)


def estimate_of(
    engine: str, model: str, tokens: tuple[int, int], devices: int = 1, hardware: str = "h100-sxm-80gb", **load: Any
) -> Estimate:
    """Return the estimate of a model that an engine serves, each device a replica."""
    document = {
        "task": "infer",
        "model": {"name": model},
        "hardware": {"name": hardware, "devices": devices},
        "parallelism": {"dp": devices, "tp": 1, "pp": 1},
        "inference": {"engine": engine, "prompt_tokens": tokens[0], "output_tokens": tokens[1], **load},
    }
    return estimate_plan(Plan.model_validate(document), None, load_catalog()).estimate


def speeds_of(*case: Any, **load: Any) -> dict[str, float]:
    """Return the speeds of what is served, those that it has."""
    speed = estimate_of(*case, **load).computation.infer
    assert speed is not None
    values = {each.name: getattr(speed, each.name) for each in fields(speed)}
    return {
        name: float(value.value if isinstance(value, Interval) else value)
        for name, value in values.items()
        if value is not None
    }


def in_flight(speeds: dict[str, float]) -> float:
    """Return the requests that run or wait."""
    return speeds["running_requests"] + speeds["waiting_requests"]


def test_prompts_that_scatter_as_much_and_are_longer_take_no_less() -> None:
    """What scatters is the length of a prompt, not the number of prompts, each of which has tiles to fill."""
    first = [
        speeds_of("vllm", "qwen3.5-0.8b", (prompt, 512), hardware="titan-xp", request_rate=2, prompt_tokens_stddev=280)[
            "time_to_first_token_seconds"
        ]
        for prompt in (16, 32, 64)
    ]
    assert first == sorted(first)


def test_users_whose_prompts_just_outgrow_a_pass_are_answered_no_sooner() -> None:
    """A pass of TensorRT-LLM reads 8,192 tokens: 12.8 users a device, of prompts of 640 tokens."""
    whole = [
        speeds_of("tensorrt-llm", "t5-small", (prompt, 3), devices=5, hardware="rtx-5090", concurrency=64)[
            "request_seconds"
        ]
        for prompt in (630, 650, 800, 1200)
    ]
    assert whole == sorted(whole)
    assert whole[1] == pytest.approx(whole[0], rel=0.02)


def test_a_load_that_ends_comes_to_rest_by_and_by() -> None:
    load = {"request_rate": 60, "output_tokens_stddev": 175}
    seconds = [
        speeds_of("vllm", "llama-3.1-8b", (128, 16), requests=count, **load)["request_seconds"]
        for count in np.geomspace(20, 400, 24).astype(int)
    ]
    steps = np.diff(np.log(seconds))
    assert np.all(np.abs(steps) < 0.03)


def test_a_load_of_fewer_requests_than_slots_leaves_none_waiting() -> None:
    load = {"concurrency": 4, "request_rate": 8}
    for count in (1, 2, 3):
        speeds = speeds_of("llamacpp", "llama-3.1-8b", (2048, 512), hardware="h100-sxm-80gb", requests=count, **load)
        assert speeds["waiting_requests"] == 0


@SOME
@given(served, st.sampled_from([1, 2, 7, 64, 513, 3000]), st.sampled_from([1, 3]))
def test_users_are_as_many_as_run_and_wait_and_little_holds(
    case: tuple[str, str, tuple[int, int]], users: int, devices: int
) -> None:
    speeds = speeds_of(*case, devices, concurrency=users)
    assert in_flight(speeds) == pytest.approx(users)
    assert speeds["requests_per_second"] * speeds["request_seconds"] == pytest.approx(users)
    assert speeds["waiting_requests"] >= 0


@SOME
@given(served, st.floats(0.01, 0.99), st.sampled_from([1, 3]))
def test_what_arrives_is_answered_and_little_holds(
    case: tuple[str, str, tuple[int, int]], load: float, devices: int
) -> None:
    most = speeds_of(*case, devices, request_rate=1e6)["largest_requests_per_second"]
    speeds = speeds_of(*case, devices, request_rate=load * most)
    assert speeds["requests_per_second"] == pytest.approx(load * most, rel=1e-12)
    assert speeds["requests_per_second"] <= speeds["largest_requests_per_second"]
    assert in_flight(speeds) == pytest.approx(load * most * speeds["request_seconds"])
    assert speeds["waiting_requests"] >= 0
    assert all(math.isfinite(value) for value in speeds.values())


@SOME
@given(served, st.floats(0.01, 1.5), st.floats(0.01, 1.5))
def test_more_arrivals_are_never_answered_sooner(
    case: tuple[str, str, tuple[int, int]], one: float, other: float
) -> None:
    most = speeds_of(*case, request_rate=1e6)["largest_requests_per_second"]
    few, many = (speeds_of(*case, request_rate=load * most) for load in sorted((one, other)))
    for name in ("requests_per_second", "largest_requests_per_second"):
        assert many[name] >= few[name] * (1 - 1e-9)
    for name in ("time_to_first_token_seconds", "request_seconds"):
        assert many[name] >= few[name] * (1 - RIPPLE)


@SOME
@given(served, st.integers(1, 2000), st.integers(1, 2000))
def test_more_users_are_never_answered_more_slowly_in_all(
    case: tuple[str, str, tuple[int, int]], one: int, other: int
) -> None:
    few, many = (speeds_of(*case, concurrency=users) for users in sorted((one, other)))
    assert many["requests_per_second"] >= few["requests_per_second"] * (1 - RIPPLE)
    assert many["request_seconds"] >= few["request_seconds"] * (1 - RIPPLE)


@SOME
@given(
    served,
    st.one_of(
        st.fixed_dictionaries({"concurrency": st.integers(1, 500)}),
        st.fixed_dictionaries({"request_rate": st.floats(0.01, 50)}),
    ),
    st.sampled_from([90.0, 95.0, 99.0]),
    st.sampled_from([0, 100]),
)
def test_high_percentiles_are_never_below_their_means_and_shares_end_at_one(
    case: tuple[str, str, tuple[int, int]], load: dict[str, float], percentile: float, spread: int
) -> None:
    estimate = estimate_of(*case, percentile=percentile, prompt_tokens_stddev=spread, **load)
    speed = estimate.computation.infer
    assert speed is not None
    for name in ("time_to_first_token", "time_per_output_token"):
        mean, slow = getattr(speed, f"{name}_seconds"), getattr(speed, f"{name}_percentile_seconds")
        assert mean is None or slow.value >= mean.value
    figures = figures_of(estimate)
    assert figures["computation.mfu"].high <= 1.0
    for each in figures.values():
        assert each.low <= each.value <= each.high
        assert math.isfinite(each.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", ["llama-3.1-8b", "bert-large"])
def test_an_engine_answers_at_its_best_what_it_answers_with_any_number_of_users(engine: str, model: str) -> None:
    most = speeds_of(engine, model, (512, 128), request_rate=1e6)["largest_requests_per_second"]
    for users in (1, 2, 4):
        assert most >= speeds_of(engine, model, (512, 128), concurrency=users)["requests_per_second"] * (1 - 1e-6)


def test_prompts_find_room_however_many_answers_run() -> None:
    rates = [
        speeds_of("llamacpp", "llama-3.1-8b", (512, 128), concurrency=users)["requests_per_second"]
        for users in (64, 128, 512, 4096)
    ]
    assert rates == sorted(rates)
    assert rates[0] > 20


def test_an_engine_takes_up_as_many_requests_as_it_is_set_to_where_nothing_is_said() -> None:
    alone = speeds_of("llamacpp", "llama-3.1-8b", (512, 128), request_rate=1e6)
    assert alone["running_requests"] == pytest.approx(4)
    wider = speeds_of("llamacpp", "llama-3.1-8b", (512, 128), request_rate=1e6, concurrency=64)
    assert wider["largest_requests_per_second"] > 5 * alone["largest_requests_per_second"]
    assert speeds_of("vllm", "llama-3.1-8b", (512, 128), request_rate=1e6)["running_requests"] == pytest.approx(256)


def test_an_encoder_waits_for_whole_passes() -> None:
    speeds = speeds_of("transformers", "bert-large", (512, 128), request_rate=100)
    assert speeds["largest_requests_per_second"] > 1000
    assert speeds["request_seconds"] < 0.1
    assert speeds["time_to_first_token_percentile_seconds"] < 0.2
    most = speeds_of("llamacpp", "bert-large", (512, 128), request_rate=1e6)["largest_requests_per_second"]
    busy = speeds_of("llamacpp", "bert-large", (512, 128), request_rate=0.97 * most)
    assert busy["time_to_first_token_seconds"] > 2 / busy["largest_requests_per_second"]


@pytest.mark.parametrize("pp", [1, 2, 6])
def test_no_load_is_answered_sooner_than_a_prompt_alone(pp: int) -> None:
    """Stages that work side by side answer more, but each prompt goes through all of them."""

    def first_token(rate: float) -> float:
        document = {
            "task": "infer",
            "model": {"name": "qwen2.5-72b"},
            "hardware": {"name": "a10g", "devices": 4 * pp},
            "parallelism": {"tp": 4, "pp": pp},
            "inference": {"engine": "vllm", "prompt_tokens": 2048, "output_tokens": 64, "request_rate": rate},
        }
        speed = estimate_plan(Plan.model_validate(document), None, load_catalog()).estimate.computation.infer
        assert speed is not None and speed.time_to_first_token_seconds is not None
        return float(speed.time_to_first_token_seconds.value)

    alone = first_token(1e-4)
    assert all(first_token(rate) >= alone * (1.0 - RIPPLE) for rate in (0.05, 0.2, 0.4))


def test_where_no_steady_state_exists_figures_say_why() -> None:
    estimate = estimate_of("vllm", "llama-3.1-8b", (512, 128), request_rate=1000)
    for name in ("time_to_first_token_seconds", "request_seconds", "waiting_requests"):
        found = figure(estimate, f"computation.infer.{name}")
        assert found.value is None
        assert "more requests arrive" in found.text


@SOME
@given(
    st.sampled_from(
        [("vllm", "rtx-4090"), ("sglang", "rtx-4090"), ("vllm", "a100-sxm-80gb"), ("tensorrt-llm", "l40s")]
    ),
    st.sampled_from([(2048, 256), (128, 2048)]),
    st.integers(1, 1024),
    st.integers(1, 1024),
)
def test_a_larger_batch_is_never_done_sooner(
    where: tuple[str, str], tokens: tuple[int, int], one: int, other: int
) -> None:
    engine, hardware = where
    small, large = (
        estimate_of(engine, "llama-3.1-8b", tokens, hardware=hardware, batch=batch) for batch in sorted((one, other))
    )
    assert float(large.computation.step_seconds.value) >= float(small.computation.step_seconds.value) * (1 - RIPPLE)
    speeds = [each.computation.infer for each in (small, large)]
    assert speeds[0] is not None
    assert speeds[1] is not None
    first = [float(each.time_to_first_token_seconds.value) for each in speeds if each is not None]
    assert first[1] >= first[0] * (1 - RIPPLE)


def test_arrays_of_loads_are_the_loads_one_by_one() -> None:
    from dataclasses import replace

    from capacity_tui.engine.estimate import resolve_plan
    from capacity_tui.engine.estimate.serving import serving_run
    from capacity_tui.engine.estimate.serving.steady_load import steady_state

    catalog = load_catalog()
    document = {
        "task": "infer",
        "model": {"name": "llama-3.1-8b"},
        "hardware": {"name": "h100-sxm-80gb", "devices": 1},
        "inference": {"engine": "vllm", "request_rate": 1.0},
    }
    resolved = resolve_plan(Plan.model_validate(document), catalog)
    assert resolved.shape is not None
    run = serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
    rates = np.array([0.5, 2.0, 5.0, 400.0])
    together = steady_state(replace(run, traffic=replace(run.traffic, rate=rates)))[2]
    for place, rate in enumerate(rates):
        alone = steady_state(replace(run, traffic=replace(run.traffic, rate=float(rate))))[2]
        for each in fields(alone):
            if each.name != "arriving":
                got = np.broadcast_to(getattr(together, each.name), rates.shape)[place]
                assert float(got) == pytest.approx(float(getattr(alone, each.name)), rel=1e-9)
