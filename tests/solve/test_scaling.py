"""Scalability: what more devices bring, and where communication dominates."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import example_text, plan_from_text
from capacity_tui.engine.present import growth_remarks
from capacity_tui.engine.solve import Curve, EstimatedPlan, answer, curves, growing_runs, scaling_points
from capacity_tui.engine.solve.modes import fill


def curves_of(model: str = "gpt2", devices: int = 1, micro_batch: int = 4, **scalability: object) -> tuple[Curve, ...]:
    plan = Plan.model_validate(
        {
            "model": {"name": model},
            "training": {"seq_len": 1024, "micro_batch": micro_batch},
            "hardware": {"name": "a100-sxm-80gb", "devices": devices},
            "scalability": {"enabled": True, **scalability},
        }
    )
    return curves(answer(plan).estimate.scalability)


def test_nothing_unless_asked() -> None:
    plan = Plan.model_validate({"model": {"name": "gpt2"}, "hardware": {"name": "a100-sxm-80gb"}})
    assert answer(plan).estimate.scalability == ()


def test_every_count_and_batch_has_a_point() -> None:
    found = curves_of(device_counts=[1, 2, 4, 8], batch_sizes=[32, 64])
    assert [(curve.batch, curve.parallelism) for curve in found] == [(32, "data"), (64, "data")]
    assert all([point.devices for point in curve.points] == [1, 2, 4, 8] for curve in found)


@pytest.mark.parametrize("model_parallel", [False, True])
def test_more_devices_help_less_and_less(model_parallel: bool) -> None:
    (curve,) = curves_of(
        device_counts=[1, 2, 4, 8], batch_sizes=[64], data_parallel=not model_parallel, model_parallel=model_parallel
    )
    first, *rest = curve.points
    assert (first.speedup, first.efficiency, first.communication_share) == (1.0, 1.0, 0.0)
    for before, after in zip(curve.points, rest, strict=False):
        assert after.efficiency <= before.efficiency + 1e-9
        assert after.communication_share >= before.communication_share
        assert after.speedup <= after.devices
    assert all(point.efficiency == pytest.approx(point.speedup / point.devices) for point in curve.points)


def test_larger_batches_scale_better() -> None:
    small, large = curves_of(device_counts=[1, 8], batch_sizes=[16, 128])
    assert large.points[-1].efficiency > small.points[-1].efficiency


def test_weak_scaling_keeps_the_batch_of_each_device_and_holds_longer() -> None:
    strong, weak = curves_of(devices=8, device_counts=[8, 16, 32], micro_batch=8, weak=True)
    assert (strong.growth, weak.growth) == ("strong", "weak")
    assert [point.batch // point.devices for point in weak.points] == [8, 8, 8]
    assert {point.batch for point in strong.points} == {64}
    assert weak.points[-1].efficiency > strong.points[-1].efficiency
    assert weak.points[-1].step_seconds > strong.points[-1].step_seconds


def test_the_knee_is_where_speed_up_times_efficiency_is_largest() -> None:
    (curve,) = curves_of(device_counts=[1, 2, 4, 8, 16, 32, 64], batch_sizes=[64])
    products = {point.devices: point.speedup * point.efficiency for point in curve.points}
    assert curve.knee in products
    assert curve.knee == max(products, key=products.__getitem__)
    (short,) = curves_of(device_counts=[1, 2], batch_sizes=[64])
    assert short.knee is None


def case_of(name: str, **changes: object) -> EstimatedPlan:
    plan = plan_from_text(example_text(name), name)
    plan = edited(plan, {path.replace("__", "."): value for path, value in changes.items()}).plan
    filled = fill(plan, "balanced", None, load_catalog())
    return EstimatedPlan.of(plan, filled)


def test_a_plan_grows_far_beyond_its_batch_by_splitting_the_model() -> None:
    case = case_of("full_finetune_8b", training__global_batch=16, training__framework="megatron")
    runs = list(growing_runs(case, "strong"))
    points = scaling_points(runs)
    assert [point.devices for point in points] == [2**power for power in range(13)]
    assert not any("share a batch" in line for line in growth_remarks(points).lines)
    own = next(point for point in points if point.devices == 8)
    assert own.step_seconds == pytest.approx(float(case.estimate.computation.step_seconds.value))
    assert {run.parallelism for run in runs if run.devices > 16} == {"model"}
    assert all(point.fits for point in points if point.devices >= 4)
    assert all(point.efficiency <= 1.0 + 1e-9 for point in points if point.fits)


def test_software_without_a_pipeline_ends_where_its_batch_is_shared_out_and_says_so() -> None:
    points = scaling_points(growing_runs(case_of("full_finetune_8b", training__global_batch=16), "strong"))
    assert points[-1].devices == 128  # Sixteen replicas, each split over a node of eight
    assert "No more than 128 devices share a batch of 16." in growth_remarks(points).lines


def test_taking_a_run_over_gives_its_numbers() -> None:
    case = case_of("full_finetune_8b")
    for run in list(growing_runs(case, "weak"))[2:7:2]:
        changed = edited(case.wanted, run.change).plan
        found = fill(changed, "balanced", None, load_catalog()).estimate
        assert float(found.computation.step_seconds.value) == pytest.approx(
            float(run.candidate.estimate.computation.step_seconds.value)
        )


def test_an_hour_less_costs_what_the_two_jobs_say() -> None:
    points = scaling_points(growing_runs(case_of("full_finetune_8b"), "strong"))
    for slower, faster in pairwise(points):
        if faster.job_seconds < slower.job_seconds:
            saved = (slower.job_seconds - faster.job_seconds) / 3600.0
            assert faster.usd_per_hour_saved == pytest.approx((faster.usd - slower.usd) / saved)
        else:
            assert faster.usd_per_hour_saved is None


def test_served_requests_are_never_fewer_than_replicas() -> None:
    runs = list(growing_runs(case_of("vllm_70b_4_h100"), "strong"))
    for run in runs:
        plan = run.candidate.made.plan
        assert int(plan.inference.batch) * int(plan.parallelism.dp or 1) <= 32


def test_batches_smaller_than_the_replicas_are_left_out() -> None:
    (curve,) = curves_of(device_counts=[1, 4, 8], batch_sizes=[4])
    assert [point.devices for point in curve.points] == [1, 4]


def test_communication_takes_over_across_nodes() -> None:
    (curve,) = curves_of(device_counts=[8, 16, 32, 64], batch_sizes=[64], data_parallel=False, model_parallel=True)
    assert curve.network_from is not None
    assert curve.points[-1].communication_share > 0.5


def test_counts_follow_the_plan_where_none_are_given() -> None:
    (curve,) = curves_of(devices=64)
    assert 64 in [point.devices for point in curve.points]


def test_serving_scales_by_replicas() -> None:
    plan = Plan.model_validate(
        {
            "model": {"name": "llama-3-8b"},
            "task": "infer",
            "inference": {"engine": "vllm", "batch": 64},
            "hardware": {"name": "a100-sxm-80gb"},
            "scalability": {"enabled": True, "device_counts": [1, 2, 4]},
        }
    )
    (curve,) = curves(answer(plan).estimate.scalability)
    assert [point.devices for point in curve.points] == [1, 2, 4]
    assert curve.points[-1].speedup > 1


def test_a_fit_has_nothing_to_scale() -> None:
    plan = Plan.model_validate(
        {
            "task": "fit",
            "model": {"name": "linear_regression_qr"},
            "hardware": {"name": "CPU_8C_3.5Ghz_baseline"},
            "scalability": {"enabled": True},
        }
    )
    found = answer(plan).estimate
    assert found.scalability == ()
    assert "no_scaling" in [note.code for note in found.warnings]


def test_networks_are_advised_and_scaled_too() -> None:
    plan = plan_from_text(example_text("deep_learning"), "deep_learning")
    found = answer(plan).estimate
    assert {curve.batch for curve in curves(found.scalability)} == {32, 64, 128}
    assert "micro_batch" in [note.code for note in found.recommendations]


@settings(max_examples=15, deadline=None)
@given(batch=st.integers(1, 200), micro_batch=st.integers(1, 12), device_counts=st.sets(st.integers(1, 24), min_size=2))
def test_more_devices_never_gain_more_than_their_number(batch: int, micro_batch: int, device_counts: set[int]) -> None:
    """Batches that nothing divides waste a part of the last pass, on few devices as on many."""
    for curve in curves_of(micro_batch=micro_batch, device_counts=sorted(device_counts), batch_sizes=[batch]):
        assert max(point.efficiency for point in curve.points) == 1.0
        assert all(point.speedup <= point.devices for point in curve.points)
        works = [point.devices * point.step_seconds for point in curve.points]
        assert curve.points[works.index(min(works))].efficiency == 1.0


def test_a_network_says_that_it_is_not_split() -> None:
    wanted = {"enabled": True, "data_parallel": False, "model_parallel": True}
    plan = Plan.model_validate({"model": {"name": "mlp"}, "hardware": {"name": "rtx-3060-12gb"}, "scalability": wanted})
    found = answer(plan).estimate
    assert not found.scalability
    assert "no_model_parallel" in [note.code for note in found.warnings]


def test_where_the_price_is_of_another_list_is_said() -> None:
    points = scaling_points(list(growing_runs(case_of("full_finetune_8b"), "strong")))
    sources = [point.price_source for point in points]
    assert all(sources)
    told = [line for line in growth_remarks(points).lines if "Prices come from several lists" in line]
    assert bool(told) is (len(set(sources)) > 1)
    other = (*points[:1], *(replace(point, price_source="another list") for point in points[1:]))
    (line,) = [line for line in growth_remarks(other).lines if "Prices come from several lists" in line]
    assert "another list" in line and sources[0] in line


def test_replicas_that_are_open_follow_from_the_devices_of_each_run() -> None:
    points = scaling_points(list(growing_runs(case_of("full_finetune_8b", parallelism__dp="auto"), "strong")))
    given = scaling_points(list(growing_runs(case_of("full_finetune_8b"), "strong")))
    assert [point.step_seconds for point in points] == [point.step_seconds for point in given]
