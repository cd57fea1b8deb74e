"""Three plans for one wish: what each mode fills in, and that it keeps inside its share."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.solve import answer, settings_for_plan
from capacity_tui.engine.solve.hardware_advice import settings_for_row
from capacity_tui.engine.solve.modes import ModePlan, compare, fill
from capacity_tui.engine.solve.modes.mode_plan import memory_budget
from capacity_tui.engine.solve.modes.modes import MODES, open_fields
from capacity_tui.engine.verdict import Verdict

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


def test_a_model_that_listens_is_trained_on_all_of_its_sound_in_every_mode() -> None:
    for filled in modes_of(open_plan("whisper-small", name="rtx-4090")).values():
        assert filled.plan.training.seq_len == 1500
        assert "context" not in filled.reasons["training.seq_len"]


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
    assert filled.estimate.verdict is Verdict.DOES_NOT_FIT
    assert "none of" in filled.reasons["training.micro_batch"]


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


@pytest.mark.parametrize(
    ("framework", "method", "has"),
    [
        ("axolotl", "qlora", {"tp": (1,), "pp": (1,), "checkpointing": ("none", "full")}),
        ("transformers", "full", {"pp": (1,), "checkpointing": ("none", "full")}),
        ("torchtune", "lora", {"tp": (1,), "pp": (1,), "cp": (1,), "zero": (2, 3)}),
        ("unsloth", "qlora", {"tp": (1,), "pp": (1,), "cp": (1,), "zero": (0,), "checkpointing": ("none", "full")}),
        ("ddp", "full", {"tp": (1,), "pp": (1,), "cp": (1,), "zero": (0,)}),
        ("fsdp", "full", {"pp": (1,), "zero": (2, 3)}),
    ],
)
def test_what_is_left_open_is_something_that_the_named_software_has(
    framework: str, method: str, has: dict[str, tuple[object, ...]]
) -> None:
    data = open_plan("llama-3.1-8b", name="h100-sxm-80gb", devices=8).model_dump()
    data |= {"task": "finetune", "training": {**data["training"], "framework": framework, "method": method}}
    for name, filled in modes_of(Plan.model_validate(data)).items():
        chosen = {**dict(filled.plan.parallelism), **dict(filled.plan.training)}
        assert {field: chosen[field] for field in has if chosen[field] not in has[field]} == {}, name


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


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_given_stage_of_zero_has_replicas_that_share_states(stage: int) -> None:
    plan = open_plan("qwen2.5-7b", name="v100-sxm2-16gb", devices=2)
    given = plan.model_copy(update={"parallelism": plan.parallelism.model_copy(update={"zero": stage})})
    chosen = fill(given, "balanced").plan.parallelism
    assert (chosen.tp, chosen.pp) == (1, 1)


def test_old_cards_fall_back_to_the_type_that_suits_them() -> None:
    for name, precision in (("gtx-1660-ti", "fp32"), ("v100-sxm2-16gb", "fp16"), ("rtx-3060-12gb", "bf16")):
        filled = fill(open_plan("gpt2", name=name), "balanced")
        assert filled.plan.training.precision == precision
        (setting,) = [s for s in settings_for_plan(filled.plan, None, load_catalog()) if s.name == "precision"]
        assert (setting.value, setting.reason) == (precision, filled.reasons["training.precision"])


def test_what_a_plan_decides_otherwise_is_said_beside_what_would_suit() -> None:
    plan = open_plan("gpt2", name="gtx-1660-ti").model_copy(
        update={"training": fill(open_plan("gpt2", name="rtx-3060-12gb"), "balanced").plan.training}
    )
    (setting,) = [s for s in settings_for_plan(plan, None, load_catalog()) if s.name == "precision"]
    assert setting.value == "bf16"
    assert setting.reason.startswith("as planned; fp32 suits the device: no tensor cores")


def test_cards_of_servers_have_settings_of_their_own() -> None:
    rows = load_catalog().accelerators
    for name, has in (("a100-sxm-80gb", True), ("t4", True), ("rtx-4090", False), ("mi300x", False)):
        names = {setting.name for setting in settings_for_row(rows[name])}
        assert ({"ECC", "MIG", "persistence mode"} <= names) is has, name


def test_what_lies_outside_of_a_modes_ranges_is_said_with_the_reason() -> None:
    told = modes_of(open_plan("llama-3-8b", name="h100-sxm-80gb", devices=8))["conservative"].filled_by
    assert told is not None
    texts = " | ".join(told.outside)
    assert "parameters 8.0 B, the mode is made for 23.0 M to 70.0 M: set in the plan" in texts
    assert "the mode is made for 30 min to 2 h: the model is given" in texts
    assert "sequence 2 048, the mode is made for 512 to 1 024: the balanced mode's, so that all three" in texts
    assert "20 % of fragmentation" in told.reserve


def test_a_model_that_is_chosen_ends_within_the_modes_hours() -> None:
    filled = fill(open_plan("auto", name="gtx-1660-ti"), "conservative")
    computation = filled.estimate.computation
    assert computation.steps is not None
    assert computation.steps * computation.step_seconds.value <= 2 * 3600
    assert filled.reasons["training.tokens"] == "as many as end within 2 h"


def test_a_micro_batch_of_the_modes_range_is_worth_a_little_speed() -> None:
    for name, filled in modes_of(open_plan("gpt2", name="h100-sxm-80gb")).items():
        low, high = filled.mode.batch_range
        assert (low or 1) <= filled.plan.training.micro_batch <= (high or 64), name
