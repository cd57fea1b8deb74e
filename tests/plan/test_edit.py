"""Edits of a plan, and typed tables of fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import figure
from capacity_tui.engine.plan import Plan, all_fields, edited, table_text
from capacity_tui.engine.plan.edit import Edited, table_of
from capacity_tui.engine.plan.files import apply_settings, plan_from_data, plan_from_text
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve import EstimatedPlan, answer
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.solve.steps import strongest_lever
from capacity_tui.tui.plan_document import PlanDocument

H100 = {"name": "h100-sxm-80gb", "devices": 8}
TRAINED = plan_from_data(
    {
        "task": "train",
        "model": {"name": "llama-3-8b"},
        "training": {"micro_batch": 1, "global_batch": 64, "seq_len": 2048},
        "parallelism": {"dp": 2, "tp": 2, "pp": 2, "interleave": 2, "zero": 1},
        "hardware": H100,
        "pricing": {"usd_per_hour": 20.0},
    }
)
WIDE = plan_from_data({"task": "train", "model": {"name": "llama-3-8b"}, "parallelism": {"tp": 1}, "hardware": H100,
                       "training": {"global_batch": 64}})  # fmt: skip
CHANGES = [
    ("parallelism.tp", "4"),
    ("parallelism.tp", "1"),
    ("parallelism.pp", "1"),
    ("hardware.devices", "16"),
    ("training.micro_batch", "2"),
    ("training.checkpointing", "full"),
    ("parallelism.zero", "2"),
    ("training.precision", "fp8"),
]


@pytest.mark.parametrize("plan", [TRAINED, WIDE], ids=["sizes given", "sizes open"])
@pytest.mark.parametrize(("path", "text"), CHANGES)
def test_screen_settings_and_trials_make_the_same_plan_of_a_change(plan: Plan, path: str, text: str) -> None:
    catalog = load_catalog()
    on_screen = PlanDocument(plan, None, catalog).edited(path, text).plan
    assert apply_settings(plan, [f"{path}={text}"]).plan == on_screen
    filled = fill(plan, "balanced", None, catalog)
    tried = EstimatedPlan.of(plan, filled).evaluate({path: int(text) if text.isdigit() else text})
    assert tried.made.plan == fill(on_screen, "balanced", None, catalog).plan


def test_a_lever_keeps_its_word_on_the_screen() -> None:
    catalog = load_catalog()
    filled = fill(TRAINED, "balanced", None, catalog)
    case = EstimatedPlan.of(TRAINED, filled)
    lever = strongest_lever(case, "computation.step_seconds")
    assert lever is not None
    applied = PlanDocument(TRAINED, None, catalog).changed({lever.field: lever.after, **lever.also}).plan
    before, after = (figure(entry.estimate, "computation.step_seconds").number
                     for entry in (filled, fill(applied, "balanced", None, catalog)))  # fmt: skip
    assert before is not None
    assert after is not None
    assert after / before - 1.0 == pytest.approx(lever.change)


def test_what_follows_is_told_with_its_reason() -> None:
    changed = edited(TRAINED, {"parallelism.pp": 1})
    assert changed.plan.parallelism.interleave == 1
    assert changed.plan.parallelism.dp is None
    told = {follower.path: follower.words for follower in changed.followed}
    assert set(told) == {"parallelism.dp", "parallelism.interleave"}
    assert "without pipeline stages" in told["parallelism.interleave"]


def test_what_is_asked_for_follows_nothing() -> None:
    changed = edited(TRAINED, {"parallelism.pp": 1, "parallelism.dp": 4, "parallelism.interleave": 2})
    assert (changed.plan.parallelism.dp, changed.plan.parallelism.interleave) == (4, 2)
    assert changed.followed == ()


def test_a_sharding_group_goes_where_it_divides_no_longer() -> None:
    plan = edited(WIDE, {"parallelism.shard": 8, "parallelism.zero": 3}).plan
    assert edited(plan, {"parallelism.tp": 2}).plan.parallelism.shard is None
    assert edited(plan, {"hardware.devices": 16}).plan.parallelism.shard == 8


def test_the_price_of_all_devices_grows_with_them() -> None:
    assert edited(TRAINED, {"hardware.devices": 16}).plan.pricing.usd_per_hour == pytest.approx(40.0)
    assert edited(TRAINED, {"hardware.name": "16xa100-sxm-80gb"}).plan.pricing.usd_per_hour == pytest.approx(20.0)


def test_another_name_of_hardware_keeps_the_number_of_accelerators_and_nothing_else() -> None:
    moved = edited(TRAINED, {"hardware.interconnect": "ib-ndr", "hardware.name": "a100-sxm-80gb"}).plan
    assert (moved.hardware.devices, moved.hardware.interconnect) == (8, "ib-ndr")
    assert edited(moved, {"hardware.name": "h100-sxm-80gb"}).plan.hardware.interconnect is None
    assert edited(moved, {"hardware.name": "aws-p5-48xlarge"}).plan.hardware.devices is None


def test_auto_gives_a_field_to_the_modes_or_back_to_its_default() -> None:
    assert edited(TRAINED, {"training.micro_batch": AUTO}).plan.training.micro_batch == AUTO
    compiled = edited(TRAINED, {"training.compile": True}).plan
    back = edited(compiled, {"training.compile": AUTO}).plan.training
    assert back.compile is False
    assert "compile" not in back.model_fields_set


def test_a_name_of_a_model_takes_the_place_of_a_file() -> None:
    plan = plan_from_data({"model": {"config": "config.json"}, "hardware": H100})
    assert edited(plan, {"model.name": "gpt2"}).plan.model.config is None
    assert edited(TRAINED, {"model.name": "./config.json"}).plan.model.name is None


@given(st.sampled_from(sorted(all_fields())), st.sampled_from(["auto", "1", "2", "8", "none", "bf16", "gpt2", "mlp"]))
def test_a_change_made_twice_is_made_once(path: str, text: str) -> None:
    try:
        once = edited(TRAINED, {path: text}).plan
    except PlanError:
        return
    assert edited(once, {path: text}) == Edited(once)


STARTS = (
    "model: {name: llama-3.1-8b}\nhardware: {name: 8xh100}\n",
    "task: finetune\nmodel: {name: llama-3.1-8b}\ntraining: {method: qlora}\nhardware: {name: 8xh100}\n",
    "task: infer\nmodel: {name: llama-3.1-8b}\nhardware: {name: 8xh100}\n",
    "model: {name: mlp}\nhardware: {name: rtx-4090}\n",
    "model: {name: kmeans}\nhardware: {name: rtx-4090}\n",
)
SAID_OTHERWISE = {
    "version": "there is one form",
    "model.config": "the model's field takes a path",
    "training.adapter": "its own fields stand in the list",
    "training.adapter.kind": "the method is the same",
    "scenarios": "plans are pinned as columns by a key",
}


def document(text: str) -> PlanDocument:
    return PlanDocument(plan_from_text(text, "plan"), None, load_catalog())


def test_every_field_of_a_plan_stands_in_the_list() -> None:
    listed = {field.key for text in STARTS for field in document(text).fields()}
    missing = set(all_fields()) - listed - set(SAID_OTHERWISE)
    assert not missing
    assert not listed & set(SAID_OTHERWISE)


@pytest.mark.parametrize(
    ("key", "typed", "value"),
    [
        ("hardware.spec", "48GiB 180TFLOPs 900GB/s tdp_w=300",
         {"memory_mib": 49152, "bf16_tflops": 180.0, "fp16_tflops": 180.0, "bandwidth_gbs": 900.0, "tdp_w": 300}),
        ("hardware.spec", "{memory_mib: 40960}", {"memory_mib": 40960}),
        ("model.spec", "layers=40, hidden=5120", {"layers": 40, "hidden": 5120}),
    ],
)  # fmt: skip
def test_tables_are_typed_as_one_line(key: str, typed: str, value: object) -> None:
    changed = document(STARTS[0]).edited(key, typed)
    assert changed.plan.value(key) == value
    shown = next(field.text for field in changed.fields() if field.key == key)
    assert document(STARTS[0]).edited(key, shown).plan == changed.plan
    assert changed.edited(key, "auto").plan.value(key) == {}


def test_groups_and_levels_are_typed_as_one_line() -> None:
    mixed = document(STARTS[0]).edited("hardware.groups", "8xh100-sxm-80gb; 4xa100-sxm-80gb per_node=4").plan
    assert [(group.name, group.devices, group.per_node) for group in mixed.hardware.groups] == [
        ("h100-sxm-80gb", 8, None), ("a100-sxm-80gb", 4, 4)
    ]  # fmt: skip
    assert table_text(mixed.hardware.groups) == "8xh100-sxm-80gb; 4xa100-sxm-80gb per_node=4"
    assert answer(mixed).estimate.fits is not None
    racks = document(STARTS[0]).edited("hardware.levels", "rack devices=32 link=ib-ndr; fabric oversubscription=2")
    assert [(level.name, level.devices, level.oversubscription) for level in racks.plan.hardware.levels] == [
        ("rack", 32, 1.0), ("fabric", None, 2.0)
    ]  # fmt: skip
    counts = document(STARTS[0]).edited("scalability.device_counts", "1, 2 16")
    assert counts.plan.scalability.device_counts == (1, 2, 16)


@pytest.mark.parametrize("typed", ["48", "memory_mib=", "wibble", "{a", "memory_mib=lots of"])
def test_what_is_no_table_is_refused_with_a_remedy(typed: str) -> None:
    with pytest.raises(PlanError) as caught:
        answer(document(STARTS[0]).edited("hardware.spec", typed).plan)
    assert caught.value.hint


def test_an_empty_text_is_no_table() -> None:
    assert table_of("hardware.spec", " ", False) == {}
    assert table_of("hardware.levels", " ; ", True) == []
    assert table_text({}) == table_text(()) == table_text(None) == ""
    plan = plan_from_data({"model": {"name": "gpt2"}, "hardware": {"spec": {"fp32_tflops": 1.5e-7, "units": 10**15}}})
    assert table_of("hardware.spec", table_text(plan.hardware.spec), False) == plan.hardware.spec
