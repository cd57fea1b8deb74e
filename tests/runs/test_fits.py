"""What the fits left in profiles/fits is of the constants that ship."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path
from statistics import median

import pytest

from capacity_tui.engine.runs.accuracy import COMPARED_KINDS, fitted_constants, unseen_scores
from capacity_tui.engine.runs.accuracy.published import DESCRIBED
from capacity_tui.engine.runs.accuracy.scoring import scored_measurements, unseen_predictions

GOLDEN = Path(__file__).parents[1] / "golden"
AGAIN = "uv run python -m tools.calibrate ranges --write"


def golden(name):
    with (GOLDEN / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", [kind for kind in COMPARED_KINDS if kind.startswith(("train", "finetune"))])
def test_unseen_figures_are_those_of_what_is_estimated_now(kind):
    now = {row["id"]: row for row in golden(DESCRIBED[kind].file)}
    known = unseen_predictions(kind)
    assert set(known) <= {row.id for row in scored_measurements(kind)}
    assert len(known) > 0.95 * len(scored_measurements(kind))
    if kind.endswith("time"):
        then = {row["id"]: float(row["estimated"]) for row in golden("when_fitted") if row["kind"] == kind}
        moved = [abs(float(now[run]["step_seconds"]) / then[run] - 1.0) for run in known]
        assert median(moved) < 0.01, f"estimates moved since the fits were judged: {AGAIN}"


def test_training_is_judged_without_publishers_software_and_hardware():
    for kind in ("train_time", "train_memory", "finetune_time", "finetune_memory"):
        found = unseen_scores(kind)
        assert set(found) == {"publishers", "software", "hardware", "publishers, software withheld"}
        assert all(scores.count > 20 for scores in found.values())


def test_ranges_of_unseen_publishers_hold_most_of_their_runs_without_being_wide():
    scores = unseen_scores("train_time")["publishers"]
    assert scores.coverage is not None and 0.7 < scores.coverage < 0.95
    assert scores.width is not None and scores.width < 2.2


def test_every_fitted_constant_tells_what_it_rests_on():
    rows = fitted_constants()
    assert len({row.name for row in rows}) == len(rows) > 60
    for row in rows:
        assert 0.0 <= row.learned <= 1.0
        assert row.publishers <= row.runs
        table = row.field.partition(".")[0]
        assert files("capacity_tui.profiles").joinpath(f"{table}.yaml").is_file()
