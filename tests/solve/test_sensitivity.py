"""What moves a figure most: each swing is what estimates one by one say, and the strongest stands first."""

from __future__ import annotations

import math
from functools import cache

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import figure
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import Sensitivity, Swing, plan_of_line, sensitivity
from capacity_tui.engine.solve.modes import fill

TRAINED = {
    "model": {"name": "gpt2"},
    "training": {"seq_len": 1024, "micro_batch": 4, "global_batch": 64, "steps": 1000, "framework": "megatron"},
    "hardware": {"name": "h100-sxm-80gb", "devices": 4},
}
PLANS = {
    "trained": TRAINED,
    "little known": {**TRAINED, "hardware": {"name": "tpu-v4", "devices": 1}},
    "unnamed": {**TRAINED, "training": {**TRAINED["training"], "framework": None}},
    "priced": {**TRAINED, "pricing": {"usd_per_hour": 10.0}},
    "served": {
        "task": "infer",
        "model": {"name": "llama-3.1-8b"},
        "inference": {"prompt_tokens": 1024, "output_tokens": 128, "batch": 8, "engine": "vllm"},
        "hardware": {"name": "h100-sxm-80gb", "devices": 1},
    },
    "layers": {
        "model": {"name": "resnet50"},
        "training": {"micro_batch": 32, "global_batch": 32, "steps": 100},
        "hardware": {"name": "rtx-4090"},
    },
    "fitted": {
        "model": {"name": "linear_regression_qr", "spec": {"n": 100_000, "p": 100}},
        "hardware": {"name": "CPU_8C_3.5Ghz_baseline"},
    },
}
STEP = "computation.step_seconds"
TOKEN = "computation.infer.time_per_output_token_seconds"


def plan_of(name: str) -> Plan:
    return Plan.model_validate(PLANS[name])


@cache
def sensitivity_of(name: str, of: str) -> Sensitivity:
    return sensitivity(plan_of(name), of)


def by_key(found: Sensitivity) -> dict[str, Swing]:
    return {swing.key: swing for swing in found.swings}


def one_by_one(name: str, path: str, value: object, of: str) -> float | None:
    changed = edited(plan_of(name), {path: value}).plan
    return figure(fill(changed, "balanced", None, load_catalog()).estimate, of).number


@pytest.mark.parametrize(
    ("name", "of", "paths"),
    [
        ("trained", STEP, ("training.seq_len", "training.checkpointing", "training.compile", "hardware.devices")),
        ("trained", "memory.reserved_bytes", ("training.micro_batch", "training.optimizer", "parallelism.zero")),
        ("trained", "cost.usd", ("training.steps", "pricing.spot")),
        ("served", TOKEN, ("inference.batch", "inference.weights")),
        ("layers", STEP, ("training.micro_batch", "training.global_batch")),
        ("fitted", STEP, ("model.spec.n", "model.spec.precision")),
    ],
)
def test_swings_are_what_estimates_one_by_one_say(name: str, of: str, paths: tuple[str, ...]) -> None:
    found = by_key(sensitivity_of(name, of))
    for path in paths:
        swing = found[path]
        assert swing.low == pytest.approx(one_by_one(name, path, swing.start, of))
        assert swing.high == pytest.approx(one_by_one(name, path, swing.end, of))


@pytest.mark.parametrize(
    ("name", "of"), [("trained", "cost.usd"), ("served", TOKEN), ("layers", STEP), ("fitted", STEP)]
)
def test_the_strongest_stands_first_and_the_plan_lies_inside(name: str, of: str) -> None:
    found = sensitivity_of(name, of)
    swings = [swing.swing for swing in found.swings]
    assert swings == sorted(swings, reverse=True)
    assert {swing.kind for swing in found.swings} == {"knob", "unknown"}
    for swing in found.swings:
        assert swing.low <= found.value * (1 + 1e-9)
        assert swing.high >= found.value * (1 - 1e-9)


def test_a_reward_model_without_an_output_head_is_compared_with_the_others() -> None:
    plan = plan_of_line(read_line("llama-3.1-8b lora h100 4k 50M")).plan
    found = sensitivity(plan, "cost.usd")
    preference = by_key(found)["training.preference"]
    assert preference.start == "reward"
    assert 0.8 * found.value < preference.low < found.value < preference.high


def test_what_does_not_move_a_figure_is_not_listed() -> None:
    found = by_key(sensitivity_of("trained", STEP))
    assert "pricing.spot" not in found
    assert "pricing.usd_per_hour" not in found
    assert not any(key.startswith("memory.") for key in found)
    assert all(swing.swing > 0 for swing in found.values())


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("trained", "memory.reserved_bytes"),
        ("trained", "computation.tokens_per_second"),
        ("served", TOKEN),
        ("layers", STEP),
    ],
)
def test_the_unknowns_together_are_the_range(name: str, of: str) -> None:
    found = sensitivity_of(name, of)
    unknown = [swing for swing in found.swings if swing.kind == "unknown"]
    value = found.figure.value
    below = math.sqrt(sum(math.log(found.value / swing.low) ** 2 for swing in unknown))
    above = math.sqrt(sum(math.log(swing.high / found.value) ** 2 for swing in unknown))
    assert found.value * math.exp(-below) == pytest.approx(float(value.low))
    assert found.value * math.exp(above) == pytest.approx(float(value.high))


def test_a_rate_is_lowest_where_its_time_is_longest() -> None:
    base = by_key(sensitivity_of("trained", "computation.tokens_per_second"))["step.base"]
    assert base.start > 1.0 > base.end


def test_a_price_nobody_gave_is_unknown() -> None:
    found = sensitivity_of("trained", "cost.usd")
    price = by_key(found)["pricing.usd_per_hour"]
    assert price.now == pytest.approx(price.start)
    assert price.low == pytest.approx(one_by_one("trained", price.key, price.start, "cost.usd"))
    assert price.high == pytest.approx(one_by_one("trained", price.key, price.end, "cost.usd"))
    assert found.measure_next is not None
    assert found.measure_next.measurement.kind == "price"
    assert by_key(sensitivity_of("priced", "cost.usd"))[price.key].kind == "knob"


def test_nobody_rents_idle_devices_for_one() -> None:
    price = by_key(sensitivity_of("served", "cost.usd_per_million_tokens"))["pricing.usd_per_hour"]
    alone = [row for row in load_catalog().instances_with("h100-sxm-80gb") if row.sold_devices == 1]
    assert price.end == pytest.approx(max(row.on_demand_usd_per_hour or 0.0 for row in alone))


def test_how_often_spot_capacity_is_taken_back_is_unknown() -> None:
    found = by_key(sensitivity_of("trained", "cost.usd_spot"))
    rare, often = (found["pricing.spot.interruptions"].start, found["pricing.spot.interruptions"].end)
    assert rare > often


def test_what_is_assumed_of_hardware_is_unknown() -> None:
    found = sensitivity_of("little known", STEP)
    units = by_key(found)["assumptions.accelerator-units"]
    row = load_catalog().assumptions["accelerator-units"]
    assert units.now == row.value
    assert {units.start, units.end} <= {row.low, row.value, row.high}
    assert not any(key.startswith("assumptions.") for key in by_key(sensitivity_of("trained", STEP)))


@pytest.mark.parametrize(
    ("name", "of", "kinds"),
    [
        ("unnamed", STEP, {"run"}),
        ("unnamed", "memory.reserved_bytes", {"memory"}),
        ("trained", STEP, {"run"}),
        ("served", TOKEN, {"run", "kernels"}),
    ],
)
def test_what_to_measure_next_narrows_the_range(name: str, of: str, kinds: set[str]) -> None:
    best = sensitivity_of(name, of).measure_next
    assert best is not None
    assert best.measurement.kind in kinds
    assert best.low <= best.narrowed_low < best.narrowed_high <= best.high
    assert 0.0 < best.share < 1.0


def test_one_reading_is_less_sure_than_many_published_runs_of_a_framework() -> None:
    assert sensitivity_of("trained", "memory.reserved_bytes").measure_next is None


def test_nothing_that_is_measured_narrows_a_fit() -> None:
    assert sensitivity_of("fitted", STEP).measure_next is None


def test_a_figure_that_a_plan_has_not_is_refused() -> None:
    with pytest.raises(PlanError, match="length is open"):
        sensitivity_of("served", "cost.usd")
