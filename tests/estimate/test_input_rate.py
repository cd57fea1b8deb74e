"""Data that arrive more slowly than the devices work are a term of the step; where a plan is silent nothing changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.estimate.data import input_seconds
from capacity_tui.engine.estimate.data.prices import arrival_seconds, mean_bandwidth, read_seconds
from capacity_tui.engine.plan.files import plan_from_data

IMAGES = {"model": {"name": "resnet-50"}, "training": {"steps": 1000, "micro_batch": 256}}
TEXT = {"model": {"name": "llama-3.2-1b"}, "training": {"tokens": 1e9, "micro_batch": 1, "global_batch": 8}}
GPUS = {"hardware": {"name": "h100-sxm-80gb", "devices": 8}}


def estimated(plan: dict[str, object], **data: object) -> Estimate:
    return estimate_plan(plan_from_data({**plan, **GPUS, "data": data})).estimate


def step(found: Estimate) -> float:
    return float(found.computation.step_seconds.value)


def test_a_plan_that_says_nothing_of_its_data_waits_for_none() -> None:
    silent = estimated(IMAGES)
    assert "input" not in silent.computation.parts
    assert step(estimated(IMAGES, prefetch=8, shuffle_buffer=100)) == step(silent)


def test_numbers_of_tokens_on_a_disk_never_hold_up_devices() -> None:
    assert step(estimated(TEXT, format="tokens")) == step(estimated(TEXT))


def test_a_slow_source_limits_and_is_named() -> None:
    slow = estimated(IMAGES, read_gbs=0.5)
    units, size = float(slow.computation.units_per_step), 114660
    assert step(slow) == pytest.approx(units * size / 0.5e9)
    assert slow.bottleneck.kind == "input"
    assert sum(map(float, slow.computation.parts.values())) == pytest.approx(step(slow))


def test_few_workers_decode_too_slowly_and_none_decode_beside_nothing() -> None:
    many, one, none = (step(estimated(IMAGES, format="jpeg", read_gbs=100, workers=count)) for count in (64, 1, 0))
    assert many == step(estimated(IMAGES))
    assert many < one < none


def test_pixels_need_no_decoding_but_more_bytes() -> None:
    jpeg, pixels = (estimated(IMAGES, format=name, read_gbs=1).work.delivery for name in ("jpeg", "pixels"))
    assert jpeg is not None
    assert pixels is not None
    assert float(pixels.decoding) == 0 < float(jpeg.decoding)
    assert float(pixels.reading) > float(jpeg.reading)


def test_the_second_pass_comes_from_memory_that_holds_the_data() -> None:
    job = {**TEXT, "training": {**TEXT["training"], "tokens": 10e9}}  # type: ignore[dict-item]
    once, often = (
        estimated(job, format="tokens", source="streaming", unique_tokens=size, cache="ram").work.delivery
        for size in (10e9, 1e9)
    )
    assert once is not None
    assert often is not None
    assert float(often.reading) < 0.2 * float(once.reading)


def test_unknown_formats_are_refused_with_the_nearest() -> None:
    with pytest.raises(PlanError, match="jpg") as refused:
        estimated(IMAGES, format="jpg")
    assert "jpeg" in str(refused.value.hint)


RATES = st.floats(1e3, 1e12)


@given(st.floats(1, 1e9), st.floats(1, 1e6), st.integers(1, 512), RATES, RATES, st.floats(1, 100), st.floats(0, 100))
def test_faster_reading_never_makes_a_step_longer(
    units: float, size: float, nodes: int, first: float, later: float, epochs: float, working: float
) -> None:
    mean = mean_bandwidth(epochs, first, later)
    assert min(first, later) * 0.999 <= mean <= max(first, later) * 1.001
    slow, fast = (read_seconds(units, size, nodes, rate) for rate in (mean, 2 * mean))
    waiting = [input_seconds(arrival_seconds(each, 0.0, 1.0), 1.0, working) for each in (slow, fast)]
    assert 0 <= waiting[1] <= waiting[0] <= slow
