"""Loads that end, batches that the cache holds in parts, and models that generate nothing."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scheduler import simulated

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, estimate_plan, figure, resolve_plan
from capacity_tui.engine.estimate.serving import serving_run
from capacity_tui.engine.fleet.serving.question import Requests
from capacity_tui.engine.fleet.serving.simulation import simulate, step_times
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.verdict import Verdict

ALL_REQUESTS = "computation.infer.all_requests_seconds"
LENGTHS = {"prompt_tokens": 256, "output_tokens": 256, "output_tokens_stddev": 96, "weights": "bf16"}


def plan_of(model: str = "llama-3.1-8b", hardware: str = "a100-sxm-80gb", **inference: Any) -> Plan:
    """Return the plan of one device that serves."""
    document = {
        "task": "infer",
        "model": {"name": model},
        "hardware": {"name": hardware, "devices": 1},
        "inference": {"engine": "vllm==0.7.3", **LENGTHS, **inference},
    }
    return plan_from_data(document)


def estimate_of(*where: str, **inference: Any) -> Estimate:
    """Return its estimate."""
    return estimate_plan(plan_of(*where, **inference), None, load_catalog()).estimate


def seconds_of(**inference: Any) -> dict[str, float]:
    """Return the latencies of a load."""
    speed = estimate_of(**inference).computation.infer
    assert speed is not None
    return {
        name: float(getattr(speed, f"{name}_seconds").value)
        for name in ("time_to_first_token", "time_to_first_token_percentile", "time_per_output_token", "request")
    }


def test_a_load_that_arrives_faster_than_it_is_answered_ends_all_the_same() -> None:
    assert math.isinf(seconds_of(request_rate=60)["request"])
    few, many = (seconds_of(request_rate=60, requests=count) for count in (100, 400))
    for name, value in few.items():
        assert 0 < value <= many[name] < 600
    assert many["time_to_first_token_percentile"] > many["time_to_first_token"]
    assert estimate_of(request_rate=60, requests=400).verdict is Verdict.FITS
    assert estimate_of(request_rate=60).verdict is Verdict.MISSES_LIMIT


def test_a_load_of_very_many_requests_is_the_steady_state() -> None:
    ending, going_on = seconds_of(request_rate=4, requests=1_000_000), seconds_of(request_rate=4)
    for name in ("time_to_first_token", "time_per_output_token", "request"):
        assert ending[name] == pytest.approx(going_on[name], rel=0.03)


@pytest.mark.parametrize("prompt", [2048, 6144])
def test_a_prompt_goes_through_every_stage_whatever_runs_beside_it(prompt: int) -> None:
    def first_token(**load: Any) -> float:
        document = {
            "task": "infer",
            "model": {"name": "qwen3-32b"},
            "hardware": {"name": "rtx-a6000", "devices": 4},
            "parallelism": {"tp": 1, "pp": 4, "dp": 1},
            "inference": {"engine": "tensorrt-llm", "prompt_tokens": prompt, "output_tokens": 2, **load},
        }
        speed = estimate_plan(plan_from_data(document), None, load_catalog()).estimate.computation.infer
        assert speed is not None
        return float(speed.time_to_first_token_seconds.value)

    alone = first_token(batch=1)
    for share in (0.5, 1.0):
        ending = first_token(request_rate=share / alone, requests=50)
        assert 0.95 * alone < ending < 1.5 * alone
        assert ending == pytest.approx(first_token(request_rate=share / alone), rel=0.3)


@pytest.mark.parametrize(("engine", "rate"), [("vllm==0.7.3", 20.0), ("vllm", 20.0)])
def test_it_is_as_requests_simulated_pass_by_pass(engine: str, rate: float) -> None:
    count, side, percentile = 300, 3, 50
    plan = plan_of(engine=engine, request_rate=rate, requests=count, percentile=percentile)
    resolved = resolve_plan(plan, load_catalog())
    assert resolved.shape is not None
    run = serving_run(resolved.plan, resolved.shape, resolved.cluster, load_catalog())
    draw = np.random.default_rng(7)
    arrivals = np.concatenate([np.cumsum(draw.exponential(1 / rate, count)) for _ in range(side)])
    width = math.sqrt(math.log(1 + (96 / 256) ** 2))
    outputs = np.rint(256 * np.exp(draw.normal(-(width**2) / 2, width, count * side))).astype(np.int64)
    starts, whole = np.arange(side + 1) * count, np.full(count * side, 256)
    requests = Requests(starts, arrivals, whole, outputs, np.zeros(side), np.full(side, np.inf))
    ones, slots = np.ones(side), 256
    seen = simulate(requests, step_times(run, slots, 1500.0, 8192.0), np.full(side, slots), ones, ones)
    speed = estimate_plan(plan, None, load_catalog()).estimate.computation.infer
    assert speed is not None and speed.time_per_output_token_percentile_seconds is not None
    token = float(speed.time_per_output_token_percentile_seconds.value)
    assert token == pytest.approx(float(np.nanpercentile(seen.per_token, percentile)), rel=0.2)


@pytest.mark.parametrize(
    ("engine", "prompt", "answer", "users", "count", "spread"),
    [
        ("vllm", 512, 256, 4, 4, 0.0),  # all prompts in one pass
        ("vllm", 512, 256, 128, 128, 0.0),  # several passes, answers given meanwhile
        ("vllm", 3200, 800, 64, 500, 0.0),  # in groups, one after the other
        ("vllm", 1024, 256, 300, 300, 0.5),
        ("vllm", 256, 64, 64, 256, 1.0),
        ("sglang", 512, 256, 128, 128, 0.0),  # several passes, during which answers stand still
        ("sglang", 3200, 800, 64, 500, 0.0),  # all of them again and again
        ("sglang", 512, 256, 32, 40, 0.0),  # the last ones are fewer
        ("sglang", 1024, 256, 64, 300, 0.5),
        ("sglang", 1024, 64, 128, 128, 1.5),  # the few tokens of short answers wait as long: their mean is no median
    ],
)
def test_so_many_at_once_until_all_are_answered_see_what_the_scheduler_does(
    engine: str, prompt: int, answer: int, users: int, count: int, spread: float
) -> None:
    spreads = {"prompt_tokens_stddev": spread * prompt, "output_tokens_stddev": spread * answer / 2}
    lengths = {"prompt_tokens": prompt, "output_tokens": answer}
    plan = plan_of(engine=engine, concurrency=users, requests=count, **lengths, **spreads)
    resolved = resolve_plan(plan, load_catalog())
    assert resolved.shape is not None
    run = serving_run(resolved.plan, resolved.shape, resolved.cluster, load_catalog())
    seen = simulated(run, users, count, share_left_out=0.0)
    # Spreads are those of few requests.
    tolerance = 0.1 if spread == 0 else 0.25
    for percentile in (50, 99):
        speed = estimate_of(
            engine=engine, concurrency=users, requests=count, percentile=percentile, **lengths, **spreads
        ).computation.infer
        assert speed is not None and speed.time_per_output_token_percentile_seconds is not None
        assert speed.time_to_first_token_percentile_seconds is not None and speed.request_seconds is not None
        slowest = float(np.quantile(seen.first, percentile / 100))
        if percentile != 50 or users * prompt > 5 * run.runtime.chunk_tokens:
            first = speed.time_to_first_token_percentile_seconds.value
            assert float(first) == pytest.approx(slowest, rel=2 * tolerance)
        token = float(np.quantile(seen.token, percentile / 100))
        assert float(speed.time_per_output_token_percentile_seconds.value) == pytest.approx(token, rel=0.35)
        assert float(speed.time_to_first_token_seconds.value) == pytest.approx(seen.first.mean(), rel=2 * tolerance)
        assert float(speed.request_seconds.value) == pytest.approx(seen.whole.mean(), rel=tolerance)


@pytest.mark.parametrize(
    ("engine", "prompt", "answer", "users", "spread"),
    [
        ("vllm", 4000, 200, 400, 0.0),
        ("vllm", 2000, 400, 400, 0.5),
        ("vllm", 128, 8, 1000, 0.0),  # many places, but answers end while prompts of others are still read
        ("sglang", 4000, 200, 400, 0.0),  # groups of one length, one after the other
        ("sglang", 2000, 400, 400, 0.5),
    ],
)
def test_those_whom_the_cache_has_no_place_for_answer_beside_others_as_in_the_scheduler(
    engine: str, prompt: int, answer: int, users: int, spread: float
) -> None:
    spreads = {"prompt_tokens_stddev": spread * prompt, "output_tokens_stddev": spread * answer / 2}
    load: dict[str, Any] = {"engine": engine, "concurrency": users, "requests": users, **spreads}
    plan = plan_of("qwen3-14b", prompt_tokens=prompt, output_tokens=answer, **load)
    resolved = resolve_plan(plan, load_catalog())
    assert resolved.shape is not None
    run = serving_run(resolved.plan, resolved.shape, resolved.cluster, load_catalog())
    estimate = estimate_plan(plan, None, load_catalog()).estimate
    places = min(int(estimate.details["inference.sequences_in_cache"]), users)
    seen, speed = simulated(run, places, users, share_left_out=0.0), estimate.computation.infer
    assert speed is not None and speed.time_per_output_token_seconds is not None and speed.request_seconds is not None
    assert float(speed.time_per_output_token_seconds.value) == pytest.approx(seen.token.mean(), rel=0.2)
    assert float(speed.time_to_first_token_seconds.value) == pytest.approx(seen.first.mean(), rel=0.2)
    assert float(speed.request_seconds.value) == pytest.approx(seen.whole.mean(), rel=0.15)


def test_requests_end_a_load() -> None:
    with pytest.raises(CapacityError, match="request_rate or concurrency"):
        plan_of(requests=300)


def test_a_batch_beyond_the_cache_is_answered_in_waves_and_marked() -> None:
    where = "llama-3.1-8b", "rtx-4090"
    whole, part = (estimate_of(*where, engine="vllm", batch=batch) for batch in (400, 8))
    assert (whole.verdict, part.verdict) == (Verdict.TIGHT, Verdict.FITS)
    assert "cache" in whole.reason and "cache_too_small" in [note.code for note in whole.warnings]
    assert float(whole.memory.reserved_bytes.value) <= float(whole.memory.capacity_bytes or 0)
    assert float(whole.details["inference.sequences_in_cache"]) < 400
    # A cache without room for one sequence is no matter of waves.
    assert estimate_of("llama-3.1-70b", "rtx-4090", engine="vllm", batch=400).verdict is Verdict.DOES_NOT_FIT


@pytest.mark.parametrize("load", [{"batch": 1}, {"concurrency": 8}, {"request_rate": 2.0}])
def test_a_cache_without_room_for_one_request_does_not_fit(load: dict[str, Any]) -> None:
    layout: dict[str, Any] = {
        "engine": "vllm",
        "prompt_tokens": 8192,
        "output_tokens": 512,
        "gpu_memory_utilization": 0.7,
    }
    short = estimate_of("llama-3.1-8b", "rtx-4090", **layout, **load)
    # The device would hold one request, but not within the share of it that the engine takes.
    assert short.memory.fits
    assert short.verdict is Verdict.DOES_NOT_FIT
    assert short.reason == short.shortage == "cache 0 sequences < 1 sequences"
    enough = estimate_of("llama-3.1-8b", "rtx-4090", **{**layout, "gpu_memory_utilization": 0.9}, **load)
    assert enough.verdict is not Verdict.DOES_NOT_FIT
    large = estimate_of("llama-3.1-70b", "rtx-4090", **layout, **load)
    assert "cache" not in large.reason


@pytest.mark.parametrize("rate", [1.0, 100.0, 3000.0])
def test_what_generates_nothing_is_answered_with_its_first_token(rate: float) -> None:
    speed = estimate_of(
        "bert-large", "h100-sxm-80gb", engine="transformers", prompt_tokens=128, request_rate=rate
    ).computation.infer
    assert speed is not None and speed.request_seconds is not None
    assert float(speed.request_seconds.value) == pytest.approx(float(speed.time_to_first_token_seconds.value))


@pytest.mark.filterwarnings("error")
def test_a_job_of_what_generates_nothing_ends() -> None:
    load = {"engine": "transformers", "prompt_tokens": 128, "weights": "fp16"}
    few, many = (
        figure(estimate_of("bert-large", "l4", concurrency=256, requests=count, **load), ALL_REQUESTS).number
        for count in (10_000, 20_000)
    )
    assert few is not None and many == pytest.approx(2 * few, rel=0.05)


def test_all_requests_take_their_number_at_the_rate_at_which_they_are_answered() -> None:
    estimate = estimate_of(requests=50_000, concurrency=64)
    speed = estimate.computation.infer
    assert speed is not None and speed.all_requests_seconds is not None
    seconds = float(speed.all_requests_seconds.value)
    assert seconds == pytest.approx(50_000 / float(speed.requests_per_second.value))
    twice = estimate_of(requests=100_000, concurrency=64).computation.infer
    assert twice is not None and twice.all_requests_seconds is not None
    assert float(twice.all_requests_seconds.value) == pytest.approx(2 * seconds, rel=0.01)
    dollars = figure(estimate, "cost.usd_of_all_requests").number
    assert dollars == pytest.approx(seconds / 3600 * float(estimate.cost.usd_per_hour))
    goes_on = estimate_of(concurrency=64).computation.infer
    assert goes_on is not None and goes_on.all_requests_seconds is None


def test_a_load_whose_requests_follow_answers_may_end_sooner_as_well_as_later() -> None:
    speed = estimate_of(concurrency=32, requests=1000).computation.infer
    time, rate = speed.all_requests_seconds, speed.requests_per_second
    assert float(time.low) < float(time.value) < float(time.high)
    assert float(rate.low) < float(rate.value) < float(rate.high)
    arriving = estimate_of(request_rate=0.5, requests=1000).computation.infer
    assert float(arriving.requests_per_second.high) == pytest.approx(float(arriving.requests_per_second.value))


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("share", [0.8, 1.0, 1.3])
@pytest.mark.parametrize("count", [16, 100])
def test_few_places_are_waited_for_as_long_as_in_the_scheduler(slots: int, share: float, count: int) -> None:
    lengths = {"prompt_tokens": 1024, "output_tokens_stddev": 0, "concurrency": slots, "engine": "vllm"}
    most = estimate_of(request_rate=1e3, **lengths).computation.infer
    assert most is not None and most.largest_requests_per_second is not None
    load = {**lengths, "request_rate": share * float(most.largest_requests_per_second.value), "requests": count}
    resolved = resolve_plan(plan_of(**load), load_catalog())
    assert resolved.shape is not None
    run = serving_run(resolved.plan, resolved.shape, resolved.cluster, load_catalog())
    seen = [simulated(run, slots, count, seed, share_left_out=0.0) for seed in range(30)]
    told = seconds_of(**load)
    assert told["request"] == pytest.approx(np.mean([each.whole.mean() for each in seen]), rel=0.15)
    assert told["time_to_first_token"] == pytest.approx(np.mean([each.first.mean() for each in seen]), rel=0.3)


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_longer_prompts_of_a_load_that_ends_take_no_less(slots: int) -> None:
    loads = (
        {"concurrency": slots, "request_rate": 9.0, "requests": 36, "prompt_tokens": 100 * n} for n in range(8, 40)
    )
    requests = [seconds_of(output_tokens_stddev=0, **load)["request"] for load in loads]
    assert all(longer >= 0.97 * shorter for shorter, longer in pairwise(requests))  # requests end in whole passes
