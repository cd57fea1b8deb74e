"""Advice: every saving is the difference of two estimates, and nothing recommended breaks the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, Note, estimate_plan, resolve_plan
from capacity_tui.engine.models.networks import network_spec_type
from capacity_tui.engine.plan import Plan, all_fields, edited
from capacity_tui.engine.plan.files import example_text, plan_from_text
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import EstimatedPlan, answer, candidate, plan_of_line
from capacity_tui.engine.solve.advice import remedies
from capacity_tui.engine.solve.advice.advice import MOST_RECOMMENDATIONS
from capacity_tui.engine.solve.advice.fitting import LEAST_EFFECT
from capacity_tui.engine.solve.advice.remedies import remedy_rows
from capacity_tui.engine.solve.changes import value_of
from capacity_tui.engine.solve.modes import compare, fill
from capacity_tui.engine.solve.modes.mode_plan import mode_warnings
from capacity_tui.engine.solve.modes.model_choice import named_change
from capacity_tui.engine.verdict import Verdict

PRICE_OF_TOKENS = "cost.usd_per_million_tokens"


def plan_of(**sections: object) -> Plan:
    return Plan.model_validate(sections)


def codes(notes: tuple[Note, ...]) -> list[str]:
    return [note.code for note in notes]


def noted(notes: tuple[Note, ...], code: str) -> Note:
    return next(note for note in notes if note.code == code)


def with_note(plan: Plan, note: Note) -> Estimate:
    """Plan what the user would have after changing what a note says and nothing else."""
    assert note.change is not None
    return fill(edited(plan, note.change).plan, "balanced").estimate


SLOW = {
    "model": {"name": "llama-3-8b"},
    "training": {"tokens": 1e9, "checkpointing": "full", "attention": "eager", "precision": "fp32", "global_batch": 64},
    "parallelism": {"zero": 3},
    "hardware": {"name": "h100-sxm-80gb", "devices": 8},
}
SERVED = {
    "model": {"name": "llama-3.1-70b"},
    "task": "infer",
    "inference": {"engine": "vllm", "batch": 8},
    "parallelism": {"tp": 4},
    "hardware": {"name": "h100-sxm-80gb", "devices": 4},
}


@pytest.mark.parametrize("sections", [SLOW, SERVED], ids=["train", "infer"])
def test_savings_are_the_difference_of_two_estimates(sections: dict[str, object]) -> None:
    plan = plan_of(**sections)
    found = answer(plan).estimate
    assert found.recommendations
    for note in found.recommendations:
        changed = with_note(plan, note)
        assert note.saves
        for key, saved in note.saves.items():
            before, after = value_of(found, key), value_of(changed, key)
            assert before is not None
            assert after is not None
            assert saved == pytest.approx(after - before, rel=1e-9), (note.code, key)


@pytest.mark.parametrize("sections", [SLOW, SERVED, {**SLOW, "model": {"name": "mlp"}}], ids=["train", "infer", "mlp"])
def test_where_devices_are_free_advice_is_ranked_by_time(sections: dict[str, object]) -> None:
    free = answer(plan_of(**{**sections, "pricing": {"usd_per_hour": 0}})).estimate
    assert "spot" not in codes(free.recommendations)
    assert free.cost.usd_per_hour == 0
    if sections is SLOW:
        saved = [note.saves["computation.estimated_train_time_seconds"] for note in free.recommendations if note.saves]
        assert saved == sorted(saved)
        assert saved[0] < 0


def test_recommends_mixed_precision_and_fused_attention() -> None:
    found = answer(plan_of(**SLOW)).estimate
    assert "mixed_precision" in codes(found.recommendations)
    assert noted(found.recommendations, "mixed_precision").saves["computation.step_seconds"] < 0  # type: ignore[index]


@pytest.mark.parametrize("name", ["full_finetune_8b", "moe_30b_64_h100", "vllm_70b_4_h100", "transformer"])
def test_recommendations_are_few_worthwhile_and_fit(name: str) -> None:
    plan = plan_from_text(example_text(name), name)
    found = answer(plan).estimate
    notes = found.recommendations
    assert 0 < len(notes) <= MOST_RECOMMENDATIONS
    assert len({note.code for note in notes}) == len(notes)
    before = found.cost.usd_per_million_tokens
    for note in notes:
        changed = with_note(plan, note)
        assert changed.fits
        assert before is not None
        assert changed.cost.usd_per_million_tokens is not None
        assert changed.cost.usd_per_million_tokens < before * (1 - LEAST_EFFECT) * 1.001


def test_shorter_sequences_are_advised_only_where_a_limit_is_missed() -> None:
    sizes = {"seq_len": 8192, "tokens": 1e9, "micro_batch": 1, "global_batch": 64}
    parts = {"task": "train", "model": {"name": "llama-3.2-1b"}, "training": sizes}
    fits = answer(plan_of(**parts, hardware={"name": "h100-sxm-80gb", "devices": 8})).estimate
    lacks = answer(plan_of(**parts, hardware={"name": "rtx-4090", "devices": 1})).estimate
    assert fits.verdict.holds and "sequence_length" not in codes(fits.recommendations)
    assert not lacks.verdict.holds and "sequence_length" in codes(lacks.recommendations)


def test_strongest_comes_first() -> None:
    found = answer(plan_from_text(example_text("moe_30b_64_h100"), "moe"))
    prices = [note.saves["cost.usd"] for note in found.estimate.recommendations if note.saves]
    assert prices == sorted(prices)


def test_what_the_modes_chose_is_left_to_them() -> None:
    sections = {**SLOW, "training": {"micro_batch": "auto", "tokens": 1e9, "checkpointing": "auto"}}
    for note in answer(plan_of(**sections)).estimate.recommendations:
        assert not {"training.micro_batch", "training.checkpointing"} & set(note.change or {})


@pytest.mark.parametrize(
    "sections",
    [
        {"model": {"name": "llama-3-8b"}, "hardware": {"name": "h100-sxm-80gb", "devices": 1}},
        {"model": {"name": "llama-3.1-70b"}, "hardware": {"name": "h100-sxm-80gb", "devices": 8}},
        {"model": {"name": "llama-3-8b"}, "task": "infer", "hardware": {"name": "rtx-3060-12gb"}},
        {
            "model": {"name": "llama-3.1-405b"},
            "task": "infer",
            "inference": {"engine": "vllm"},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
        },
    ],
)
def test_what_does_not_fit_says_what_it_lacks_and_how_it_would(sections: dict[str, object]) -> None:
    plan = plan_of(**sections)
    found = answer(plan).estimate
    note = noted(found.warnings, "does_not_fit")
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert note.detail.startswith("Memory ") and " > " in note.detail
    assert note.change
    assert with_note(plan, note).fits


def test_nothing_makes_an_impossible_plan_fit() -> None:
    sections = {"model": {"name": "llama-3.1-405b"}, "hardware": {"name": "gtx-1660-ti", "devices": 1}}
    note = noted(answer(plan_of(**sections)).estimate.warnings, "does_not_fit")
    assert note.change is None or note.saves


@pytest.mark.parametrize(
    ("section", "values", "code", "said"),
    [
        ("training", {"global_batch": 65, "micro_batch": 4}, "global_batch_not_divisible", "64 or 96 would divide"),
        ("training", {"seq_len": 65536}, "beyond_context", "65 536 tokens"),
        ("training", {"tokens": 1e9}, "tokens_per_parameter", "0.12 tokens a parameter"),
        ("training", {"steps": 1000, "global_batch": 16, "samples": 10_000}, "ignored", "1.6 passes over the 10 000"),
        ("parallelism", {"tp": 16}, "tensor_parallel_across_nodes", "Groups of 16 do not stay inside nodes of 8"),
    ],
)
def test_warnings_name_what_is_wrong(section: str, values: dict[str, object], code: str, said: str) -> None:
    devices = 16 if section == "parallelism" else 8
    sections: dict[str, object] = {
        "model": {"name": "llama-3-8b"},
        "hardware": {"name": "h100-sxm-80gb", "devices": devices},
        section: values,
    }
    assert said in noted(answer(plan_of(**sections)).estimate.warnings, code).detail


def test_a_type_the_device_lacks_is_named() -> None:
    sections = {"model": {"name": "gpt2"}, "hardware": {"name": "a100-sxm-80gb"}, "training": {"precision": "fp8"}}
    note = noted(answer(plan_of(**sections)).estimate.warnings, "precision_not_native")
    assert "runs as bf16" in note.detail


def test_an_assumed_network_matters_where_it_is_waited_for() -> None:
    sections = {
        "model": {"name": "llama-3.1-70b"},
        "hardware": {"name": "h100-sxm-80gb", "devices": 64},
        "parallelism": {"tp": 16, "zero": 1},
    }
    assert "longer" in noted(answer(plan_of(**sections)).estimate.warnings, "assumed").detail
    named = {**sections, "hardware": {**sections["hardware"], "interconnect": "ib-ndr"}}
    assert "assumed" not in codes(answer(plan_of(**named)).estimate.warnings)


def test_unverified_rows_are_said_to_be() -> None:
    sections = {"model": {"name": "gpt2"}, "hardware": {"name": "CPU_8C_3.5Ghz_baseline"}}
    assert "unverified" in codes(answer(plan_of(**sections)).estimate.warnings)


def test_cheaper_instances_and_spot_capacity() -> None:
    catalog = load_catalog()
    rows = [row for row in catalog.instances.values() if row.usd_per_device_hour and row.accelerator == "h100-sxm-80gb"]
    dearest = max(rows, key=lambda row: row.usd_per_device_hour or 0.0)
    sections = {**SLOW, "hardware": {"name": dearest.id, "devices": 8}}
    plan = plan_of(**sections)
    found = answer(plan).estimate
    note = noted(found.recommendations, "cheaper_instance")
    assert note.saves
    assert note.saves["cost.usd"] < 0
    assert with_note(plan, note).cost.usd < found.cost.usd  # type: ignore[operator]


def test_another_accelerator_that_does_the_work_for_less_is_named() -> None:
    plan = plan_of(
        **{**SERVED, "inference": {"engine": "vllm", "batch": 32}, "hardware": {"name": "h200", "devices": 4}}
    )
    found = answer(plan).estimate
    note = noted(found.recommendations, "accelerator")
    assert note.change is not None and note.change["hardware.devices"] == 4
    other = with_note(plan, note)
    assert other.fits
    assert value_of(other, PRICE_OF_TOKENS) < 0.97 * value_of(found, PRICE_OF_TOKENS)  # type: ignore[operator]
    assert "Price of cheapest on demand" in note.detail


@pytest.mark.parametrize("more", [{"pricing": {"usd_per_hour": 98}}, {"hardware": {"spec": {"tdp_w": 350}}}])
def test_devices_with_figures_of_ones_own_have_none_in_their_place(more: dict[str, dict[str, object]]) -> None:
    hardware = {"name": "h200", "devices": 4, **more.get("hardware", {})}
    plan = plan_of(**{**SERVED, **more, "hardware": hardware})
    assert "accelerator" not in codes(answer(plan).estimate.recommendations)


def test_what_no_network_joins_is_not_advised_for_many_nodes() -> None:
    tokens = {"seq_len": 4096, "tokens": 1e10, "framework": "torchtitan"}
    plan = plan_of(model={"name": "llama-3.1-8b"}, training=tokens, hardware={"name": "h100-sxm-80gb", "devices": 512})
    assert "accelerator" not in codes(answer(plan).estimate.recommendations)


def test_what_a_node_has_one_of_is_not_advised_by_the_price_of_one_alone() -> None:
    one = load_catalog().instances["lambda-gpu-1x-gh200"]
    assert one.sold_devices == 1 and one.network_link is None
    for line in ("llama-3.1-70b qlora 8xh100 4k 50M axolotl", "llama-3.1-70b lora 8xh100 4k 50M"):
        named = [(note.change or {}).get("hardware.name") for note in advised(line).recommendations]
        assert "gh200-96gb" not in named


def extreme_warnings(memory: float, watts: float) -> tuple[str, ...]:
    """What the extreme mode says of a run that takes these shares of memory and of the power limit."""
    resolved = resolve_plan(plan_of(model={"name": "gpt2"}, hardware={"name": "rtx-4090"}), load_catalog())
    found = estimate_plan(resolved.plan).estimate
    device, capacity = resolved.cluster.device, float(found.memory.capacity_bytes)
    reserved = replace(found.memory.reserved_bytes, value=memory * capacity)
    run = replace(
        found,
        memory=replace(found.memory, reserved_bytes=reserved),
        energy=replace(found.energy, watts_average=watts * float(device.tdp_watts)),
    )
    notes = mode_warnings(load_catalog().modes["extreme"], run, resolved.cluster)
    assert all("%" in note.detail or " W of " in note.detail for note in notes)
    return tuple(note.title for note in notes)


def test_a_mode_warns_of_what_this_run_does() -> None:
    assert extreme_warnings(memory=0.55, watts=0.6) == ()
    (memory,) = extreme_warnings(memory=0.93, watts=0.6)
    assert "danger zone" in memory
    power = extreme_warnings(memory=0.55, watts=0.95)
    assert any("power supply" in title for title in power)
    assert not any("danger zone" in title for title in power)


def test_what_does_not_fit_is_not_warned_of_as_nearly_full() -> None:
    assert extreme_warnings(memory=6.15, watts=0.5) == ()


def test_comparing_modes_does_not_pay_for_advice() -> None:
    plan = plan_of(model={"name": "gpt2"}, hardware={"name": "rtx-4090"}, training={"micro_batch": "auto"})
    assert not compare(plan).balanced.estimate.recommendations


def test_what_no_number_of_devices_holds_is_not_tried_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    fill = candidate.fill
    monkeypatch.setattr(candidate, "fill", lambda *found: tried.append(found) or fill(*found))
    huge = {"name": "resnet-152", "spec": {"classes": 100_000_000}}
    found = answer(plan_of(model=huge, hardware={"name": "a100-sxm-80gb"})).estimate
    assert noted(found.warnings, "does_not_fit").detail.endswith("makes it fit.")
    assert len(tried) < 120


def test_advice_says_what_a_fused_loss_saves() -> None:
    plan = plan_of(
        model={"name": "llama-3-8b"},
        training={"seq_len": 32768, "checkpointing": "full", "global_batch": 8, "framework": "torchtitan"},
        parallelism={"zero": 3},
        hardware={"name": "h100-sxm-80gb", "devices": 8},
    )
    notes = answer(plan).estimate.recommendations
    before, after = answer(plan).estimate.memory, with_note(plan, noted(notes, "fused_loss")).memory
    assert float(after.per_device_bytes.value) < 0.5 * float(before.per_device_bytes.value)


def advised(line: str) -> Estimate:
    return answer(plan_of_line(read_line(line)).plan).estimate


@pytest.mark.parametrize(
    "line", ["llama-2-13b serve vllm aws-g6-4xlarge", "llama-2-13b serve vllm l4", "deepseek-r1 serve bf16 8xh200"]
)
def test_lighter_weights_come_before_another_card(line: str) -> None:
    found = advised(line)
    assert found.fits is False
    said = codes(found.recommendations)
    weights = [place for place, code in enumerate(said) if code.startswith("quantize_weights")]
    others = [place for place, code in enumerate(said) if code == "accelerator"]
    assert weights and (not others or max(weights) < others[0])
    note = noted(found.warnings, "does_not_fit")
    assert note.change and "inference.weights" in note.change


def test_idle_stages_are_filled_by_more_chunks() -> None:
    line = read_line("llama-3.1-405b train 16384xh100 8k 15.6T tp 8 pp 16 batch 2048 parallelism.interleave=1")
    plan = plan_of_line(line).plan
    filled = fill(plan, "balanced")
    tried = [
        each.change["parallelism.interleave"]
        for each in remedies(EstimatedPlan.of(plan, filled))
        if each.code == "interleave"
    ]
    # 126 layers with embedding and loss in the place of one each: eight for each of 16 stages.
    assert tried == [2, 4, 8]
    saved = [(note.saves or {}).get("computation.step_seconds", 0.0) for note in answer(plan).estimate.recommendations]
    assert min(saved) < -0.1 * float(filled.estimate.computation.step_seconds.value)


def test_nothing_is_advised_that_the_software_has_no_switch_for() -> None:
    layout = "training.checkpointing=none parallelism.tp=1 parallelism.pp=1 parallelism.zero=3"
    for software, advised in (("megatron", True), ("axolotl", False)):
        plan = plan_of_line(read_line(f"llama-3.1-8b full {software} 8xh100 4k 50M {layout}")).plan
        changes = [remedy.change for remedy in remedies(EstimatedPlan.of(plan, fill(plan, "balanced")))]
        ways = {change.get("training.checkpointing") for change in changes} - {None}
        assert ("selective-ops" in ways) is advised
        assert "full" in ways


def test_what_saves_money_is_surely_no_dearer() -> None:
    for line in ("gpt-3-175b train 1024xa100 300B", "llama-3.1-8b train 2048xh100 8k 15T"):
        plan = plan_of_line(read_line(line)).plan
        found = answer(plan).estimate
        for note in (each for each in found.recommendations if each.code == "spot"):
            after = with_note(plan, note)
            assert after.cost.interval is not None and found.cost.interval is not None
            assert after.cost.interval.high <= found.cost.interval.high


def test_nobody_waits_far_longer_than_is_saved() -> None:
    plan = plan_of_line(read_line("llama-3.2-3b q4 serve i7-1165g7 16GiB ram")).plan
    before = answer(plan).estimate
    for note in before.recommendations:
        after, key = with_note(plan, note), "computation.infer.time_to_first_token_seconds"
        slower = (value_of(after, key) or 0.0) / (value_of(before, key) or 1.0) - 1.0
        cheaper = 1.0 - (value_of(after, "computation.tokens_per_second") or 1.0) ** -1 * (
            value_of(before, "computation.tokens_per_second") or 1.0
        )
        assert slower <= 0.03 or slower <= 10.0 * cheaper


def test_images_with_channels_last_and_larger_batches_are_advised() -> None:
    said = codes(advised("resnet50 train a100").recommendations)
    assert {"micro_batch", "memory_format"} <= set(said)


def test_an_engine_by_another_name_reads_the_same_formats() -> None:
    for name in ("llama.cpp", "llamacpp"):
        plan = plan_of(
            model={"name": "llama-2-7b"},
            task="infer",
            inference={"engine": name, "weights": "q4_0"},
            hardware={"name": "rtx-4090"},
        )
        assert "no_kernels" not in codes(answer(plan).estimate.warnings)


def test_a_larger_card_is_named_where_no_single_one_of_the_same_holds_it() -> None:
    found = advised("llama-3-8b full finetune rtx-3060")
    assert "Smallest devices" in noted(found.warnings, "does_not_fit").detail


def test_every_remedy_of_the_table_is_a_change_that_some_plan_can_take() -> None:
    trained, drawn = (plan_of_line(read_line(line)).plan for line in ("finetune llama-3.1-8b", "serve flux.1-dev"))
    own = {f"model.spec.{name}" for name in network_spec_type("flux.1-dev").model_fields}
    for row in remedy_rows():
        named = named_change(row.change, "adamw", load_catalog())
        assert named is not None, row.code
        assert edited(drawn if row.when.get("task") == ["infer"] else trained, named).plan is not None
        assert {*row.when, *row.unless} <= {*all_fields(), "task", "training.adapter"} | own, row.code
        assert set(row.models) <= {"transformer", "network"}, row.code
