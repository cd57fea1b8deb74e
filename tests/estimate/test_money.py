"""Money is price times time, interruptions included where capacity may be taken back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.estimate import Estimate, checkpoint_period, estimate_plan, figure, interruption_surplus
from capacity_tui.engine.estimate.figures.values import absence
from capacity_tui.engine.estimate.money import spot_surplus
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve import answer, explain
from capacity_tui.engine.solve.changes import value_of
from capacity_tui.engine.uncertainty import Interval

CATALOG = load_catalog()
HARDWARE = [
    {"name": "aws-p5-48xlarge", "devices": 8},
    {"name": "aws-p5-48xlarge", "devices": 20},
    {"name": "aws-g6f-2xlarge"},
    {"name": "h100-sxm-80gb", "devices": 64},
    {"name": "verda-a100-80gb", "devices": 2},
    {"name": "azure-nd96isr-h100-v5", "devices": 16},
    {"name": "mi455x"},
]


def plan_of(hardware: object, task: str = "train", **pricing: object) -> Plan:
    return Plan.model_validate(
        {
            "model": {"name": "llama-3.2-1b"},
            "task": task,
            "training": {"seq_len": 2048, "tokens": 1e9} if task == "train" else {},
            "parallelism": {"zero": 3} if task == "train" else {},
            "hardware": hardware,
            "pricing": pricing,
        }
    )


def job_hours(estimate: Estimate) -> float:
    seconds = value_of(estimate, "computation.estimated_train_time_seconds")
    assert seconds is not None
    return seconds / 3600


@given(
    hardware=st.sampled_from(HARDWARE), spot=st.booleans(), usd=st.one_of(st.none(), st.just(0.0), st.floats(0.01, 1e4))
)
@settings(deadline=None, max_examples=60)
def test_a_job_costs_price_times_time(hardware: object, spot: bool, usd: float | None) -> None:
    plan = plan_of(hardware, spot=spot, usd_per_hour=usd)
    estimate = estimate_plan(plan).estimate
    cost, price = estimate.cost, resolve_cluster(plan.hardware, plan.pricing, CATALOG, None).price
    if cost.usd_per_hour is None:
        assert cost.usd is cost.usd_per_million_tokens is None
        assert "pricing.usd_per_hour" in cost.source
        return
    surplus = 0.0
    if price.is_spot and price.interruptions is not None:
        parts = estimate.memory.parts
        written = (parts["weights"] + parts["optimizer"]) / price.interruptions.checkpoint_bandwidth
        surplus = float(spot_surplus(replace(price.interruptions, checkpoint_seconds=written)))
    assert cost.usd == pytest.approx(cost.usd_per_hour * job_hours(estimate) * (1 + surplus))
    tokens = estimate.computation.steps * estimate.computation.units_per_step
    assert cost.usd_per_million_tokens == pytest.approx(float(np.mean(cost.usd / tokens * 1e6)))
    if price.is_spot:
        assert surplus > 0
        assert cost.usd_spot == pytest.approx(cost.usd)


@pytest.mark.parametrize("hardware", [{"name": "aws-p5-48xlarge", "devices": 16}, {"name": "h100", "devices": 64}])
def test_spot_is_one_number_whether_it_is_on_or_off(hardware: object) -> None:
    off, on = (estimate_plan(plan_of(hardware, spot=spot)).estimate for spot in (False, True))
    assert on.cost.usd_per_hour < off.cost.usd_per_hour  # type: ignore[operator]
    assert off.cost.usd_spot == pytest.approx(on.cost.usd_spot)
    assert on.cost.usd == pytest.approx(on.cost.usd_spot)
    assert off.cost.usd > off.cost.usd_spot  # type: ignore[operator]
    assert any("takes an instance back" in text for text in on.basis.assumed)


def test_spot_widens_the_range_of_the_price() -> None:
    off, on = (
        figure(estimate_plan(plan_of({"name": "aws-p5-48xlarge", "devices": 64}, spot=spot)).estimate, "cost.usd").value
        for spot in (False, True)
    )
    assert isinstance(off, Interval)
    assert isinstance(on, Interval)
    assert on.high / on.value > off.high / off.value
    assert on.low / on.value < off.low / off.value


def test_without_a_spot_price_the_plan_runs_on_demand_and_says_so() -> None:
    estimate = estimate_plan(plan_of({"name": "azure-nd96isr-h100-v5"}, spot=True)).estimate
    assert estimate.cost.usd_per_hour == 98.32
    assert "no spot price is known: on demand" in estimate.basis.assumed


@given(checkpoint=st.floats(1, 3600), restart=st.floats(0, 7200), interval=st.floats(60, 1e7))
def test_interruptions_only_ever_cost_time_and_less_where_they_are_rarer(
    checkpoint: float, restart: float, interval: float
) -> None:
    def surplus(between: float) -> float:
        return float(interruption_surplus(checkpoint_period(checkpoint, between), checkpoint, restart, between))

    assert 0 < surplus(interval) < np.inf
    assert surplus(interval * 4) < surplus(interval) * (1 + 1e-9)


def test_rare_interruptions_cost_what_the_first_order_says() -> None:
    """Young's formula: the root of twice the checkpoint over the interval, and the restarts."""
    checkpoint, restart, interval = 60.0, 600.0, 30 * 24 * 3600.0
    found = float(interruption_surplus(checkpoint_period(checkpoint, interval), checkpoint, restart, interval))
    assert found == pytest.approx((2 * checkpoint / interval) ** 0.5 + restart / interval, rel=0.02)


def test_the_advice_for_spot_is_the_estimate_with_spot_and_ends_there() -> None:
    plan = plan_of({"name": "aws-p5-48xlarge", "devices": 8})
    found = answer(plan).estimate
    note = next(note for note in found.recommendations if note.code == "spot")
    on = estimate_plan(plan_of({"name": "aws-p5-48xlarge", "devices": 8}, spot=True)).estimate
    assert note.saves is not None
    assert note.saves["cost.usd"] == pytest.approx(float(on.cost.usd - found.cost.usd))  # type: ignore[operator]
    assert "us-east-2" in note.detail
    after = answer(plan_of({"name": "aws-p5-48xlarge", "devices": 8}, spot=True)).estimate
    assert "spot" not in [note.code for note in after.recommendations]


@pytest.mark.parametrize("hardware", [{"name": "aws-p5-48xlarge"}, {"name": "h100"}, {"name": "gcp-g2-standard-4"}])
def test_spot_is_never_the_first_advice_for_serving(hardware: object) -> None:
    codes = [note.code for note in answer(plan_of(hardware, "infer")).estimate.recommendations]
    assert "spot" not in codes[:1]
    assert "spot" not in codes or codes[-1] == "spot"


@pytest.mark.parametrize("spot", [False, True])
def test_a_job_of_open_length_has_a_price_an_hour_and_none_in_all(spot: bool) -> None:
    plan = plan_of({"name": "aws-p5-48xlarge"}, "infer", spot=spot)
    found = answer(plan)
    result = result_as_dict(found.plan, found.estimate)
    cost, energy = result["cost"], result["energy"]
    assert isinstance(cost, dict)
    assert isinstance(energy, dict)
    assert cost["usd"] is cost["usd_spot"] is energy["kwh"] is None
    assert cost["usd_per_hour"] == (11.754 if spot else 55.04)
    assert cost["usd_per_million_tokens"] > 0
    assert energy["watts_average"] > 0
    told = explain(found.plan, "cost.usd").explanation.remarks
    assert any("length is open" in text for text in told)


def test_the_range_of_the_price_is_among_the_ranges() -> None:
    found = estimate_plan(plan_of({"name": "aws-p5-48xlarge"}))
    result = result_as_dict(found.plan, found.estimate)
    assert isinstance(result["ranges"], dict)
    assert isinstance(result["cost"], dict)
    assert result["ranges"]["cost.usd"]["low"] < result["cost"]["usd"] < result["ranges"]["cost.usd"]["high"]


def test_larger_states_take_longer_to_checkpoint_and_a_frozen_base_is_not_written() -> None:
    def surplus(**training: object) -> float:
        plan = {
            "task": "finetune",
            "model": {"name": "llama-3.1-8b"},
            "training": {**training, "steps": 100},
            "hardware": {"name": "aws-p5-48xlarge", "devices": 8},
            "pricing": {"spot": True},
        }
        estimate = estimate_plan(Plan.model_validate(plan)).estimate
        assert estimate.cost.usd is not None and estimate.cost.usd_per_hour is not None
        return float(np.mean(estimate.cost.usd / job_hours(estimate) / estimate.cost.usd_per_hour)) - 1.0

    eight_bit, whole = surplus(optimizer="adamw8bit"), surplus(optimizer="adamw")
    adapters = surplus(adapter={"kind": "lora"})
    assert 0.0 < adapters < eight_bit < whole


@pytest.mark.parametrize("spot", [False, True])
def test_what_is_interrupted_before_it_gets_on_has_no_price_on_spot_capacity(spot: bool) -> None:
    plan = Plan.model_validate(
        {
            "model": {"name": "llama-3.1-70b"},
            "training": {"tokens": 1e11, "micro_batch": 1, "global_batch": 4096},
            "parallelism": {"tp": 8, "zero": 1, "dp": 2048},
            "hardware": {"name": "h100-sxm-80gb", "devices": 16384},
            "pricing": {"spot": spot},
        }
    )
    found = answer(plan).estimate
    assert found.cost.usd_spot is None
    assert "interrupted every" in absence("cost.usd_spot", found)
    assert (found.cost.usd is None) is spot
    assert ("hopeless_on_spot" in [note.code for note in found.warnings]) is spot
    assert "spot" not in [note.code for note in found.recommendations]


def test_spot_capacity_that_costs_more_or_may_is_never_named_without_saying_so() -> None:
    def answered(device: str, devices: int, tokens: float, **parallel: int) -> Estimate:
        model = "gpt2" if devices == 1 else "gpt-3-175b"
        plan = {"model": {"name": model}, "task": "train", "training": {"tokens": tokens, "micro_batch": 1},
                "hardware": {"name": device, "devices": devices}, "parallelism": parallel}  # fmt: skip
        return answer(Plan.model_validate(plan)).estimate

    for found in (answered("rtx-4090", 1, 1e9), answered("a100-sxm-80gb", 1024, 3e11, tp=8, pp=8)):
        assert found.cost.usd is not None and found.cost.usd_spot is not None
        assert found.cost.interval is not None and found.cost.spot_interval is not None
        is_dearer = bool(np.max(found.cost.usd_spot) > np.max(found.cost.usd))
        assert ("spot_is_dearer" in [note.code for note in found.warnings]) is is_dearer
        may_be = bool(np.max(found.cost.spot_interval.high) > np.max(found.cost.interval.high))
        for note in found.recommendations:
            assert note.code != "spot" or ("costs up to" in note.detail) is may_be
