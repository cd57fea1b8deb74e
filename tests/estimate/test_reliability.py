"""What makes runs longer than their steps: failures, as Daly's formula says, and data that arrive too slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate, estimate_plan, figure, panel_figures
from capacity_tui.engine.estimate.data import input_seconds
from capacity_tui.engine.estimate.data.supply import arrival_seconds, mean_bandwidth, read_seconds
from capacity_tui.engine.estimate.timing.reliability import reliability
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan import HardwareSection, Plan, PricingSection
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present import calendar_text, result_as_dict
from capacity_tui.engine.uncertainty import Interval

CATALOG = load_catalog()
DAY = 86400.0


def plan_of(devices: int, task: str = "train", *, spot: bool = False, **training: object) -> Plan:
    return Plan.model_validate(
        {
            "model": {"name": "llama-3.2-1b"},
            "task": task,
            "training": {"seq_len": 2048, "tokens": 1e12, **training} if task == "train" else {},
            "hardware": {"name": "h100-sxm-80gb", "devices": devices},
            "pricing": {"spot": spot},
        }
    )


def test_a_run_of_sixteen_thousand_devices_fails_every_three_hours() -> None:
    cluster = resolve_cluster(HardwareSection(name="h100-sxm-80gb", devices=16384), PricingSection(), CATALOG)
    found = reliability(cluster, Interval.exactly(54 * DAY), 350e6, 1e4)
    assert float(found.mtbf_hours.value) == pytest.approx(3.05, abs=0.01)
    assert float(found.failures.low) < 419 < float(found.failures.high)
    assert float(found.goodput.low) < 0.9 < float(found.goodput.high)
    assert found.calendar_usd is not None
    assert float(found.calendar_usd.value) == pytest.approx(float(found.calendar_seconds.value) / 3600 * 1e4)


@given(devices=st.integers(1, 100_000), days=st.floats(0.01, 300), states=st.floats(1e6, 1e11))
@settings(deadline=None, max_examples=100)
def test_ranges_hold_the_estimate_and_more_devices_are_never_more_reliable(
    devices: int, days: float, states: float
) -> None:
    def of(count: int) -> object:
        cluster = resolve_cluster(HardwareSection(name="h100-sxm-80gb", devices=count), PricingSection(), CATALOG)
        return reliability(cluster, Interval.exactly(days * DAY), states, None)

    found, twice = of(devices), of(2 * devices)
    for name in ("failures", "mtbf_hours", "goodput", "calendar_seconds"):
        interval = getattr(found, name)
        assert 0 < interval.low <= interval.value <= interval.high < np.inf
    assert found.goodput.high <= 1  # type: ignore[attr-defined]
    assert found.calendar_seconds.value >= days * DAY  # type: ignore[attr-defined]
    assert twice.goodput.value <= found.goodput.value  # type: ignore[attr-defined]


def test_arrays_of_counts_agree_with_each_count() -> None:
    from dataclasses import replace

    cluster = resolve_cluster(HardwareSection(name="h100-sxm-80gb", devices=8), PricingSection(), CATALOG)
    counts, seconds = np.array([8.0, 1024.0, 16384.0]), Interval.exactly(30 * DAY)
    together = reliability(replace(cluster, devices=counts), seconds, 1e9, 10.0)
    for index, count in enumerate(counts):
        alone = reliability(replace(cluster, devices=float(count)), seconds, 1e9, 10.0)
        for name in ("failures", "goodput", "calendar_seconds", "calendar_usd"):
            for end in ("value", "low", "high"):
                assert getattr(getattr(together, name), end)[index] == pytest.approx(
                    float(getattr(getattr(alone, name), end))
                )


@pytest.mark.parametrize(("devices", "is_shown"), [(8, False), (248, False), (256, True), (1024, True)])
def test_verdicts_tell_of_failures_from_256_devices_on(devices: int, is_shown: bool) -> None:
    plan = plan_of(devices, global_batch=1024 if devices != 248 else 992)
    estimate = estimate_plan(plan, catalog=CATALOG).estimate
    assert (Figure.RELIABILITY_CALENDAR_SECONDS in panel_figures(estimate)) is is_shown
    assert bool(calendar_text(estimate)) is is_shown
    data = result_as_dict(plan, estimate)["reliability"]
    assert isinstance(data, dict)
    assert data["goodput"]["low"] < data["goodput"]["value"] < data["goodput"]["high"]


def test_spot_capacity_is_interrupted_more_often() -> None:
    owned, spot = (
        estimate_plan(plan_of(256, global_batch=512, spot=spot), catalog=CATALOG).estimate for spot in (False, True)
    )
    numbers = [figure(estimate, Figure.RELIABILITY_MTBF_HOURS).number for estimate in (owned, spot)]
    assert numbers[0] is not None
    assert numbers[1] is not None
    assert numbers[1] < numbers[0] / 10


def test_what_is_served_has_no_calendar() -> None:
    estimate = estimate_plan(plan_of(8, "infer"), catalog=CATALOG).estimate
    found = figure(estimate, Figure.RELIABILITY_GOODPUT)
    assert found.number is None
    assert found.absence
    assert not calendar_text(estimate)


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
