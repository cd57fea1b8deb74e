"""Verdicts on published runs, and the user's own runs judged like them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.runs.accuracy import evaluate, predictor, user_measurements, verdicts_of
from capacity_tui.engine.runs.accuracy.predictions import share
from capacity_tui.engine.runs.accuracy.scoring import Prediction, scored_measurements
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.cli import main

PLAN = {
    "model": {"name": "llama-3.1-8b"},
    "task": "infer",
    "inference": {"engine": "vllm", "batch": 4},
    "hardware": {"name": "h100-sxm-80gb", "devices": 1},
}


def test_most_published_runs_that_ran_are_not_refused() -> None:
    predict = predictor(load_catalog())
    rows = [*scored_measurements("train_memory")[::8], *scored_measurements("finetune_memory")[::8]]
    found = verdicts_of([evaluate(predict, "train_memory", rows)], predict)
    assert len(found.ran) > 20
    assert share(found.ran, Verdict.DOES_NOT_FIT) < 0.12
    assert len(found.failed) >= 10
    assert share(found.failed, Verdict.FITS) <= 0.1


def test_a_run_counts_once_whatever_was_measured_of_it() -> None:
    row = scored_measurements("finetune_memory")[0]
    pairs = [
        evaluate(lambda _: Prediction(1.0, verdict=Verdict.DOES_NOT_FIT), "finetune_memory", [row]) for _ in range(2)
    ]
    found = verdicts_of(pairs, lambda _: Prediction(0.0, verdict=Verdict.DOES_NOT_FIT))
    assert len(found.ran) == len(found.refused) == 1
    assert not found.accepted


@pytest.mark.parametrize(
    ("gib", "verdict", "fits"),
    [(400.0, Verdict.FITS, True), (None, Verdict.TIGHT, True), (4.0, Verdict.DOES_NOT_FIT, False)],
)
def test_a_plan_is_tight_where_its_range_straddles_the_limit(gib: float | None, verdict: Verdict, fits: bool) -> None:
    estimate = estimate_plan(Plan.model_validate(PLAN)).estimate
    capacity = float(estimate.memory.reserved_bytes.value) if gib is None else gib * 2**30
    found = replace(estimate, memory=replace(estimate.memory, capacity_bytes=capacity))
    assert found.verdict is verdict
    assert found.fits is fits


def test_own_runs_are_judged_like_published_ones() -> None:
    estimate = estimate_plan(Plan.model_validate(PLAN)).estimate
    seconds, peak = float(estimate.computation.step_seconds.value), float(estimate.memory.reserved_bytes.value)
    rows = list(user_measurements(PLAN, 1.1 * seconds, peak, "2026-11-22", 1))
    assert [row.kind for row in rows] == ["train_time", "train_memory"]
    report = evaluate(predictor(load_catalog()), "train_time", rows[:1])
    assert report.overall is not None
    assert report.overall.median == pytest.approx(1.0 - 1.0 / 1.1)
    assert report.left_out == ()


def test_the_command_judges_runs_that_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["accuracy", "--mine"]) == 2
    assert "calibrate --plan" in capsys.readouterr().err
    folder = tmp_path / "capacity-tui" / "measured"
    folder.mkdir(parents=True)
    run = {"plan": PLAN, "step_seconds": 9.0, "peak_bytes": None, "date": "2026-11-22"}
    (folder / "h100-sxm-80gb.runs.jsonl").write_text(json.dumps(run) + "\n")
    assert main(["accuracy", "--mine", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["train_time"]["overall"]["count"] == 1
