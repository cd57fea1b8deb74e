"""Scripts find every result under its promised name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml

from capacity_tui.engine.estimate import PARTS, Estimate
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present import result_as_dict, to_json, to_yaml
from capacity_tui.engine.uncertainty import Interval

PROMISED = [
    "plan",
    "fits",
    "model.parameters",
    "model.active_parameters",
    "model.forward_flops_per_token",
    "memory.per_device_bytes.value",
    "memory.per_device_bytes.low",
    "memory.per_device_bytes.high",
    "memory.allocator_bytes.value",
    "memory.allocator_bytes.low",
    "memory.allocator_bytes.high",
    "memory.reserved_bytes.value",
    *(f"memory.parts.{part}" for part in PARTS["memory.parts"]),
    "memory.capacity_bytes",
    "memory.utilization_percent",
    "memory.host_bytes",
    "computation.step_seconds.value",
    "computation.step_seconds.low",
    *(f"computation.parts.{part}" for part in PARTS["computation.parts"] if part != "input"),
    "computation.tokens_per_second",
    "computation.tokens_per_second_per_device",
    "computation.samples_per_second",
    "computation.model_tflops_per_device",
    "computation.mfu",
    "computation.estimated_train_time_seconds.value",
    "computation.estimated_train_time_seconds.low",
    "computation.estimated_train_time_seconds.high",
    "computation.estimated_train_time_human",
    "bottleneck.kind",
    "bottleneck.arithmetic_intensity",
    "bottleneck.ridge_point",
    "scalability",
    "cost.usd",
    "cost.usd_per_million_tokens",
    "cost.usd_spot",
    "energy.kwh",
    "energy.watts_average",
    "recommendations",
    "warnings",
    "basis.method",
    "basis.calibration",
    "basis.catalogue_date",
    "basis.assumed",
]


def at(result: Any, path: str) -> Any:
    for part in path.split("."):
        result = result[part]
    return result


@pytest.mark.parametrize("path", PROMISED)
def test_promised_keys(plan: Plan, training: Estimate, path: str) -> None:
    at(result_as_dict(plan, training), path)


def test_figures_follow_from_the_estimate(plan: Plan, training: Estimate) -> None:
    result = result_as_dict(plan, training)
    assert at(result, "fits") is True
    assert at(result, "memory.utilization_percent") == pytest.approx(75)
    assert at(result, "computation.tokens_per_second") == pytest.approx(419_430.4)
    assert at(result, "computation.tokens_per_second_per_device") == pytest.approx(6553.6)
    assert at(result, "computation.samples_per_second") == pytest.approx(51.2)
    assert at(result, "computation.model_tflops_per_device") == pytest.approx(1000)
    assert at(result, "computation.estimated_train_time_seconds") == {"value": 1000, "low": 900, "high": 1200}
    assert at(result, "computation.estimated_train_time_human") == "16 min 40 s"
    assert at(result, "scalability")[1]["efficiency"] == 0.96
    assert at(result, "recommendations")[0]["saves"] == {"computation.step_seconds": -3.0}


def test_bytes_and_parameters_are_whole(plan: Plan, training: Estimate) -> None:
    result = result_as_dict(plan, training)
    for path in ("memory.reserved_bytes.value", "memory.parts.weights", "model.parameters"):
        assert isinstance(at(result, path), int)


def test_inference_speeds(plan: Plan, inference: Estimate) -> None:
    result = result_as_dict(plan, inference)
    for speed in ("prefill_tokens_per_second", "decode_tokens_per_second", "time_to_first_token_seconds"):
        assert at(result, f"computation.infer.{speed}.value") == 100
    assert at(result, "computation.estimated_train_time_seconds") is None
    assert at(result, "computation.mfu") is None


def test_models_counted_in_samples(plan: Plan, training: Estimate) -> None:
    counted = replace(
        training,
        work=replace(training.work, facts=replace(training.model, unit="sample")),
        computation=replace(training.computation, unit="sample", units_per_sample=1.0),
    )
    result = result_as_dict(plan, counted)
    assert "forward_flops_per_sample" in at(result, "model")
    assert at(result, "computation.tokens_per_second") is None
    assert at(result, "computation.samples_per_second") == pytest.approx(419_430.4)


def test_nothing_to_fit_into(plan: Plan, training: Estimate) -> None:
    result = result_as_dict(plan, replace(training, memory=replace(training.memory, capacity_bytes=None)))
    assert (at(result, "fits"), at(result, "memory.utilization_percent")) == (None, None)


def test_plan_in_the_result_loads_again(plan: Plan, training: Estimate) -> None:
    assert plan_from_data(json.loads(to_json(result_as_dict(plan, training)))["plan"]) == plan


def test_json_and_yaml_say_the_same(plan: Plan, training: Estimate) -> None:
    result = result_as_dict(plan, training)
    assert json.loads(to_json(result)) == yaml.safe_load(to_yaml(result))
    assert to_json(result, one_line=True).count("\n") == 1


def test_no_json_that_is_none(plan: Plan, training: Estimate) -> None:
    endless = replace(training.computation, step_seconds=Interval(10.0, 9.0, np.inf))
    result = result_as_dict(plan, replace(training, computation=endless))
    assert json.loads(to_json(result))["computation"]["step_seconds"]["high"] is None
