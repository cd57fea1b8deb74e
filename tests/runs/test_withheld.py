"""Runs whose training software is withheld are estimated as those of unnamed software, all else as it was."""

from __future__ import annotations

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.runs.accuracy import evaluate, predictor
from capacity_tui.engine.runs.accuracy.published import field
from capacity_tui.engine.runs.accuracy.scoring import scored_measurements
from tools.calibrate.runs import NAME, TRAINED, without_framework


def test_only_the_name_is_withheld() -> None:
    for kind in TRAINED:
        for row in scored_measurements(kind)[::10]:
            told = without_framework(row)
            assert field(told.plan, NAME) is None
            assert told.tags["framework"] == ""
            assert (told.id, told.value, told.source_key) == (row.id, row.value, row.source_key)
            section = {key: value for key, value in row.plan["training"].items() if key != "framework"}
            assert told.plan == {**row.plan, "training": section}


def test_what_software_ran_it_makes_a_difference_that_is_scored() -> None:
    rows = [row for row in scored_measurements("train_time") if row.source_key == "bigscience-prequel"][::20]
    catalog = load_catalog()
    named = evaluate(predictor(catalog), "train_time", rows)
    withheld = evaluate(predictor(catalog), "train_time", [without_framework(row) for row in rows])
    assert len(withheld.pairs) == len(named.pairs) == len(rows)
    assert [pair.prediction.value for pair in withheld.pairs] != [pair.prediction.value for pair in named.pairs]
