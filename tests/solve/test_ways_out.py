"""Where nothing fits, a mode goes on to what people give up, in order of harm, and says what it took."""

from __future__ import annotations

import pytest

from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import dump_plan, plan_from_text
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.modes import compare, fill
from capacity_tui.engine.solve.modes.modes import MODES
from capacity_tui.engine.verdict import Verdict


def wanted(model: str, hardware: str, devices: int = 1, task: str = "train", **training: object) -> Plan:
    return Plan.model_validate(
        {
            "task": task,
            "model": {"name": model},
            "training": {"micro_batch": "auto", "tokens": 1e8, **training},
            "hardware": {"name": hardware, "devices": devices},
        }
    )


@pytest.mark.parametrize(
    ("plan", "taken"),
    [
        (wanted("llama-2-7b", "h100-sxm-80gb", 8), {"parallelism.zero", "training.checkpointing"}),
        (wanted("llama-2-7b", "a100-sxm-80gb"), {"parallelism.offload", "training.checkpointing"}),
        (wanted("llama-3.2-3b", "l40s"), {"training.optimizer", "training.checkpointing"}),
        (wanted("llama-3-8b", "rtx-4090", task="finetune"), {"training.method", "training.checkpointing"}),
    ],
    ids=["sharding", "offload", "optimizer", "adapters"],
)
def test_what_is_taken_fits_and_is_said(plan: Plan, taken: set[str]) -> None:
    found = fill(plan, "balanced")
    assert found.estimate.fits
    note = next(note for note in found.estimate.warnings if note.code == "way_out")
    assert taken == set(note.change or {})
    assert all("without it a device needs" in found.reasons[path] for path in taken)
    assert any(warning.code == "way_out" for warning in answer(plan).estimate.warnings)


def test_harm_comes_in_order_and_no_more_than_needed() -> None:
    adapters = fill(wanted("llama-3-8b", "rtx-4090", task="finetune"), "balanced").plan.training
    assert adapters.adapter is not None and adapters.adapter.kind == "lora"
    assert adapters.optimizer == "adamw"
    smaller = fill(wanted("llama-3-8b", "rtx-3060-12gb", task="finetune"), "balanced").plan.training
    assert smaller.adapter is not None and smaller.adapter.kind == "qlora"


@pytest.mark.parametrize("hardware", ["rtx-4090", "rtx-3060-12gb"])
def test_a_plan_with_adapters_that_were_taken_is_written_and_read_again(hardware: str) -> None:
    found = answer(wanted("llama-3-8b", hardware, task="finetune"))
    assert found.plan.training.adapter is not None
    assert found.plan.training.method == found.plan.training.adapter.kind
    again = answer(plan_from_text(dump_plan(found.plan), "written"))
    assert again.plan == found.plan
    assert again.estimate.memory.reserved_bytes.value == found.estimate.memory.reserved_bytes.value


def test_logits_that_fill_a_device_are_not_held() -> None:
    written = {"checkpointing": "full", "seq_len": 32768, "optimizer": "sgd"}
    found = fill(wanted("gemma-2b", "l40s", **written), "balanced")
    assert found.plan.training.loss == "fused"
    assert found.estimate.fits
    kept = fill(wanted("gemma-2b", "l40s", loss="standard", **written), "balanced")
    assert kept.plan.training.loss == "standard"


def test_training_everything_that_was_written_is_not_given_up() -> None:
    found = fill(wanted("llama-3-8b", "rtx-4090", task="finetune", method="full"), "balanced").plan.training
    assert (found.method, found.adapter) == ("full", None)


def test_what_the_user_wrote_is_recommended_not_changed() -> None:
    written = wanted(
        "llama-2-7b", "a100-sxm-80gb", optimizer="adamw", checkpointing="none", seq_len=2048, micro_batch=1
    )
    fixed = written.model_copy(
        update={"parallelism": written.parallelism.model_copy(update={"offload": "none", "zero": "auto"})}
    )
    for mode in MODES:
        found = fill(fixed, mode)
        assert found.plan.training.optimizer == "adamw"
        assert found.plan.parallelism.offload == "none"
        assert found.estimate.verdict is Verdict.DOES_NOT_FIT
    advised = answer(fixed).estimate
    assert any("training.optimizer" in (note.change or {}) for note in (*advised.recommendations, *advised.warnings))


def test_a_plan_without_open_fields_is_left_alone() -> None:
    plan = Plan.model_validate({"model": {"name": "llama-2-7b"}, "hardware": {"name": "a100-sxm-80gb"}})
    found = fill(plan, "balanced")
    assert found.estimate.verdict is Verdict.DOES_NOT_FIT
    assert not found.reasons
    assert found.plan.training.optimizer == "adamw"


def test_where_nothing_helps_it_says_how_much_is_missing() -> None:
    found = fill(wanted("llama-3.1-405b", "rtx-3060-12gb"), "balanced")
    assert found.estimate.verdict is Verdict.DOES_NOT_FIT
    note = next(note for note in found.estimate.warnings if note.code == "nothing_fits")
    assert "more than it has" in note.detail
    assert "What helps: adapters on a frozen model" in note.detail
    assert found.plan.training.optimizer == "adamw"


def test_all_columns_are_the_same_job() -> None:
    plan = Plan.model_validate(
        {
            "model": {"name": "llama-3-8b"},
            "training": dict.fromkeys(("seq_len", "micro_batch", "global_batch", "tokens", "checkpointing"), "auto"),
            "parallelism": {"tp": "auto", "pp": "auto", "zero": "auto"},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
        }
    )
    compared = compare(plan)
    jobs = {
        (filled.plan.training.seq_len, filled.plan.training.tokens, filled.plan.training.global_batch)
        for filled in (compared.conservative, compared.balanced, compared.extreme)
    }
    assert len(jobs) == 1
    work = [
        filled.estimate.computation.steps * filled.estimate.computation.units_per_step
        for filled in (compared.conservative, compared.balanced, compared.extreme)
        if filled.estimate.computation.steps is not None
    ]
    assert work == [work[0]] * 3
    assert fill(plan, "extreme").plan == compared.extreme.plan
