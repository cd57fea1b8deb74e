"""Lowest latency, balanced, cheapest token: what serving leaves open is chosen by what it reaches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.estimate import figure
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.modes import Comparison, compare, to_the_limit
from capacity_tui.engine.verdict import Holds, Verdict

TITLES = ["lowest latency", "balanced", "cheapest token"]


def served(devices: int = 8, model: str = "llama-3.1-8b", hardware: str = "h100-sxm-80gb", **inference: object) -> Plan:
    return Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": model},
            "inference": {"engine": "vllm", "batch": "auto", **inference},
            "hardware": {"name": hardware, "devices": devices},
        }
    )


def values(compared: Comparison, key: str) -> list[float]:
    return [figure(each.annotated_estimate, key).number or 0.0 for each in compared.columns]


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(("llama-3.1-8b", "qwen3-30b-a3b", "llama-3.1-70b")),
    st.sampled_from(("h100-sxm-80gb", "a100-sxm-80gb")),
    st.sampled_from((1, 4, 8)),
    st.sampled_from(("auto", 1, 16)),
)
def test_each_mode_is_best_at_what_it_is_called_after(model: str, hardware: str, devices: int, batch: object) -> None:
    compared = compare(served(devices, model, hardware, batch=batch))
    assert [each.mode.title for each in compared.columns] == TITLES
    if not all(each.estimate.fits for each in compared.columns):
        return
    first, token_seconds = (
        values(compared, f"computation.infer.{name}_seconds")
        for name in ("time_to_first_token", "time_per_output_token")
    )
    tokens = int(compared.balanced.plan.inference.output_tokens) - 1
    request = [a + tokens * b for a, b in zip(first, token_seconds, strict=True)]
    assert request[0] <= min(request) * 1.000001
    prices = values(compared, "cost.usd_per_million_tokens")
    assert prices[2] <= min(prices) * 1.000001
    assert {each.plan.inference.weights for each in compared.columns} == {"bf16"}, "nobody asked for other weights"
    assert {each.plan.inference.kv_cache for each in compared.columns} == {"fp16"}


def test_modes_of_serving_say_what_they_are() -> None:
    told = compare(served()).extreme.annotated_estimate.basis.filled_by
    assert told is not None
    assert told.line.startswith("cheapest token: up to 95 % of memory")


def test_an_open_cache_is_chosen_and_rounds_where_that_serves_the_goal() -> None:
    compared = compare(served(4, "llama-3.1-70b", kv_cache="auto"))
    assert compared.balanced.plan.inference.kv_cache == "fp16"
    assert compared.extreme.plan.inference.kv_cache == "fp8"
    assert all("inference.kv_cache" in each.reasons for each in compared.columns)


def test_what_keeps_limits_of_latency_is_chosen() -> None:
    free = compare(served(8, "llama-3.1-70b"))
    limited = compare(served(8, "llama-3.1-70b", ttft_seconds=2, tpot_seconds=0.02))
    key = "computation.infer.time_per_output_token_seconds"
    assert max(values(free, key)) > 0.02
    assert max(values(limited, key)) <= 0.02
    for each in limited.columns:
        seconds = [limit for limit in each.annotated_estimate.limits if limit.unit == "s"]
        assert len(seconds) == 2 and all(limit.holds is not Holds.NO for limit in seconds)
        assert "latency limits" in each.reasons["inference.batch"]


def test_a_limit_that_is_missed_is_in_the_verdict_and_in_the_result() -> None:
    found = answer(served(1, ttft_seconds=0.001, batch=4))
    assert found.estimate.verdict is Verdict.MISSES_LIMIT
    assert found.estimate.fits is False
    assert "TTFT" in found.estimate.verdict_text and "> 1.00 ms" in found.estimate.verdict_text
    result = result_as_dict(found.plan, found.estimate)
    assert (result["verdict"], result["fits"]) == ("misses_limit", False)
    broken = {each["figure"]: each for each in result["constraints"] if each["holds"] == "no"}  # type: ignore[attr-defined]
    (missed,) = broken.values()
    assert missed["figure"] == "computation.infer.time_to_first_token_seconds"
    assert missed["low"] < missed["value"] < missed["high"] and missed["most"] == 0.001


def test_under_a_load_limits_hold_for_the_percentile() -> None:
    found = compare(served(8, "llama-3.1-70b", batch=1, request_rate=3, ttft_seconds=0.5, tpot_seconds=0.03)).balanced
    assert [limit.figure.rpartition(".")[2] for limit in found.annotated_estimate.limits] == [
        "largest_requests_per_second",
        "time_to_first_token_percentile_seconds",
        "time_per_output_token_percentile_seconds",
    ]
    assert not found.annotated_estimate.broken


@pytest.mark.parametrize(("seconds", "verdict"), [(60, Verdict.FITS), (1, Verdict.MISSES_LIMIT)])
def test_whole_requests_keep_a_limit_in_their_mean(seconds: float, verdict: Verdict) -> None:
    found = answer(served(1, batch=1, request_rate=2, request_seconds=seconds)).estimate
    assert found.verdict is verdict
    (kept,) = [limit for limit in found.limits if limit.figure == "computation.infer.request_seconds"]
    assert kept.label == "mean request latency"
    assert (kept.holds is Holds.NO) is (verdict is Verdict.MISSES_LIMIT)


@pytest.mark.parametrize(("seconds", "verdict"), [(60, Verdict.FITS), (1, Verdict.MISSES_LIMIT)])
def test_a_limit_of_whole_requests_without_a_load_is_one_of_the_batch(seconds: float, verdict: Verdict) -> None:
    found = answer(served(1, batch=4, request_seconds=seconds)).estimate
    assert found.verdict is verdict
    (kept,) = [limit for limit in found.limits if limit.most == seconds]
    assert kept.figure == "computation.step_seconds"


@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b"])
def test_the_largest_batch_and_the_longest_context_that_fit_are_told(model: str) -> None:
    plan = served(8, model, batch=8)
    found = answer(plan)
    details = result_as_dict(found.plan, found.estimate)["details"]
    assert isinstance(details, dict)
    settled = found.plan
    assert details["inference.largest_batch"] == to_the_limit(settled, "inference.batch").value
    longest = float(found.resolved.shape.max_context)  # type: ignore[union-attr]
    prompt = to_the_limit(settled, "inference.prompt_tokens").value
    assert details["inference.longest_context"] == min(longest, (prompt or 0) + settled.inference.output_tokens)


def test_a_network_is_served_by_the_same_goals() -> None:
    plan = Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": "resnet50"},
            "inference": {"batch": "auto"},
            "hardware": {"name": "h100-sxm-80gb"},
        }
    )
    compared = compare(plan)
    batches = [int(each.plan.inference.batch) for each in compared.columns]
    assert batches[0] == 1
    steps = [float(each.estimate.computation.step_seconds.value) for each in compared.columns]
    rates = [batch / step for batch, step in zip(batches, steps, strict=True)]
    assert (min(steps), max(rates)) == (steps[0], rates[2])
