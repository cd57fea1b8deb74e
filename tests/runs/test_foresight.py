"""What is foreseen, what is not, and that more trouble is never told later."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.runs.monitor.anomalies import (
    divergence,
    filling,
    full,
    growth,
    not_finite,
    order,
    seconds_until_full,
    slope,
    spike,
    stall,
    stragglers,
    throttling,
)

DETECTORS = load_catalog().detectors
LEAK = DETECTORS["leak"].thresholds
GB, MB = 1e9, 1e6
SECONDS = np.arange(900.0)


def noisy(seed: int = 0, size: int = 900, spread: float = 5 * MB) -> np.ndarray:
    return np.abs(np.random.default_rng(seed).normal(0.0, spread, size))


@given(st.floats(0, 1e12), st.integers(2, 1500))
@settings(max_examples=20, deadline=None)
def test_constant_series_never_alarm(level: float, size: int) -> None:
    constant, times = np.full(size, level), np.arange(float(size))
    assert growth(times, constant, LEAK) is None
    assert spike(constant, DETECTORS["loss_spike"].thresholds) is None
    assert divergence(constant, DETECTORS["divergence"].thresholds) is None
    assert filling(times, constant + 1, level + 1, DETECTORS["disk"].thresholds) is None
    assert stragglers(np.full((size, 4), level), DETECTORS["straggler"].thresholds) == ()
    assert stall(times, times[-1] + 1, DETECTORS["stall"].thresholds) is None


def leak_told(curve: np.ndarray) -> float:
    times = np.arange(float(curve.size))
    return next((n for n in range(600, curve.size + 1, 50) if growth(times[:n], curve[:n], LEAK)), math.inf)


@pytest.mark.parametrize("seed", range(3))
def test_a_leak_twice_as_fast_is_never_told_later(seed: int) -> None:
    leaks = [leak_told(20 * GB + rate * SECONDS + noisy(seed)) for rate in (MB / 2, MB, 2 * MB)]
    assert leaks == sorted(leaks, reverse=True)
    assert leaks[-1] < math.inf


@pytest.mark.parametrize(
    "curve",
    [
        8 * GB * (1 - np.exp(-SECONDS / 60)),
        8 * GB * (1 - np.exp(-SECONDS / 300)),
        2 * GB * (SECONDS % 45) / 45,
        3 * GB * np.sin(2 * math.pi * SECONDS / 600),
        np.where(SECONDS < 400, 0.0, 5 * GB),
    ],
    ids=["warm-up", "slow warm-up", "garbage collection", "season", "one step"],
)
def test_growth_that_ends_is_no_leak(curve: np.ndarray) -> None:
    assert leak_told(20 * GB + curve + noisy()) == math.inf


def test_the_first_rise_of_a_season_is_no_leak_and_a_leak_outlives_a_season() -> None:
    seconds = np.arange(3000.0)
    for start in (-0.25, -0.2, -0.1):
        rising = 3 * GB * np.sin(2 * math.pi * (seconds / 2400 + start))
        assert leak_told((20 * GB + rising + noisy(1, seconds.size))[:1200]) == math.inf
    turning = 0.3 * GB * np.sin(2 * math.pi * seconds / 600)
    assert leak_told(20 * GB + 2 * MB * seconds + turning + noisy(1, seconds.size)) < math.inf


def test_a_leak_says_when_memory_is_full() -> None:
    curve = 20 * GB + 2 * MB * SECONDS + 1 * GB * (SECONDS % 20) / 20 + noisy()
    found = growth(SECONDS, curve, LEAK)
    assert found is not None
    assert found.slope.low <= 2 * MB <= found.slope.high
    until = seconds_until_full(found, 40 * GB)
    assert until is not None
    true = (40 * GB - curve.max()) / (2 * MB)
    assert until.low <= until.value <= until.high
    assert until.value == pytest.approx(true, rel=0.05)
    assert seconds_until_full(found, 1 * GB).value == 0


def test_numbers_that_are_missing_are_left_out() -> None:
    curve = 20 * GB + 2 * MB * SECONDS + noisy()
    curve[::7] = np.nan
    assert growth(SECONDS, curve, LEAK) is not None


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=15))
@settings(max_examples=30, deadline=None)
def test_order_and_slope_turn_with_the_values(values: list[float]) -> None:
    found, times = np.asarray(values), np.arange(float(len(values)))
    assert order(found) == pytest.approx(-order(-found))
    assert slope(times, found).value == pytest.approx(-slope(times, -found).value)
    assert slope(times, found).low <= slope(times, found).high


def test_memory_that_stays_near_its_limit_is_told() -> None:
    limits = DETECTORS["memory_full"].thresholds
    assert full(np.full(5, 0.97), limits)
    assert not full(np.asarray([0.97, 0.97, 0.5, 0.97, 0.97]), limits)
    assert not full(np.full(4, 0.97), limits)


def losses(seed: int = 1, size: int = 300) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (2 + 8 * np.arange(1.0, size + 1) ** -0.35) * (1 + 0.02 * rng.normal(size=size))


def test_a_jump_of_the_loss_is_told_and_noise_is_not() -> None:
    limits = DETECTORS["loss_spike"].thresholds
    curve = losses()
    assert not any(spike(curve[:n], limits) for n in range(2, curve.size))
    jumped = np.concatenate((curve, curve[-2:] * 1.25))
    found = spike(jumped, limits)
    assert found is not None
    assert found.widths > 3
    assert spike(np.append(curve, curve[-1] * 2), limits) is not None, "one far above tells by itself"


def test_a_loss_that_climbs_away_from_its_best_is_told() -> None:
    limits = DETECTORS["divergence"].thresholds
    curve = losses()
    assert not any(divergence(curve[:n], limits) for n in range(10, curve.size, 10))
    climbed = np.concatenate((curve, curve[-1] + 0.02 * np.arange(100.0)))
    found = divergence(climbed, limits)
    assert found is not None
    assert found.value > found.usual


@pytest.mark.parametrize(("value", "told"), [(math.nan, True), (math.inf, True), (3.0, False)])
def test_a_loss_that_is_no_number_is_told(value: float, told: bool) -> None:
    assert not_finite(np.asarray([2.0, value])) is told
    assert not not_finite(np.asarray([]))


def test_a_run_that_stops_is_told_after_more_than_its_longest_wait() -> None:
    limits = DETECTORS["stall"].thresholds
    arrivals = np.cumsum([90.0, *[2.0] * 20, 60.0, *[2.0] * 20])
    assert stall(arrivals, arrivals[-1] + 175, limits) is None
    found = stall(arrivals, arrivals[-1] + 185, limits)
    assert found is not None
    assert found.usual_seconds == 2.0
    assert stall(arrivals[:3], arrivals[2] + 1e6, limits) is None, "too few to know what is usual"


def test_a_device_that_stands_out_is_named() -> None:
    rng = np.random.default_rng(0)
    watts = rng.normal(600.0, 25.0, (120, 8))
    limits = DETECTORS["straggler"].thresholds
    assert stragglers(watts, limits) == ()
    watts[:, 3] *= 0.6
    (found,) = stragglers(watts, limits)
    assert found.device == 3
    assert found.value < found.peers
    assert stragglers(watts[:, :2], limits) == (), "of two, nobody knows which"


def test_throttling_is_told_by_what_the_driver_means() -> None:
    row = DETECTORS["throttling"]
    hot = [("thermal (software)",)] * 30
    found = throttling(hot, row.thresholds, row.causes)
    assert found is not None
    assert (found.cause, found.share) == ("heat", 1.0)
    capped = throttling([("power cap",)] * 20 + [()] * 10, row.thresholds, row.causes)
    assert capped is not None
    assert capped.cause == "power"
    assert throttling([("application clocks",)] * 30, row.thresholds, row.causes) is None
    assert throttling(hot[:10], row.thresholds, row.causes) is None


def test_a_disk_is_told_of_while_there_is_time() -> None:
    limits = DETECTORS["disk"].thresholds
    times = np.arange(0.0, 4000.0, 10)
    free = 300 * GB - 40 * GB * np.floor(times / 600)
    (first, *_) = (n for n in range(2, times.size) if filling(times[:n], free[:n], 2000 * GB, limits))
    found = filling(times[:first], free[:first], 2000 * GB, limits)
    assert found is not None
    assert found.free_bytes > found.rise_bytes == 40 * GB
    assert found.seconds < 3600
    again = 300 * GB - 40 * GB * (np.floor(times / 600) % 2)
    assert not any(filling(times[:n], again[:n], 2000 * GB, limits) for n in range(2, times.size, 10))
