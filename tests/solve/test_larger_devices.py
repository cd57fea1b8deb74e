"""What nothing on its hardware makes fit names the smallest hardware that would do, of any maker."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import EstimatedPlan, answer, plan_of_line
from capacity_tui.engine.solve.advice.hardware_remedies import larger_devices
from capacity_tui.engine.solve.modes import compare, fill
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.views.plan.present import column

SERVED = {
    "task": "infer",
    "model": {"name": "llama-3.1-70b"},
    "inference": {"weights": "bf16", "engine": "vllm"},
    "parallelism": {"tp": 1, "pp": 1},
}
NETWORK = {
    "model": {"name": "resnet50", "spec": {"image_size": 16384}},
    "training": {"micro_batch": 2, "checkpointing": "full", "precision": "bf16", "global_batch": 2},
}


def case_of(sections: dict[str, object], hardware: str) -> EstimatedPlan:
    plan = Plan.model_validate({**sections, "hardware": {"name": hardware}})
    filled = fill(plan, "balanced")
    assert filled.estimate.verdict is Verdict.DOES_NOT_FIT
    return EstimatedPlan.of(plan, filled)


@pytest.mark.parametrize("hardware", ["h100-sxm-80gb", "mi100", "rtx-4090"])
@pytest.mark.parametrize("sections", [SERVED, NETWORK], ids=["serving", "network"])
def test_the_device_that_is_named_holds_it_and_none_smaller_does(sections: dict[str, object], hardware: str) -> None:
    case = case_of(sections, hardware)
    rows = case.catalog.accelerators
    found = larger_devices(case)
    assert found
    assert all(trial.estimate.verdict is not Verdict.DOES_NOT_FIT for trial in found)
    assert not any("announced" in (rows[trial.made.resolved.cluster.device.id].released or "") for trial in found)
    if len(found) == 2:
        same, other = (rows[trial.made.resolved.cluster.device.id] for trial in found)
        assert same.vendor == rows[case.resolved.cluster.device.id].vendor != other.vendor
        assert other.memory_bytes <= same.memory_bytes
    least = min(rows[trial.made.resolved.cluster.device.id].memory_bytes for trial in found)
    for row in rows.values():
        trial = case.evaluate({"hardware.name": row.id}) if row.memory_bytes < least else None
        assert trial is None or trial.filled is None or trial.estimate.verdict is Verdict.DOES_NOT_FIT


def test_no_computer_that_shares_its_memory_stands_in_for_cards_of_a_cluster() -> None:
    plan = plan_of_line(read_line("train 7b 64xh100 2T tokens")).plan
    longest = edited(plan, {"training.seq_len": 2**24}).plan
    found = larger_devices(EstimatedPlan.of(longest, fill(longest, "balanced")))
    assert found and all(trial.made.resolved.cluster.device.has_own_memory for trial in found)


@pytest.mark.parametrize("sections", [SERVED, NETWORK], ids=["serving", "network"])
def test_screen_and_answer_name_it(sections: dict[str, object]) -> None:
    case = case_of(sections, "rtx-4090")
    name = larger_devices(case)[0].made.resolved.cluster.device.name
    shown = column(compare(case.wanted).groups[0], case.catalog)
    assert any(name in note.detail for note in shown.notes)
    assert shown.verdict is Verdict.DOES_NOT_FIT and shown.reason.startswith("memory ")
    note = next(note for note in answer(case.wanted).estimate.warnings if note.code == "does_not_fit")
    assert note.change


def test_a_plan_that_fits_needs_no_larger_device() -> None:
    compared = compare(Plan.model_validate({"model": {"name": "gpt2"}, "hardware": {"name": "h100-sxm-80gb"}}))
    assert not any("would hold it" in note.title for note in column(compared.groups[0], load_catalog()).notes)


@pytest.mark.parametrize("load", ["", "8 parallel users each", "2 requests/s"])
def test_a_cache_without_room_for_one_request_is_the_shortage_that_is_named(load: str) -> None:
    plan = plan_of_line(read_line(f"llama-3.3-70b awq 2x 4090 vllm {load} 8k")).plan
    short = answer(plan).estimate
    assert short.verdict is Verdict.DOES_NOT_FIT
    assert short.verdict_text == "does not fit: cache 0 sequences < 1 sequences"
    note = next(note for note in short.warnings if note.code == "does_not_fit")
    assert note.detail.startswith("Cache 0 sequences < 1 sequences. It fits with ")
    assert note.change
    assert fill(edited(plan, note.change).plan, "balanced").estimate.verdict is not Verdict.DOES_NOT_FIT
