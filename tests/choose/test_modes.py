"""Three plans for one wish: what each mode fills in, and that it keeps inside its share."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.choose.answers import answer
from capacity_tui.engine.choose.modes.filled import ModePlan
from capacity_tui.engine.choose.modes.modes import MODES, compare, fill, open_fields
from capacity_tui.engine.choose.modes.shares import memory_budget
from capacity_tui.engine.plan.plan import Plan

OPEN = {
    "training": {
        "seq_len": "auto", "micro_batch": "auto", "global_batch": "auto", "tokens": "auto",
        "checkpointing": "auto", "precision": "auto",
    },
    "parallelism": {"tp": "auto", "pp": "auto", "zero": "auto", "offload": "auto"},
}  # fmt: skip


def open_plan(model: str = "llama-3-8b", **hardware: object) -> Plan:
    return Plan.model_validate({"model": {"name": model}, "hardware": hardware, **OPEN})


def modes_of(plan: Plan) -> dict[str, ModePlan]:
    comparison = compare(plan)
    return {name: getattr(comparison, name) for name in MODES}


@pytest.mark.parametrize(
    ("model", "hardware"),
    [
        ("gpt2", {"name": "rtx-3060-12gb"}),
        ("llama-3-8b", {"name": "h100-sxm-80gb", "devices": 8}),
        ("llama-3.1-70b", {"name": "h100-sxm-80gb", "devices": 64}),
        ("mixtral-8x7b", {"name": "h100-sxm-80gb", "devices": 64}),
    ],
)
def test_every_mode_fits_in_its_share(model: str, hardware: dict[str, object]) -> None:
    for name, filled in modes_of(open_plan(model, **hardware)).items():
        assert filled.estimate.fits, name
        capacity = filled.estimate.memory.capacity_bytes
        assert capacity is not None
        assert filled.estimate.memory.reserved_bytes.value <= load_catalog().modes[name].utilization * capacity * 1.001
        assert not open_fields(filled.plan)


def test_every_open_field_says_why_it_got_its_value() -> None:
    plan = open_plan(name="a100-sxm-80gb", devices=8)
    for filled in modes_of(plan).values():
        assert set(open_fields(plan)) <= set(filled.reasons)
        assert all(filled.reasons.values())


def test_modes_order_their_reserve() -> None:
    filled = modes_of(open_plan("gpt2", name="rtx-4090")).values()
    budgets = [memory_budget(plan.mode, plan.resolved.cluster) or 0.0 for plan in filled]
    assert budgets == sorted(budgets)


def test_given_values_are_never_overridden() -> None:
    plan = open_plan(name="h100-sxm-80gb", devices=8)
    fixed = plan.model_copy(update={"training": plan.training.model_copy(update={"micro_batch": 2, "seq_len": 512})})
    for filled in modes_of(fixed).values():
        assert filled.plan.training.micro_batch == 2
        assert filled.plan.training.seq_len == 512


def test_what_cannot_fit_says_so_and_still_answers() -> None:
    filled = fill(open_plan("llama-3.1-405b", name="rtx-3060-12gb"), "balanced")
    assert filled.estimate.held is False
    assert "nothing" in filled.reasons["training.micro_batch"]


def test_a_laptop_without_gpu_gets_three_plans() -> None:
    plan = open_plan("gpt2", name="cpu-4c-2.5ghz-basic", spec={"memory_mib": 16384})
    for filled in modes_of(plan).values():
        assert filled.estimate.fits
        assert filled.plan.training.precision == "fp32"


def test_the_model_can_be_left_open() -> None:
    sizes = []
    for name, filled in modes_of(open_plan("auto", name="rtx-4090")).items():
        low, high = load_catalog().modes[name].parameters_range
        size = float(filled.estimate.model.parameters)
        assert (low or 0) * 0.97 <= size <= (high or float("inf")) * 1.03
        assert "model.name" in filled.reasons
        sizes.append(size)
    assert sizes == sorted(sizes)


def test_headless_answers_fill_open_fields_as_balanced() -> None:
    plan = open_plan("gpt2", name="rtx-4090")
    assert answer(plan).plan == fill(plan, "balanced").plan


@settings(max_examples=15, deadline=None)
@given(
    devices=st.sampled_from([1, 2, 4, 8, 16, 64, 256]), model=st.sampled_from(["gpt2", "llama-2-7b", "qwen3-30b-a3b"])
)
def test_more_devices_never_make_a_mode_slower(devices: int, model: str) -> None:
    few = fill(open_plan(model, name="h100-sxm-80gb", devices=devices), "balanced")
    many = fill(open_plan(model, name="h100-sxm-80gb", devices=devices * 2), "balanced")

    def speed(filled: ModePlan) -> float:
        return float(filled.estimate.computation.units_per_step / filled.estimate.computation.step_seconds.value)

    if few.estimate.fits:
        assert speed(many) >= speed(few) * 0.98


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_given_replicas_leave_the_rest_to_tensor_and_pipeline(replicas: int) -> None:
    plan = open_plan("llama-3.1-70b", name="h100-sxm-80gb", devices=64)
    given = plan.model_copy(update={"parallelism": plan.parallelism.model_copy(update={"dp": replicas})})
    chosen = fill(given, "extreme").plan.parallelism
    assert chosen.dp == replicas
    assert int(chosen.tp) * int(chosen.pp) * replicas == 64


def test_a_given_sharding_group_is_kept() -> None:
    plan = open_plan("llama-3.1-70b", name="h100-sxm-80gb", devices=64)
    given = plan.model_copy(update={"parallelism": plan.parallelism.model_copy(update={"shard": 8, "zero": 3})})
    assert fill(given, "extreme").plan.parallelism.shard == 8
