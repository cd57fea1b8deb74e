"""Fleets that serve a load: how many replicas keep the limits, and what they cost over a day."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import figures_of
from capacity_tui.engine.fleet.serving import ServingAnswer, ServingQuestion, load_curve, serve
from capacity_tui.engine.fleet.serving.candidates import candidates
from capacity_tui.engine.fleet.serving.serve import day_usd, ready_replicas
from capacity_tui.engine.fleet.serving.simulation import step_times
from capacity_tui.engine.fleet.serving.sizing import Replica
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.fleet import serving_as_dict, serving_parts
from capacity_tui.engine.solve.modes import fill

SMALL = {
    "model": {"name": "llama-3.1-8b"},
    "task": "infer",
    "inference": {"engine": "vllm", "prompt_tokens": 512, "output_tokens": 64},
    "parallelism": {"tp": 1},
    "hardware": {"name": "lambda-gpu-1x-a100-sxm4", "devices": 1},
}


@pytest.fixture(scope="module")
def question() -> ServingQuestion:
    return ServingQuestion(plan_from_data(SMALL), rate=25.0, ttft=1.0, tpot=0.05, spread=0.5, load=load_curve("office"))


@pytest.fixture(scope="module")
def answer(question: ServingQuestion) -> ServingAnswer:
    return serve(question)


def test_the_fewest_replicas_keep_the_limits_as_estimated(answer: ServingAnswer) -> None:
    best = answer.best
    assert best is not None
    low, number, high = (best.replicas[end] for end in ("low", "value", "high"))
    assert number is not None and low is not None and high is not None
    assert 1 <= low <= number <= high
    seen = best.loaded["value"]
    assert seen.first[0] <= 1.0 and seen.per_token[0] <= 0.05
    assert seen.kept[0] > 0.9
    # Nobody answers more than the steady state does.
    assert best.rate <= best.candidate.largest_rate
    assert number >= answer.question.rate / best.candidate.largest_rate
    assert best.usd_per_hour == pytest.approx(number * (best.candidate.usd_per_hour or 0))
    tokens = answer.question.rate * 3600 * (512 + 64) / 1e6
    assert answer.usd_per_million_tokens == pytest.approx((best.usd_per_hour or 0) / tokens)


def test_an_autoscaled_day_costs_less_and_still_answers_in_time(answer: ServingAnswer) -> None:
    day = answer.day
    assert day is not None and day.scaled.usd is not None and day.fixed.usd is not None
    assert day.scaled.usd < day.fixed.usd
    assert day.fixed.starts == 0 < day.scaled.starts
    assert day.scaled.kept > 0.9 and day.fixed.kept > 0.9
    assert np.all(day.scaled.replicas <= day.scaled.paid)
    assert day.startup.seconds.low < day.startup.seconds.value < day.startup.seconds.high


def test_an_answer_is_told_with_its_range_and_what_limits_it(answer: ServingAnswer) -> None:
    data = serving_as_dict(answer)
    assert {"replicas", "batch", "instance", "usd_per_million_tokens", "ttft", "tpot"} <= data.keys()
    assert data["instance"] == "lambda-gpu-1x-a100-sxm4"
    assert data["ttft"]["low"] <= data["ttft"]["value"] <= data["ttft"]["high"]
    assert data["ttft"]["limit"] == 1.0
    text = "\n".join(str(part) for part in serving_parts(answer))
    assert "with the range of the step times" in text
    assert "limit: T" in text
    assert "spot" in text


def test_step_times_are_those_of_the_estimate(question: ServingQuestion) -> None:
    (candidate, *_), _ = candidates(question, load_catalog())
    times = step_times(candidate.run, candidate.slots, 1000.0, 4096.0)
    speed = candidate.filled.estimate.computation.infer
    assert speed is not None and speed.time_per_output_token_seconds is not None
    # Under the lightest load one request is alone: a pass of one sequence at half of its answer.
    alone = times.flat[times.indices(np.array([1]), np.array([544.0]), np.array([0]))][0]
    assert alone == pytest.approx(float(speed.time_per_output_token_seconds.value), rel=0.01)
    assert np.all(np.diff(times.seconds[1:, 12, 0]) >= -1e-12)
    assert np.all(times.seconds[1:, :, 5] >= times.seconds[1:, :, 0])


def test_a_busier_replica_answers_later(question: ServingQuestion) -> None:
    (candidate, *_), _ = candidates(question, load_catalog())
    seen = Replica(candidate, question).loaded(
        np.array([0.2, 0.6, 0.9]) * candidate.largest_rate, np.full(3, candidate.slots), ["value"] * 3
    )
    assert np.all(np.diff(seen.first_mean) > 0)
    assert np.all(np.diff(seen.per_token_mean) > 0)


def test_limits_that_nothing_keeps_are_said_and_not_hidden(question: ServingQuestion) -> None:
    found = serve(replace(question, tpot=0.0001, load=None))
    assert found.best is None
    assert [each.instance for each in found.failing] == ["lambda-gpu-1x-a100-sxm4"]
    assert serving_as_dict(found)["replicas"] is None


def test_hardware_that_does_not_hold_the_model_is_named_with_what_lacks(question: ServingQuestion) -> None:
    large = plan_from_data({**SMALL, "model": {"name": "llama-3.1-70b"}})
    found = serve(replace(question, plan=large, load=None))
    assert found.best is None
    assert "does not fit with 1 device" in found.unfit[0].reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate": 0.0}, "above 0"),
        ({"rate": float("nan")}, "above 0"),
        ({"ttft": None, "tpot": None}, "no limit"),
        ({"percentile": 0.0}, "percentile"),
        ({"spread": -1.0}, "negative"),
        ({"plan": plan_from_data({"model": {"name": "gpt2"}, "hardware": {"name": "h100-sxm-80gb"}})}, "no requests"),
        ({"plan": plan_from_data({**SMALL, "inference": {"request_seconds": 8}})}, "whole requests"),
    ],
)
def test_questions_that_make_no_sense_are_refused(question: ServingQuestion, change: dict, said: str) -> None:
    with pytest.raises(CapacityError, match=said):
        serve(replace(question, **change))


def test_replicas_are_ready_a_start_after_they_are_paid_for_and_go_after_the_delay() -> None:
    wanted = np.full(1440, 2.0)
    wanted[600:660] = 5.0
    ready, paid = ready_replicas(wanted, startup=480.0, delay=300.0)
    assert paid[600] == 5.0 and ready[600] == 2.0
    assert ready[607] == 2.0 and ready[608] == 5.0
    assert paid[664] == 5.0 and paid[665] == 2.0 and ready[665] == 2.0
    at_once = ready_replicas(wanted, 0.0, 0.0)
    assert all(np.array_equal(each, wanted) for each in at_once)


def test_a_day_with_a_committed_base_is_worked_out_as_by_hand() -> None:
    paid = np.repeat([1.0, 3.0], 12)
    # Twelve hours of one, twelve of three; two dollars on demand, one committed.
    assert day_usd(0.0, paid, 1.0, 2.0) == pytest.approx(12 * 2 + 36 * 2)
    assert day_usd(1.0, paid, 1.0, 2.0) == pytest.approx(24 + 12 * 2 * 2)
    assert day_usd(3.0, paid, 1.0, 2.0) == pytest.approx(72)


def test_a_load_is_read_from_lists_tables_and_shapes(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("hour,rate\n00:00,2\n12:00,10  # noon\n")
    (tmp_path / "day.yaml").write_text("[1, 2, 3]")
    assert load_curve(str(tmp_path / "day.csv")).rates == (2.0, 10.0)
    assert load_curve(str(tmp_path / "day.yaml")).rates == (1.0, 2.0, 3.0)
    for name in ("even", "office", "consumer", "global"):
        curve = load_curve(name)
        assert curve.peak == 1.0
        assert curve.scaled(20.0).over_day(48).max() <= 20.0
    assert load_curve(str(tmp_path / "day.csv")).over_day(4) == pytest.approx([2.0, 6.0, 10.0, 6.0], abs=2.1)


@pytest.mark.parametrize("text", ["", "a\nb\n", "1\n-2\n", "[1, x]", "rates: 5", "0\n0\n", "[1, [2]]"])
def test_a_file_without_rates_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "load.txt"
    file.write_text(text)
    with pytest.raises(CapacityError, match=r"load\.txt"):
        load_curve(str(file))


def test_an_unknown_shape_tells_those_there_are() -> None:
    with pytest.raises(CapacityError, match="office"):
        load_curve("offise")


def test_planning_the_fleet_that_is_answered_gives_its_planned_figures(question: ServingQuestion) -> None:
    told: list[str] = []
    found = serve(replace(question, load=None), callback=told.append)
    assert found.best is not None and found.planned is not None and told
    plan = edited(question.plan, found.planned.set).plan
    assert plan.inference.request_rate == question.rate
    taken = fill(plan, "balanced").estimate
    assert dict(found.planned.figures) == figures_of(taken) and found.planned.verdict is taken.verdict
    assert found.planned.figures["cost.usd_per_hour"].value == pytest.approx(found.best.usd_per_hour)
