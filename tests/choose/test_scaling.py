"""Scalability: what more devices bring, and where communication takes over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.choose.answers import answer
from capacity_tui.engine.choose.scaling import Curve, curves
from capacity_tui.engine.plan.files.examples import example_text
from capacity_tui.engine.plan.files.loading import plan_from_text
from capacity_tui.engine.plan.plan import Plan


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
