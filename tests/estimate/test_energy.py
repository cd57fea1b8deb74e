"""Electricity by part and what it emits, what devices draw, and what a step mostly goes to."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import grid_of
from capacity_tui.engine.estimate import METRICS, EnergyEstimate, Estimate, bottleneck_text, estimate_plan
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import answer, plan_of_line
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.uncertainty import Interval


def energy_of(line: str) -> EnergyEstimate:
    return answer(plan_of_line(read_line(line)).plan).estimate.energy


def test_parts_add_up_and_one_node_has_no_network() -> None:
    one, many = energy_of("gpt2 full 8xh100 1k 1B"), energy_of("gpt2 full 16xh100 1k 1B")
    for energy in (one, many):
        parts = (energy.kwh, energy.kwh_host, energy.kwh_network, energy.kwh_cooling)
        assert sum(mean(part) for part in parts if part is not None) == pytest.approx(mean(energy.kwh_system or 0.0))
    assert one.kwh_network == 0.0
    assert mean(many.kwh_network or 0.0) > 0.0


def test_emissions_follow_the_region_and_nothing_else_does() -> None:
    paris, warsaw = (
        energy_of(f"gpt2 full 8xh100 1k 1B pricing.region={region} pricing.usd_per_hour=20")
        for region in ("europe-west9", "polandcentral")
    )
    assert paris.kwh_system == warsaw.kwh_system
    assert mean(warsaw.carbon_kg or 0.0) / mean(paris.carbon_kg or 1.0) == pytest.approx(642.88 / 16.3)
    assert "2024" in paris.grid and paris.grid.startswith("paris")
    nowhere = energy_of("gpt2 full 8xh100 1k 1B pricing.usd_per_hour=20")
    assert nowhere.grams_per_kwh == grid_of(None).grams_per_kwh


def test_every_region_of_a_grid_is_known_and_has_one_grid() -> None:
    known = load_catalog().regions
    with_grids = [region for region in known if grid_of(region).name != "world"]
    assert len(with_grids) > 60
    counted = [region for name in with_grids for region in grid_of(name).regions]
    assert set(counted) <= set(known)


KWH = {"MWh": 1e3, "GWh": 1e6}
TOLD = re.compile(r"([\d.]+) (MWh|GWh) \(([\d .]+) to ([\d .]+)\)")
PUBLISHED = [
    [cell.strip() for cell in row.strip("|").split("|")]
    for row in (Path(__file__).parents[2] / "docs" / "energy.md").read_text("utf-8").splitlines()
    if row.startswith("| `") and "Wh (" in row
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row[0])
def test_the_page_tells_what_is_estimated_of_published_runs(row: list[str]) -> None:
    estimate = fill(plan_of_line(read_line(row[0].strip("`"))).plan, "balanced").estimate
    for cell, key in zip(row[3:], (Figure.ENERGY_KWH, Figure.ENERGY_KWH_SYSTEM), strict=True):
        found = TOLD.match(cell)
        assert found is not None, cell
        value = METRICS[key].read(estimate)
        assert isinstance(value, Interval)
        for text, end in zip(found.group(1, 3, 4), (value.value, value.low, value.high), strict=True):
            told = float(text.replace(" ", "")) * KWH[found[2]]
            assert told == pytest.approx(float(mean(end)), rel=0.02)


H100_WATTS, H100_IDLE = 700.0, 0.10


def estimated(**sections: object) -> Estimate:
    hardware = {"name": "h100-sxm-80gb"}
    return estimate_plan(Plan.model_validate({"hardware": hardware, **sections})).estimate


def served(**inference: object) -> Estimate:
    return estimated(task="infer", model={"name": "llama-3-8b"}, inference={"engine": "vllm", **inference})


@cache
def large() -> Estimate:
    return estimated(
        task="train",
        model={"name": "llama-3-8b", "spec": {"layers": 4}},
        training={"seq_len": 4096, "micro_batch": 8, "global_batch": 64, "framework": "megatron"},
    )


@cache
def tiny() -> Estimate:
    training = {"seq_len": 64, "micro_batch": 1, "global_batch": 8}
    return estimated(task="train", model={"name": "gpt2"}, training=training)


def share(estimate: Estimate) -> float:
    return float(estimate.energy.watts_average) / H100_WATTS


def test_a_step_of_launches_is_not_limited_by_compute() -> None:
    assert tiny().bottleneck.kind == "overhead"
    parts = tiny().computation.parts
    assert parts["overhead"] > 0.5 * float(tiny().computation.step_seconds.value)
    assert "overhead" in bottleneck_text(tiny().bottleneck)
    assert estimated(task="train", model={"name": "mlp"}).bottleneck.kind == "overhead"


def test_large_products_are_limited_by_compute_and_writing_by_memory() -> None:
    assert large().bottleneck.kind == "compute"
    assert served(prompt_tokens=128, output_tokens=2000, batch=8).bottleneck.kind == "memory_bandwidth"


def test_training_that_multiplies_without_pause_draws_nearly_the_limit() -> None:
    """The extreme mode's range of 90 to 100 % is reached by what keeps the matrix units busy, and by little else."""
    assert 0.9 < share(large()) <= 1.0
    assert H100_IDLE < share(tiny()) < 0.5


def prefill(device: str, engine: str, weights: str) -> float:
    inference = {"engine": engine, "weights": weights, "prompt_tokens": 2048, "output_tokens": 1, "batch": 1}
    plan = Plan.model_validate(
        {"task": "infer", "model": {"name": "llama-3-8b"}, "hardware": {"name": device}, "inference": inference}
    )
    speed = estimate_plan(plan).estimate.computation.infer
    return float(speed.prefill_tokens_per_second.value) if speed else 0.0


def test_cards_with_little_power_for_their_peak_multiply_at_a_lower_clock() -> None:
    assert prefill("l4", "vllm", "fp16") < 0.95 * prefill("l40s", "vllm", "fp16") * 121.0 / 362.0
    assert prefill("h100-pcie-80gb", "vllm", "fp16") < 0.9 * prefill("h100-sxm-80gb", "vllm", "fp16") * 756.5 / 989.4


def test_consumer_cards_that_add_up_in_16_bits_pay_in_power_for_their_doubled_peak() -> None:
    doubled = prefill("rtx-4090", "llamacpp", "fp16") / prefill("rtx-4090", "vllm", "fp16")
    full = prefill("rtx-6000-ada", "llamacpp", "fp16") / prefill("rtx-6000-ada", "vllm", "fp16")
    assert full < doubled < 2.0 * full


def test_writing_tokens_draws_less_than_reading_prompts() -> None:
    reading = served(prompt_tokens=8192, output_tokens=1, batch=16)
    writing = served(prompt_tokens=16, output_tokens=2000, batch=16)
    assert H100_IDLE < share(writing) < 0.7 < share(reading) <= 1.0


def test_the_share_bound_by_memory_counts_the_optimizer_as_the_limit_does() -> None:
    found = estimated(
        task="train",
        model={"name": "transformer_encoder"},
        training={"samples": 50_000, "epochs": 2, "micro_batch": 1, "global_batch": 1},
    ).bottleneck
    optimizer = found.parts["optimizer"] / sum(found.parts[part] for part in ("compute", "attention", "optimizer"))
    assert float(found.memory_bound) > optimizer > 0.4
    assert f"{float(found.memory_bound):.0%} of that memory-bound" in bottleneck_text(found)


def test_an_optimizer_on_the_processor_is_what_limits_where_it_takes_the_most() -> None:
    found = estimated(
        task="finetune",
        model={"name": "llama-3.1-8b"},
        training={"method": "full", "seq_len": 128, "micro_batch": 1, "global_batch": 1, "precision": "bf16"},
        parallelism={"offload": "optimizer"},
    ).bottleneck
    assert found.kind == "optimizer"
    assert "; optimizer " in bottleneck_text(found)
