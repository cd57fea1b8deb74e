"""What a training is expected to teach: the published optimum, and that nothing of the same work is better."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import BEST_SIZE, BEST_TOKENS, LEAST_LOSS, LOSS, OVERTRAINING, figure, learned
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer

LAWS = load_catalog().scaling_laws
LAW = LAWS["besiroglu-2024"]


def estimated(model="llama-2-7b", task="train", **training):
    data = {"task": task, "model": {"name": model}, "hardware": {"name": "h100-sxm-80gb", "devices": 64}}
    return answer(plan_from_data({**data, "training": {"seq_len": 4096, "global_batch": 512, **training}})).estimate


def test_the_work_of_chinchilla_is_best_spent_on_chinchilla():
    found = learned(LAW, 70e9, 1.4e12)
    assert found[BEST_SIZE] == pytest.approx(70e9, rel=0.1)
    assert found[OVERTRAINING] == pytest.approx(1.0, rel=0.2)
    # The powers of the optimum with work: 0.5126 in the paper.
    grown = learned(LAW, 700e9, 1.4e12)
    assert grown[BEST_SIZE] / found[BEST_SIZE] == pytest.approx(10**0.5126, rel=1e-3)


def test_the_law_of_the_paper_itself_disagrees_with_chinchilla():
    found = learned(LAWS["hoffmann-2022"], 70e9, 1.4e12)
    assert found[BEST_SIZE] < 45e9
    assert found[LOSS] == pytest.approx(1.93, abs=0.02)


@given(st.floats(1e7, 1e12), st.floats(1e8, 1e14), st.floats(0.05, 20))
def test_no_other_size_learns_more_from_the_same_work(parameters, tokens, ratio):
    found = learned(LAW, parameters, tokens)
    assert LAW.irreducible < found[LEAST_LOSS] <= found[LOSS] * (1 + 1e-9)
    assert found[BEST_SIZE] * found[BEST_TOKENS] == pytest.approx(parameters * tokens)
    other = learned(LAW, found[BEST_SIZE] * ratio, found[BEST_TOKENS] / ratio)
    assert other[LOSS] >= found[LEAST_LOSS] * (1 - 1e-9)
    assert other[OVERTRAINING] == pytest.approx(ratio**-2, rel=1e-6)


def test_an_answer_says_what_is_learned():
    found = estimated(tokens=2e12)
    assert figure(found, LOSS).number == pytest.approx(2.067, abs=0.001)
    assert figure(found, OVERTRAINING).number > 10
    (note,) = (note for note in found.warnings if note.code == "tokens_per_parameter")
    assert "297 tokens a parameter" in note.detail and "26.4 B parameters on 510.3 B tokens" in note.detail
    usual = estimated(tokens=140e9)
    assert not any(note.code == "tokens_per_parameter" for note in usual.warnings)


def test_nothing_is_said_of_the_length_of_a_trial_of_some_steps():
    found = estimated(steps=30, global_batch=64, seq_len=64)
    assert figure(found, LOSS).number > 0
    assert not any(note.code == "tokens_per_parameter" for note in found.warnings)


@pytest.mark.parametrize(
    ("model", "task", "length"),
    [("mixtral-8x7b", "train", 1e12), ("llama-2-7b", "finetune", 1e9), ("llama-2-7b", "train", None)],
)
def test_the_law_speaks_of_dense_models_trained_from_the_start(model, task, length):
    found = figure(estimated(model, task, tokens=length), LOSS)
    assert found.value is None and "dense" in found.text
