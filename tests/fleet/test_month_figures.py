"""Ratios of two machines' work with their ranges, and when moving has paid: all by hand."""

from __future__ import annotations

import math

import pytest

from capacity_tui.engine.fleet.migration.priced import break_even, ratio_range
from capacity_tui.engine.uncertainty import Interval

OTHER, CURRENT = Interval(200.0, 160.0, 300.0), Interval(100.0, 90.0, 200.0)


def test_a_ratio_of_unlike_devices_is_least_where_the_other_is_slow_and_the_current_one_fast() -> None:
    """200 / 100; down: ln(200 / 160) = 0.223 and ln(200 / 100) = 0.693; up: ln(300 / 200) and ln(100 / 90)."""
    found = ratio_range(OTHER, CURRENT, shared_errors=False)
    assert found.value == 2.0
    assert found.low == pytest.approx(2.0 * math.exp(-math.sqrt(math.log(1.25) ** 2 + math.log(2.0) ** 2)))
    assert found.low == pytest.approx(2.0 * math.exp(-0.7282), rel=1e-3)
    assert found.high == pytest.approx(2.0 * math.exp(math.sqrt(math.log(1.5) ** 2 + math.log(10 / 9) ** 2)))


def test_a_ratio_within_one_device_keeps_what_the_errors_do_not_share() -> None:
    """Down: 0.223 - 0.105; up: 0.693 - 0.405."""
    found = ratio_range(OTHER, CURRENT, shared_errors=True)
    assert found.low == pytest.approx(2.0 * (160 / 200) / (90 / 100))
    assert found.high == pytest.approx(2.0 * (200 / 100) / (300 / 200))


def test_moving_has_paid_when_the_saving_of_the_hours_is_what_it_cost() -> None:
    """600 USD once, 300 USD saved in a month of 720 hours: two months."""
    assert break_even(600.0, 300.0, 720.0) == 1440.0
