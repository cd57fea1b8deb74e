"""Ranges know the plan, and runs of one's own: as if each device of each publisher were one's own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.estimate import resolve_plan, run_like, unsure_of, user_runs_of
from capacity_tui.engine.machine import FitError, MeasuredRun
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.runs.accuracy.predictions import answered
from capacity_tui.engine.runs.accuracy.scoring import scored_measurements, unseen_predictions
from capacity_tui.engine.uncertainty import (
    ErrorTerms,
    RunFeatures,
    UserRuns,
    figure_range,
    figure_spread,
    range_from,
    spreads_here,
)
from capacity_tui.engine.uncertainty.user_runs import Bin, Bins
from tools.calibrate.runs import figure_name, sign_of

ROW = Reliability(
    id="some-step",
    name="time of a step",
    spreads={"base": 0.08, "kernels": 0.05, "data_parallel": 0.7, "unnamed": 0.1},
    distances={"hardware": 0.08, "precision": 0.06, "layout": 0.06, "length": 0.05, "devices": 0.03},
    hidden=0.3,
    repeat=0.04,
    below=1.5,
    above=1.8,
    measurements=3,
    publishers=2,
    source="made up",
    checked=date(2026, 11, 22),
    confidence="C",
)
WORDS = {"hardware": ("hopper", "ampere", "volta"), "precision": ("bf16", "fp8")}


def cell(hardware: str, precision: str, splits: frozenset[str], length: float, publisher: str = "one") -> Bin:
    numbers = {"length": length, "devices": 8.0}
    return Bin(publisher, {"hardware": hardware, "precision": precision}, splits, numbers, numbers, 1)


BINS = Bins([cell("hopper", "bf16", frozenset({"tp"}), 4096.0), cell("ampere", "bf16", frozenset(), 2048.0, "two")])
AMOUNTS = {"base": 1.0, "kernels": 0.7, "data_parallel": 0.2, "unnamed": 0.0}


def like(hardware: str = "hopper", precision: str = "bf16", tp: Number = 1.0, length: Number = 4096.0) -> RunFeatures:
    words = {"hardware": hardware, "precision": precision}
    return RunFeatures(words, {"tp": tp}, {"length": length, "devices": 8.0})


def deviation(features: RunFeatures, amounts: dict[str, float] | None = None, bins: Bins = BINS) -> Number:
    return figure_spread(ErrorTerms(amounts or AMOUNTS, features), ROW, bins).deviation


likenesses = st.builds(
    like,
    st.sampled_from(WORDS["hardware"]),
    st.sampled_from(WORDS["precision"]),
    st.sampled_from([0.0, 1.0]),
    st.floats(1.0, 1e7),
)


def bin_of(features: RunFeatures, doublings: int) -> Bin:
    low = {name: float(np.asarray(number)) for name, number in features.numbers.items()}
    high = {name: number * 2.0**doublings for name, number in low.items()}
    return Bin("three", features.words, frozenset({"tp"} if features.splits["tp"] else ()), low, high, 1)


def test_a_run_like_a_published_one_adds_no_distance() -> None:
    parts = sum((ROW.spreads[name] * amount) ** 2 for name, amount in AMOUNTS.items())
    assert float(deviation(like())) ** 2 == pytest.approx(parts)


@given(likenesses, st.floats(0.0, 1.0), st.sampled_from(sorted(AMOUNTS)))
def test_more_of_what_is_unsure_never_narrows(features: RunFeatures, more: float, name: str) -> None:
    assert deviation(features, {**AMOUNTS, name: AMOUNTS[name] + more}) >= deviation(features)


@given(st.floats(4096.0, 1e8), st.floats(1.0, 64.0))
def test_going_further_from_what_was_measured_never_narrows(length: float, times: float) -> None:
    assert deviation(like(length=length * times)) >= deviation(like(length=length))


@given(likenesses, likenesses)
def test_a_further_published_run_never_widens(own: RunFeatures, other: RunFeatures) -> None:
    assert deviation(own, bins=Bins([*BINS.bins, bin_of(other, 0)])) <= deviation(own)


@given(
    st.lists(st.tuples(st.floats(1.0, 1e7), st.sampled_from([0.0, 1.0])), min_size=1, max_size=5),
    st.lists(st.builds(bin_of, likenesses, st.integers(0, 8)), max_size=5),
)
def test_arrays_say_what_each_run_says_by_itself(runs: list[tuple[float, float]], further: list[Bin]) -> None:
    lengths, splits = (np.array(each) for each in zip(*runs, strict=True))
    bins = Bins([*BINS.bins, *further])
    together = deviation(like("volta", "fp8", splits, lengths), bins=bins)
    alone = [deviation(like("volta", "fp8", tp, length), bins=bins) for length, tp in runs]
    assert np.asarray(together) == pytest.approx(np.array(alone, dtype=float))


@given(likenesses, st.floats(0.0, 0.5))
def test_what_is_sampled_on_the_machine_counts_in_place_of_what_is_usual(features: RunFeatures, error: float) -> None:
    here = spreads_here([FitError("gemm.bf16", 9, error, error)])
    sampled = figure_spread(ErrorTerms(AMOUNTS, features, here), ROW, BINS).deviation
    assert (sampled <= deviation(features)) == (max(here["kernels"], ROW.repeat) <= ROW.spreads["kernels"])
    assert float(sampled) >= ROW.repeat  # runs of one plan differ, however well a machine is known


def test_samples_of_collectives_narrow_what_waits_inside_a_node() -> None:
    assert set(spreads_here([FitError("collectives", 40, 0.05, 0.2)])) == {"tensor_parallel"}


def test_the_basis_tells_what_widens_a_range() -> None:
    found = figure_range(ErrorTerms({**AMOUNTS, "data_parallel": 0.8}, like()), ROW)
    assert "data parallel" in found.basis
    assert "3 published runs of 2 publishers" in found.basis


def test_rows_without_runs_say_so() -> None:
    found = figure_range(ErrorTerms(AMOUNTS), ROW.model_copy(update={"measurements": 0}))
    assert "set by hand" in found.basis
    assert "published runs of" not in found.basis


def test_rates_have_the_inverse_range_of_their_times() -> None:
    found = figure_range(ErrorTerms(AMOUNTS, like()), ROW)
    assert found.inverse.low == pytest.approx(1.0 / float(found.high))
    assert found.low < 1.0 < found.high


@given(st.floats(0.0, 8.0))
def test_a_range_reaches_no_further_than_its_row_says(deviations: float) -> None:
    bounded = range_from(deviations, ROW.model_copy(update={"most": (0.5, 9.0)}))
    free = range_from(deviations, ROW)
    assert (bounded.low, bounded.high) == (max(float(free.low), 0.5), min(float(free.high), 9.0))


FEWEST, DRAWS, MOST = 7, 6, 12


class Published(NamedTuple):
    """A run: what it is like, how far it was from its estimate, and how unsure that was."""

    like: RunFeatures
    error: float
    unsure: Mapping[str, Mapping[str, float]]
    row: Reliability

    @property
    def as_own(self) -> MeasuredRun:
        numbers = {name: float(number) for name, number in self.like.numbers.items()}
        return MeasuredRun("", self.like.words, numbers, speed=math.exp(-self.error), unsure=self.unsure)


@pytest.fixture(scope="module")
def machines() -> list[list[Published]]:
    """Runs by publisher and device, every other one, as constants without their publisher's runs predict them."""
    catalog, found = load_catalog(), defaultdict[tuple[str, str], list[Published]](list)
    unseen = unseen_predictions("train_time")
    for measurement in scored_measurements("train_time")[::2]:
        answer = answered(measurement, catalog)
        resolved = resolve_plan(answer.plan, catalog)
        like = run_like(resolved.plan, resolved.family, resolved.shape, resolved.cluster.device, catalog)
        estimate, sign = answer.estimate, sign_of(measurement.quantity)
        error = sign * math.log(measurement.value / unseen[measurement.id]["publishers"].value)
        row = estimate.work.evidence.rows[figure_name(estimate, measurement.quantity)]
        key = measurement.source_key, resolved.cluster.device.name
        found[key].append(Published(like, error, unsure_of(estimate), row))
    return [runs for runs in found.values() if len(runs) >= FEWEST]


def judged(own: UserRuns | None, runs: Sequence[Published]) -> list[tuple[float, bool]]:
    """Return how far off each run is, and whether it lies in its range."""
    found = []
    for run in runs:
        left, variance = run.error, sum(deviation**2 for deviation in run.unsure["step"].values())
        if own is not None:
            spread = own.time_spread(run.like.words, run.like.numbers)
            assert spread is not None
            left += math.log(own.speed(run.like.words, run.like.numbers))
            variance = float(spread.variance(run.unsure["step"]))
        deviation = math.sqrt(variance)
        ratios = range_from(deviation, run.row, "train")
        found.append((abs(left), math.log(ratios.low) <= left <= math.log(ratios.high)))
    return found


@pytest.mark.parametrize("count", [1, 3, 6])
def test_after_learning_others_are_met_more_closely_and_as_often(machines: list[list[Published]], count: int) -> None:
    random, catalog = np.random.default_rng(count), load_catalog()
    likeness = user_runs_of((), catalog).likeness
    before, after = [], []
    for runs in machines:
        for _ in range(DRAWS):
            order = random.permutation(len(runs))
            own = UserRuns([runs[place].as_own for place in order[:count]], likeness)
            others = [runs[place] for place in order[count : count + MOST]]
            before.append(judged(None, others))
            after.append(judged(own, others))

    def mean_of(draws: list[list[tuple[float, bool]]]) -> tuple[float, float]:
        errors = [np.median([error for error, _ in draw]) for draw in draws]
        return float(np.mean(errors)), float(np.mean([np.mean([held for _, held in draw]) for draw in draws]))

    (error_before, held_before), (error_after, held_after) = mean_of(before), mean_of(after)
    assert error_after < error_before
    assert held_after >= held_before - 0.01
