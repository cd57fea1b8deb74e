"""What is said of a load lies near what a scheduler does that runs it pass by pass."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler import Seen, simulated

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.estimate.serving import ServingRun, room_in_cache, serving_run
from capacity_tui.engine.estimate.serving.steady_load import steady_state
from capacity_tui.engine.estimate.work import Loaded
from capacity_tui.engine.plan import Plan

SOME = settings(max_examples=12, deadline=None, derandomize=True)
REQUESTS, MOST_REQUESTS, IN_FLIGHT = 800, 4000, 12
# Factors by which the closed form may differ from the scheduler.
MEAN_FIRST, MEAN_TOKEN, HIGH_FIRST, HIGH_TOKEN = 1.5, 1.4, 2.2, 2.0

engines = st.sampled_from(["vllm", "sglang"])
prompts = st.sampled_from([256, 1024, 2048, 4096])
answers = st.sampled_from([64, 128, 256, 512])
spreads = st.sampled_from([0.2, 0.5, 1.0])


def run_of(engine: str, prompt: int, answer: int, **load: float) -> ServingRun:
    """Return the run of an 8B model on one device under a load."""
    document = {
        "task": "infer",
        "model": {"name": "llama-3.1-8b"},
        "hardware": {"name": "a100-sxm-80gb", "devices": 1},
        "parallelism": {"dp": 1, "tp": 1, "pp": 1},
        "inference": {"engine": engine, "prompt_tokens": prompt, "output_tokens": answer, **load},
    }
    catalog = load_catalog()
    resolved = resolve_plan(Plan.model_validate(document), catalog)
    assert resolved.shape is not None
    return serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog)


def told(run: ServingRun, percentile: float) -> Loaded:
    """Return what is said of a load."""
    deviations = NormalDist().inv_cdf(percentile)
    return steady_state(replace(run, traffic=replace(run.traffic, beyond=1 - percentile, deviations=deviations)))[2]


def seen(run: ServingRun) -> Seen:
    """Return what requests see where a scheduler runs them."""
    count = int(np.clip(IN_FLIGHT * float(told(run, 0.5).running), REQUESTS, MOST_REQUESTS))
    return simulated(run, int(min(float(run.slots), float(room_in_cache(run)))), count)


def check(run: ServingRun) -> None:
    """Compare means and high percentiles."""
    found, middle, high = seen(run), told(run, 0.5), told(run, 0.95)
    pairs: list[tuple[Any, float, float]] = [
        (middle.first_token, float(found.first.mean()), MEAN_FIRST),
        (middle.token_seconds, float(found.token.mean()), MEAN_TOKEN),
        (high.first_token_percentile, float(np.quantile(found.first, 0.95)), HIGH_FIRST),
        (high.token_seconds_percentile, float(np.quantile(found.token, 0.95)), HIGH_TOKEN),
    ]
    for said, measured, factor in pairs:
        assert measured / factor <= float(said) <= measured * factor, (float(said), measured, factor)


@SOME
@given(engines, prompts, answers, spreads, st.floats(0.02, 0.75))
def test_arrivals_see_what_the_scheduler_does(
    engine: str, prompt: int, answer: int, spread: float, load: float
) -> None:
    spreads = {"prompt_tokens_stddev": spread * prompt, "output_tokens_stddev": 0.5 * answer}
    most = float(steady_state(run_of(engine, prompt, answer, request_rate=1e6))[2].largest_rate)
    check(run_of(engine, prompt, answer, request_rate=load * most, **spreads))


@SOME
@given(engines, prompts, answers, spreads, st.sampled_from([1, 2, 5, 16, 48]))
def test_users_see_what_the_scheduler_does(engine: str, prompt: int, answer: int, spread: float, users: int) -> None:
    spreads = {"prompt_tokens_stddev": spread * prompt, "output_tokens_stddev": 0.5 * answer}
    check(run_of(engine, prompt, answer, concurrency=users, **spreads))


@SOME
@given(engines, prompts, answers, st.sampled_from([1, 2, 5, 16]))
def test_answers_of_one_length_stay_together(engine: str, prompt: int, answer: int, users: int) -> None:
    check(run_of(engine, prompt, answer, concurrency=users))


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize(
    ("prompt", "answer", "users"), [(512, 8, 256), (2048, 2, 64), (128, 1, 256), (2048, 64, 200), (40, 128, 64)]
)
def test_prompts_wait_for_each_other_where_answers_are_short(
    prompt: int, answer: int, users: int, spread: float
) -> None:
    run = run_of("vllm", prompt, answer, concurrency=users, output_tokens_stddev=spread * (answer - 1))
    found, steady = seen(run), told(run, 0.5)
    assert steady.first_token == pytest.approx(float(found.first.mean()), rel=0.1)
    assert steady.request == pytest.approx(float(found.whole.mean()), rel=0.1)


def test_prompts_read_before_answers_hold_these_up() -> None:
    mixed = run_of("vllm", 2048, 64, concurrency=32, output_tokens_stddev=32)
    first = replace(mixed, runtime=replace(mixed.runtime, mixes_prefill=0.0))
    for run in (mixed, first):
        check(run)
    assert seen(first).first.mean() < seen(mixed).first.mean()
    assert told(first, 0.5).first_token < told(mixed, 0.5).first_token


@pytest.mark.parametrize("rate", [1.0, 4.0, 8.0])
def test_prompts_wait_for_all_passes_that_are_scheduled_at_once(rate: float) -> None:
    alone = run_of("vllm==0.6.3", 512, 256, request_rate=rate, prompt_tokens_stddev=250, output_tokens_stddev=128)
    several = replace(alone, runtime=replace(alone.runtime, scheduled_passes=10.0))
    for run in (alone, several):
        check(run)
    assert seen(several).first.mean() > seen(alone).first.mean()
    assert told(several, 0.5).first_token > told(alone, 0.5).first_token
    assert told(several, 0.5).token_seconds < told(alone, 0.5).token_seconds


@pytest.mark.parametrize("percentile", [0.5, 0.9])
def test_percentiles_grow(percentile: float) -> None:
    run = run_of("vllm", 1024, 128, request_rate=4.0, prompt_tokens_stddev=500)
    lower, higher = told(run, percentile), told(run, percentile + 0.09)
    assert lower.first_token_percentile < higher.first_token_percentile
    assert lower.token_seconds_percentile < higher.token_seconds_percentile
