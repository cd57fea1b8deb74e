"""Scores of predictions, the leave-one-source-out loop, and the constant-rate baseline."""

import math

import pytest

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.runs.accuracy import evaluate
from capacity_tui.engine.runs.accuracy.published import Measurement
from capacity_tui.engine.runs.accuracy.scoring import (
    Pair,
    Prediction,
    at_constant_rates,
    at_rates_of_others,
    constant_rates,
    score,
    score_groups,
    scored_measurements,
)


def measurement(name="a", value=1.0, source="one", *, flops=None, hardware="h100"):
    tags = dict.fromkeys(("size", "length", "parallelism", "framework", "routing", "model"), "any")
    return Measurement(
        id=name,
        kind="train_time",
        quantity="step_seconds",
        value=value,
        unit="s",
        source_key=source,
        source="a page",
        url="https://example.org",
        quality="A",
        plan={"hardware": {"devices": 2}},
        parameters=10**9,
        model_flops=flops,
        tags=tags | {"source": source, "hardware": hardware, "precision": "bf16"},
    )


def pair(predicted, measured, source="one", low=None, high=None):
    return Pair(measurement(value=measured, source=source), Prediction(predicted, low, high))


def test_errors_are_relative_to_the_measurement():
    scores = score([pair(110, 100), pair(80, 100), pair(100, 100), pair(150, 100)])
    assert scores.count == 4
    assert scores.median == pytest.approx(0.15)
    assert scores.mean == pytest.approx(0.2)
    assert scores.p90 == pytest.approx(0.41)
    assert scores.coverage is None


def test_bias_is_the_median_log_ratio():
    assert score([pair(200, 100), pair(200, 100), pair(50, 100)]).bias == pytest.approx(math.log(2))


def test_many_rows_of_one_source_count_once():
    many = [pair(100, 100, "large")] * 9
    scores = score([*many, pair(140, 100, "small")])
    assert scores.median == 0
    assert scores.source_median == pytest.approx(0.2)
    assert scores.source_mean == pytest.approx(0.2)
    assert scores.sources == 2


def test_coverage_counts_only_pairs_with_an_interval():
    pairs = [pair(1, 1, low=0.5, high=2), pair(1, 3, low=0.5, high=2), pair(1, 9)]
    assert score(pairs).coverage == pytest.approx(0.5)


def test_nothing_to_score_is_an_error():
    with pytest.raises(ValueError, match="nothing"):
        score([])


def test_groups_come_largest_first():
    pairs = [pair(1, 1, "b"), pair(1, 1, "a"), pair(1, 1, "a")]
    groups = score_groups(pairs, "source")
    assert list(groups) == ["a", "b"]
    assert groups["a"].count == 2


def test_a_source_is_never_predicted_from_itself():
    rows = [
        measurement(source, source=source, flops=f) for source, f in (("one", 100.0), ("two", 200.0), ("three", 400.0))
    ]
    pairs = at_rates_of_others(rows)
    assert [p.prediction.value for p in pairs] == pytest.approx([50 / 150, 100 / 125, 200 / 75])


def test_constant_rate_is_the_median_by_hardware():
    rates = constant_rates(measurement(flops=f, value=1.0) for f in (100.0, 200.0, 400.0))
    assert rates == {("h100", "bf16"): 100.0}
    known, unknown = measurement(flops=400.0), measurement(flops=400.0, hardware="a100")
    assert list(at_constant_rates(rates, [known, unknown])) == [Pair(known, Prediction(2.0))]


def test_report_lists_what_could_not_be_predicted():
    def predict(row):
        if row.id == "bad":
            raise PlanError("no such thing", hint="try another")
        return Prediction(row.value)

    rows = [measurement("good", flops=1.0), measurement("bad", flops=1.0)]
    report = evaluate(predict, measurements=rows)
    assert report.overall is not None and report.overall.mean == 0
    assert [(r.measurement.id, r.reason) for r in report.refused] == [("bad", "no such thing; try another")]


def test_report_names_the_worst_rows_first():
    rows = [measurement("near", 1.0), measurement("far", 10.0)]
    report = evaluate(lambda row: Prediction(1.0), measurements=rows)
    assert [pair.measurement.id for pair in report.worst] == ["far", "near"]


def test_report_without_any_prediction_has_no_scores():
    report = evaluate(lambda row: Prediction(1.0), measurements=[])
    assert report.overall is None
    assert report.baseline is None


def test_baseline_on_the_published_runs_is_what_a_table_of_constants_reaches():
    report = evaluate(lambda row: Prediction(row.value), "train_time")
    assert report.overall is not None and report.overall.median == 0
    assert report.baseline is not None and 0.10 < report.baseline.median < 0.25
    assert report.baseline_unseen is not None
    assert report.baseline_unseen.median > report.baseline.median


def test_memory_has_no_constant_rate():
    assert evaluate(lambda row: Prediction(row.value), "train_memory").baseline is None


def test_doubtful_rows_are_not_scored():
    assert {row.quality for row in scored_measurements("train_time")} == {"A", "B"}
