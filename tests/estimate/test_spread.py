"""Ranges know the plan: wider for parts known badly and for runs unlike any measured, never narrower."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.machine import FitError
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.uncertainty import (
    ErrorTerms,
    RunFeatures,
    figure_range,
    figure_spread,
    range_from,
    spreads_here,
)
from capacity_tui.engine.uncertainty.features import Bin, Bins

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
