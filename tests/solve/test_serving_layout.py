"""Serving shards by itself; what the plan says is never changed."""

from __future__ import annotations

import numpy as np
import pytest

from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.present.summary import chosen
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.modes import compare, fill
from capacity_tui.engine.verdict import Verdict


def served(hardware: str, devices: int, *, model: str = "qwen2.5-72b", **sections: dict[str, object]) -> Plan:
    inference = {"batch": 16, "prompt_tokens": 4096, "engine": "vllm", **sections.pop("inference", {})}
    return Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": model},
            "inference": inference,
            "hardware": {"name": hardware, "devices": devices},
            **sections,
        }
    )


@pytest.mark.parametrize(
    ("hardware", "devices", "tp", "replicas"),
    [("h200-sxm", 2, 2, 1), ("h100-sxm-80gb", 4, 4, 1), ("h100-sxm-80gb", 8, 4, 2), ("h200-sxm", 8, 2, 4)],
)
def test_the_fewest_devices_that_hold_the_model_make_a_replica(
    hardware: str, devices: int, tp: int, replicas: int
) -> None:
    found = fill(served(hardware, devices), "balanced")
    assert found.estimate.fits
    assert (found.plan.parallelism.tp, found.plan.parallelism.pp, found.plan.parallelism.dp) == (tp, 1, replicas)
    reason = found.reasons["parallelism.tp"]
    assert "does not fit with TP 1 (" in reason
    assert f"fits with TP {tp}: " in reason
    assert answer(served(hardware, devices)).plan.parallelism.tp == tp


@pytest.mark.parametrize("engine", ["transformers", "exllamav2"])
def test_software_that_spreads_whole_layers_does_so_where_nothing_is_said(engine: str) -> None:
    found = fill(served("h100-sxm-80gb", 4, inference={"engine": engine, "weights": "fp16"}), "balanced").plan
    assert (found.parallelism.tp, found.parallelism.pp, found.parallelism.dp) == (1, 4, 1)
    given = served("h100-sxm-80gb", 4, inference={"engine": engine, "weights": "fp16"}, parallelism={"tp": 4})
    assert fill(given, "balanced").plan.parallelism.tp == 4


def test_auto_means_the_same_as_leaving_the_layout_out() -> None:
    left_out = fill(served("h100-sxm-80gb", 8), "balanced").plan
    auto = fill(served("h100-sxm-80gb", 8, parallelism={"tp": "auto", "pp": "auto"}), "balanced").plan
    assert auto.parallelism == left_out.parallelism


def test_a_model_that_fits_one_device_is_not_split() -> None:
    found = fill(served("h100-sxm-80gb", 8, model="llama-3-8b"), "balanced").plan.parallelism
    assert (found.tp, found.pp, found.dp) == (1, 1, 8)


def test_a_layout_that_the_plan_gives_is_kept_even_where_it_does_not_fit() -> None:
    found = fill(served("h100-sxm-80gb", 8, parallelism={"tp": 1, "pp": 1}), "balanced")
    assert found.plan.parallelism.tp == 1
    assert found.estimate.verdict is Verdict.DOES_NOT_FIT
    advice = answer(served("h100-sxm-80gb", 8, parallelism={"tp": 1, "pp": 1})).estimate.recommendations
    assert "parallelism.tp" in (advice[0].change or {})


def test_given_replicas_leave_the_rest_of_the_devices_to_one_replica() -> None:
    found = fill(served("h100-sxm-80gb", 8, parallelism={"dp": 1}), "balanced").plan.parallelism
    assert int(found.tp or 1) * int(found.pp or 1) == 8


def test_what_fits_no_layout_says_so() -> None:
    found = fill(served("rtx-3060-12gb", 2), "balanced")
    assert found.estimate.verdict is Verdict.DOES_NOT_FIT
    assert "no layout fits" in found.reasons["parallelism.tp"]


def test_an_open_batch_is_the_largest_that_the_mode_allows() -> None:
    plan = served("h100-sxm-80gb", 4, inference={"batch": "auto"})
    found = compare(plan).extreme
    batch = int(found.plan.inference.batch)
    capacity = float(np.max(found.estimate.memory.capacity_bytes or 0.0))
    assert batch > 1
    assert found.estimate.memory.reserved_bytes.value <= 0.95 * capacity
    more = plan.model_copy(
        update={
            "inference": plan.inference.model_copy(update={"batch": batch + 1}),
            "parallelism": plan.parallelism.model_copy(update={"tp": found.plan.parallelism.tp, "pp": 1}),
        }
    )
    over = fill(more, "extreme").estimate
    room = over.memory.reserved_bytes.value <= 0.95 * capacity
    assert not room or over.details["inference.sequences_in_cache"] < batch + 1


def test_a_batch_does_not_outgrow_the_share_that_the_engine_takes() -> None:
    found = fill(served("h100-sxm-80gb", 4, inference={"batch": "auto", "gpu_memory_utilization": 0.6}), "extreme")
    assert found.estimate.details["inference.sequences_in_cache"] >= int(found.plan.inference.batch)


def test_a_plan_without_open_fields_is_the_same_object_in_all_modes() -> None:
    compared = compare(served("h100-sxm-80gb", 8, parallelism={"tp": 4, "pp": 1}))
    assert compared.conservative.estimate is compared.balanced.estimate is compared.extreme.estimate


def test_more_devices_are_advised_with_the_layout_that_uses_them() -> None:
    found = answer(served("h100-sxm-80gb", 1)).estimate
    more = next(note for note in found.recommendations if note.code == "more_devices")
    then = fill(edited(served("h100-sxm-80gb", 1), more.change or {}).plan, "balanced")
    assert then.plan.parallelism.tp == then.plan.hardware.devices
    assert then.estimate.fits


def test_the_answer_says_which_layout_was_chosen_and_why() -> None:
    found = answer(served("h100-sxm-80gb", 8))
    why = found.estimate.basis.chosen["parallelism.tp"]
    assert "does not fit with TP 1" in why and "fits with TP 4" in why
    told = (f"parallelism.tp=4, parallelism.pp=1: {why}",)
    assert chosen(found.plan, found.estimate) == told
