"""Predictions of all published runs stay what they are until someone changes them on purpose, and a page tells them."""

from pathlib import Path

import pytest
from predictions import FILES, RENEW, Estimates, difference, kept, predicted

from capacity_tui.engine.present.runs import TITLES
from capacity_tui.engine.runs.accuracy import COMPARED_KINDS, evaluate, prediction

PAGE = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text("utf-8")


@pytest.mark.parametrize("name", FILES)
def test_predictions_stay_and_the_page_tells_what_is(name):
    estimates = Estimates()
    moved = difference(name, kept(name), predicted(name, estimates))
    assert not moved, f"{moved}\nIf this is meant: {RENEW}, and tell in the commit message why."
    for kind in COMPARED_KINDS:
        if kind in FILES[name]:
            assert_told(kind, estimates)


def assert_told(kind, estimates):
    """Within two points: the page is written anew with a change that moves more than a few runs."""
    report = evaluate(lambda row: prediction(estimates.of(row), row), kind)
    section = PAGE.split(f"## {TITLES[kind]}\n")[1]
    row = next(line for line in section.splitlines() if line.startswith("| estimates |"))
    runs, publishers, median, _, _, _, _, inside, by_publisher, _ = (cell.strip(" %") for cell in row.split("|")[2:-1])
    scores = report.overall
    shares = (scores.median, scores.coverage, scores.source_coverage)
    written = (float(median) / 100, float(inside) / 100, float(by_publisher) / 100)
    assert shares == pytest.approx(written, abs=0.02), f"{kind}: see the command at the head of docs/accuracy.md"
    assert int(publishers) == scores.sources, kind
    assert int(runs) == pytest.approx(scores.count, rel=0.05), kind


def test_a_difference_names_the_runs_and_by_how_much():
    old = {"a": dict.fromkeys(kept("finetune")["litgpt-hub-falcon-7b-lora-1xa10g"], "2.000")}
    new = {"a": {**old["a"], "step_seconds": "2.500", "watts": "2.001"}}
    text = difference("runs", old, new)
    assert "a: 2.000 -> 2.500 (+25.00%)" in text
    assert "median +25.00%" in text
    assert "watts" not in text
    assert "no longer predicted: a" in difference("runs", old, {})
    assert not difference("runs", old, old)
