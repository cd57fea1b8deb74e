"""Fits of spreads: ranges hold about eight runs in ten of publishers they were not made from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from capacity_tui.engine.uncertainty import RunFeatures
from tools.calibrate.constants import SpreadPriors, spread_priors
from tools.calibrate.spreads import ANY, Errors, Sample, quantile

PRIORS = SpreadPriors({"base": 0.1, "data_parallel": 0.3}, {"hardware": 0.1, "length": 0.05})


def made(publishers: int, runs: int, base: float, exposed: float, own: float = 0.0, seed: int = 3) -> list[Sample]:
    """Return errors of a known spread, part of it publishers' own; half of the runs wait for the network."""
    draw = np.random.default_rng(seed)
    found = []
    for publisher in range(publishers):
        shift = float(draw.normal(0.0, own)) if own else 0.0
        for run in range(runs):
            share = 0.6 * (run % 2)
            features = RunFeatures({"hardware": f"part-{publisher % 3}"}, {}, {"length": 2048.0})
            error = shift + float(draw.normal(0.0, np.hypot(base, exposed * share)))
            found.append(Sample(f"by-{publisher}", error, {"base": 1.0, "data_parallel": share}, features))
    return found


def test_spreads_are_found_part_by_part() -> None:
    found = Errors(made(40, 12, 0.05, 0.6), PRIORS).result()
    assert found.spreads["base"] == pytest.approx(0.05, rel=0.3)
    assert found.spreads["data_parallel"] == pytest.approx(0.6, rel=0.3)


@pytest.mark.parametrize(("publishers", "most"), [(6, 0.99), (25, 0.9)])
def test_ranges_hold_eight_in_ten_of_publishers_left_out(publishers: int, most: float) -> None:
    errors = Errors(made(publishers, 30, 0.08, 0.4), PRIORS)
    low, high = errors.unseen()
    inside = np.mean((low <= errors.errors) & (errors.errors <= high))
    assert 0.74 < inside < most


def test_ranges_of_each_kind_of_runs_hold_eight_in_ten_of_it() -> None:
    close, far = made(12, 20, 0.03, 0.0), made(12, 20, 0.2, 0.0, seed=4)
    samples = [replace(each, kind=kind) for kind, several in (("close", close), ("far", far)) for each in several]
    errors = Errors(samples, PRIORS)
    low, high = errors.unseen()
    inside = (low <= errors.errors) & (errors.errors <= high)
    assert 0.72 < np.mean(inside[: len(close)]) < 0.9
    assert 0.72 < np.mean(inside[len(close) :]) < 0.9
    assert sum(errors.result().ends["far"]) > sum(errors.result().ends["close"])


def test_few_publishers_make_wider_ranges_where_they_differ() -> None:
    few, many = (Errors(made(count, 30, 0.05, 0.0, own=0.15), PRIORS).result() for count in (4, 30))
    assert sum(few.ends[ANY]) > sum(many.ends[ANY])


def test_groups_stand_in_for_a_publisher_that_is_alone() -> None:
    of_one = made(8, 20, 0.05, 0.0, own=0.15)
    of_one = [replace(each, publisher="one", group=each.publisher) for each in of_one]
    low, high = Errors(of_one, PRIORS).unseen()
    assert 0.7 < np.mean([low[at] <= each.error <= high[at] for at, each in enumerate(of_one)]) < 0.95


def test_no_error_is_dropped_for_its_size() -> None:
    samples = made(10, 10, 0.05, 0.0)
    wild = [*samples, *(Sample("wild", 2.0, each.amounts, each.features) for each in samples[:30])]
    calm, widened = Errors(samples, PRIORS).result(), Errors(wild, PRIORS).result()
    assert widened.ends[ANY][1] * widened.spreads["base"] > calm.ends[ANY][1] * calm.spreads["base"]


def test_many_runs_of_one_publisher_count_like_few_of_another() -> None:
    values, weights = np.array([0.0, 0.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0, 3.0]) / 3.0
    assert quantile(values, weights, 0.25) == 0.0
    assert quantile(values, weights, 0.75) == 1.0


def test_priors_name_what_the_catalogue_has() -> None:
    from capacity_tui.engine.catalog import load_catalog

    rows = load_catalog().reliabilities
    for name, priors in spread_priors().items():
        assert rows[name].spreads.keys() == priors.spreads.keys()
        assert rows[name].distances.keys() == priors.distances.keys()
