"""What runs of one's own teach: as much as they are like a plan, and wider where they disagree."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.machine import MeasuredRun
from capacity_tui.engine.uncertainty import Similarity, UserRuns

ALIKE = {"precision": 0.5, "family": 0.5, "software": 0.5, "method": 0.7, "optimizer": 0.9, "attention": 0.1,
         "layout": 0.8}  # fmt: skip
LIKENESS = Similarity(ALIKE, doubling=0.95, shared=0.7, scatter=0.1, patience=2.0, context=0.5)
WORDS = {"kind": "training", "precision": "fp32", "family": "decoder", "software": "transformers", "method": "full"}
NUMBERS = {"length": 512.0, "parameters": 1e8, "batch": 4.0, "devices": 1.0}
USUAL = 0.15
BELOW, ABOVE = 0.9, 1.3  # Ends of a range of eight in ten, in standard deviations

speeds = st.floats(0.3, 3.0)
spreads = st.floats(0.01, 0.5)
others = st.sampled_from([{}, {"precision": "bf16"}, {"family": "encoder"}, {"kind": "serving"}, {"method": "lora"}])


def run(speed: float, weight: float = 1.0, usual: float = USUAL, **words: str) -> MeasuredRun:
    unsure = {"step": {"base": usual}}
    return MeasuredRun("2026-11-26", {**WORDS, **words}, NUMBERS, speed=speed, weight=weight, unsure=unsure)


def sized(measured: MeasuredRun, parameters: float) -> MeasuredRun:
    """Return a run of a plan of its own."""
    return replace(measured, numbers={**NUMBERS, "parameters": parameters})


def taught(*runs: MeasuredRun) -> UserRuns:
    return UserRuns(runs, LIKENESS)


def deviation(runs: UserRuns, words: dict[str, str] = WORDS, usual: float = USUAL, **numbers: float) -> float:
    own = runs.time_spread(words, {**NUMBERS, **numbers})
    return usual if own is None else math.sqrt(float(own.variance({"base": usual})))


def speed_of(runs: UserRuns, words: dict[str, str] = WORDS, **numbers: float) -> float:
    return runs.speed(words, {**NUMBERS, **numbers})


@given(speeds)
def test_one_run_of_the_very_plan_is_met(speed: float) -> None:
    assert speed_of(taught(run(speed))) == pytest.approx(speed, rel=1e-3)


@given(st.lists(speeds, min_size=1, max_size=6), speeds)
def test_what_another_kind_of_work_took_teaches_nothing(measured: list[float], own: float) -> None:
    serving = {**WORDS, "kind": "serving"}
    runs = taught(*(run(speed) for speed in measured))
    assert speed_of(runs, serving) == 1.0
    assert deviation(runs, serving) == USUAL
    both = taught(*runs.runs, run(own, kind="serving"))
    assert speed_of(both, serving) == pytest.approx(own, rel=1e-3)
    assert speed_of(both) == pytest.approx(speed_of(runs), rel=1e-3)
    assert deviation(both) == pytest.approx(deviation(runs), rel=1e-3)


@given(speeds)
def test_an_unlike_run_moves_little_and_changes_the_range_little(measured: float) -> None:
    runs = taught(run(measured))
    other = {**WORDS, "precision": "bf16", "family": "encoder", "method": "lora"}
    # However far off: as a run of another plan counts, by what makes both unsure and what they have in common.
    assert abs(math.log(speed_of(runs, other))) <= 0.3 * USUAL
    assert 0.98 * USUAL <= deviation(runs, other) <= 1.4 * USUAL


@given(spreads, st.lists(speeds, min_size=1, max_size=6), st.lists(speeds, min_size=1, max_size=3))
def test_what_other_parts_make_unsure_says_nothing(usual: float, measured: list[float], waiting: list[float]) -> None:
    """Runs that wait for networks teach nothing of kernels."""
    kernels = [replace(run(speed), unsure={"step": {"kernels": usual}}) for speed in measured]
    network = [replace(sized(run(speed), 3e9), unsure={"step": {"tensor_parallel": usual}}) for speed in waiting]
    own = taught(*kernels, *network).time_spread(WORDS, {**NUMBERS, "length": 4096.0})
    alone = taught(*kernels).time_spread(WORDS, {**NUMBERS, "length": 4096.0})
    assert own is not None
    assert alone is not None
    assert float(own.variance({"kernels": usual})) == pytest.approx(float(alone.variance({"kernels": usual})))


def test_three_quick_runs_in_fp32_narrow_neither_bf16_nor_another_size_as_much() -> None:
    runs = taught(run(1.0), run(1.02), run(0.98))
    here = deviation(runs)
    assert here < 0.8 * USUAL
    assert here < deviation(runs, length=8192.0) < deviation(runs, {**WORDS, "precision": "bf16"}) < USUAL


@given(speeds, st.floats(1.5, 4.0))
def test_runs_that_disagree_widen(speed: float, apart: float) -> None:
    runs = taught(run(speed), run(speed * apart), run(speed / apart))
    assert deviation(runs) > deviation(taught(run(speed), run(speed), run(speed)))
    if apart > 2.0:
        assert deviation(runs) > USUAL


@given(st.floats(0.9, 1.1), st.floats(1.4, 3.0))
def test_a_run_that_disagrees_with_alike_ones_widens_what_they_narrowed(speed: float, apart: float) -> None:
    agreeing = [sized(run(speed), size) for size in (0.5e8, 2e8, 4e8)]
    disagreeing = sized(run(speed * apart), 8e8)
    assert deviation(taught(*agreeing, disagreeing)) > deviation(taught(*agreeing))


@given(spreads, st.lists(others, min_size=1, max_size=6))
def test_runs_just_as_they_were_estimated_never_widen(usual: float, words: list[dict[str, str]]) -> None:
    agreeing = [run(1.0, usual=usual, **each) for each in words]
    after = [deviation(taught(*agreeing[:count]), usual=usual) for count in range(1, len(agreeing) + 1)]
    assert after[0] <= usual * (1 + 1e-9)
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(after))


@given(spreads, speeds, st.lists(st.floats(0.5, 2.0), min_size=2, max_size=6))
def test_runs_never_narrow_below_what_they_show(usual: float, speed: float, apart: list[float]) -> None:
    runs = taught(*(run(speed * each, usual=usual) for each in apart))
    left = [math.log(each.speed or 1.0) - math.log(speed_of(runs)) for each in runs.runs]
    assert deviation(runs, usual=usual) >= 0.9 * math.sqrt(np.mean(np.square(left)))


@given(spreads, speeds, st.lists(st.floats(0.5, 2.0), min_size=2, max_size=6), st.floats(0.5, 2.0))
def test_a_further_run_never_narrows_below_what_alike_runs_show(
    usual: float, speed: float, apart: list[float], further: float
) -> None:
    measured = [sized(run(speed * each, usual=usual), 1e8 * (1 + at)) for at, each in enumerate([*apart, further])]
    shown = np.log([each.speed or 1.0 for each in measured])
    assert deviation(taught(*measured), usual=usual, parameters=9e8) >= 0.8 * float(np.std(shown))


@given(spreads, st.floats(2.0, 4.0))
def test_a_run_far_from_a_sure_estimate_widens_it(usual: float, speed: float) -> None:
    assert deviation(taught(run(speed, usual=usual)), usual=usual) >= 0.1


@given(speeds, st.floats(2.0, 10.0))
def test_a_run_beside_others_counts_for_less(speed: float, slower: float) -> None:
    quiet = [run(speed), run(speed * 1.01)]
    disturbed = taught(*quiet, run(speed / slower, weight=0.01))
    assert speed_of(disturbed) == pytest.approx(speed, rel=0.05)


@given(
    st.lists(st.tuples(speeds, others), min_size=1, max_size=5), st.lists(st.floats(1.0, 1e6), min_size=2, max_size=4)
)
def test_arrays_of_plans_have_the_spread_of_each(
    measured: list[tuple[float, dict[str, str]]], lengths: list[float]
) -> None:
    runs = taught(*(run(speed, **words) for speed, words in measured))
    together = runs.time_spread(WORDS, {**NUMBERS, "length": np.array(lengths)})
    for place, length in enumerate(lengths):
        alone = runs.time_spread(WORDS, {**NUMBERS, "length": length})
        assert (together is None) == (alone is None)
        if together is not None and alone is not None:
            spread = np.asarray(together.variance({"base": USUAL}))[place]
            assert spread == pytest.approx(float(alone.variance({"base": USUAL})))


def test_memory_outside_tensors_is_that_of_runs_whose_tensors_are_small() -> None:
    usual, unsure = 250e6, {"memory": {"base": 0.07}}
    small = replace(run(1.0), peak_bytes=900e6, tensor_bytes=300e6, unsure=unsure)
    large = replace(sized(run(1.0), 2e9), peak_bytes=9e9, tensor_bytes=8e9, unsure=unsure)
    agreed = taught(small, small).context_bytes(WORDS, NUMBERS, usual)
    assert agreed == pytest.approx(600e6, rel=0.1)
    assert taught(small, small, large).context_bytes(WORDS, NUMBERS, usual) == pytest.approx(agreed, rel=0.1)
    assert taught(large).context_bytes(WORDS, NUMBERS, usual) < 0.75 * 1e9
    unlike = {**WORDS, "kind": "serving"}
    assert taught(small, large).context_bytes(unlike, NUMBERS, usual) == usual


@pytest.mark.parametrize("seed", range(4))
def test_after_learning_no_fewer_further_runs_lie_in_the_range(seed: int) -> None:
    """Machines, precisions and plans that are off by as much as was seen, and runs that scatter as much."""
    random = np.random.default_rng(seed)
    words = [{}, {"precision": "bf16"}, {"kind": "serving"}, {"family": "encoder"}]
    before, after = 0, 0
    for _ in range(300):
        machine = random.normal(0.0, 0.1)
        of_words = [machine + random.normal(0.0, 0.08)] + [random.normal(0.0, 0.3) for _ in words[1:]]
        kinds = random.choice(len(words), size=1 + random.integers(6), p=[0.7, 0.1, 0.1, 0.1])
        runs = taught(*(run(math.exp(of_words[kind] + random.normal(0.0, 0.1)), **words[kind]) for kind in kinds))
        further = int(random.integers(len(words)))
        took = of_words[further] + random.normal(0.0, 0.1)
        plan = {**WORDS, **words[further]}
        left, spread = took - math.log(speed_of(runs, plan)), deviation(runs, plan)
        # A faster machine takes less time: the low end of the time is the high end of the speed.
        before += -ABOVE * USUAL <= took <= BELOW * USUAL
        after += -ABOVE * spread <= left <= BELOW * spread
    assert after >= before
