"""Predictions of all published runs stay what they are until someone changes them on purpose."""

import pytest
from predictions import FILES, RENEW, difference, kept, predicted


@pytest.mark.parametrize("name", FILES)
def test_predictions_stay(name):
    moved = difference(name, kept(name), predicted(name))
    assert not moved, f"{moved}\nIf this is meant: {RENEW}, and tell in the commit message why."


def test_a_difference_names_the_runs_and_by_how_much():
    old = {"a": dict.fromkeys(kept("finetune")["litgpt-hub-falcon-7b-lora-1xa10g"], "2.000")}
    new = {"a": {**old["a"], "step_seconds": "2.500", "watts": "2.001"}}
    text = difference("runs", old, new)
    assert "a: 2.000 -> 2.500 (+25.00%)" in text
    assert "median +25.00%" in text
    assert "watts" not in text
    assert "no longer predicted: a" in difference("runs", old, {})
    assert not difference("runs", old, old)
