"""Numbers that go as far as limits let them: the edges of what holds, wherever it lies."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.estimate import Constraint
from capacity_tui.engine.schema import Knob
from capacity_tui.engine.solve import Candidate, CheckedConstraint
from capacity_tui.engine.solve.need.numbers import ValueSearch, scale_of, whole_nodes, whole_numbers
from capacity_tui.engine.uncertainty import Interval

TIME, COST = "computation.estimated_train_time_seconds", "cost.usd"


def tried(value, *sides):
    """Return what was tried, with figures and the most that each may be."""
    reached = tuple(
        CheckedConstraint(Constraint(key, key, "", Interval.exactly(number), most)) for key, number, most in sides
    )
    return Candidate({"hardware.devices": value}, None, object(), reached)


@settings(max_examples=40)
@given(low=st.integers(1, 5000), width=st.integers(0, 3000), start=st.integers(1, 100_000))
def test_a_band_of_values_is_found_from_anywhere(low, width, start):
    high = low + width
    line = ValueSearch(
        whole_numbers(1, 100_000), lambda value: tried(value, (TIME, low / value, 1.0), (COST, value / high, 1.0))
    )
    line.spread(start)
    assert line.holding
    lower, upper = line.edge(line.holding[0], -1), line.edge(line.holding[0], 1)
    assert lower.holds == low and lower.fails == (low - 1 if low > 1 else None)
    assert upper.holds == high and upper.fails == (high + 1 if high < 100_000 else None)
    assert line.is_monotonic


@settings(max_examples=15)
@given(st.integers(2, 4000), st.integers(1, 100_000))
def test_what_nothing_keeps_has_a_nearest(least, start):
    most = least / 2
    line = ValueSearch(
        whole_numbers(1, 100_000), lambda value: tried(value, (TIME, least / value, 1.0), (COST, value / most, 1.0))
    )
    line.spread(start)
    assert not line.holding
    best = min(max(least / value, value / most) for value in range(max(1, least // 4), min(100_000, 2 * least)))
    assert line.at(line.nearest()).violation <= 1.1 * (best - 1.0)


def test_a_value_that_holds_behind_one_that_does_not_is_found():
    # Odd numbers do not divide anything.
    line = ValueSearch(whole_numbers(1, 10_000), lambda value: tried(value, (TIME, 100 / value + (value % 2), 1.0)))
    line.spread(8)
    edge = line.edge(line.holding[0], -1)
    assert (edge.holds, edge.fails) == (100, 99)


@given(st.floats(0.01, 1e6), st.sampled_from([1.0, 0.1, 16.0]), st.sampled_from([1e18, 1e7, 10.0]), st.booleans())
def test_places_and_values_belong_together(value, step, most, is_whole):
    least = 1.0 if is_whole else 0.05
    assume(least <= value <= most)
    scale = scale_of(Knob("", "number", "", "", least, most, step), is_whole)
    place = scale.index(value)
    assert scale.index(scale.value(place)) == place
    below, above = scale.value(max(place - 1, scale.low)), scale.value(min(place + 1, scale.high))
    assert below <= value <= above or scale.value(place) in (scale.value(scale.low), scale.value(scale.high))
    assert scale.low <= place <= scale.high


@given(st.integers(1, 72), st.integers(1, 96))
def test_devices_fill_nodes_beyond_one(node, grain):
    scale = whole_nodes(node, grain, 1000 * node * grain)
    values = [scale.value(place) for place in range(scale.low, scale.low + 200)]
    by_hand = [each for each in range(1, values[-1] + 1) if each % grain == 0 and (each <= node or each % node == 0)]
    assert values == by_hand
    assert [scale.index(value) for value in values] == list(range(scale.low, scale.low + 200))
    assert scale.value(scale.high) <= 1000 * node * grain
