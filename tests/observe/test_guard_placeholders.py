"""Values of a plan find their way into a command: words, files, environment."""

from __future__ import annotations

import pytest

from capacity_tui.engine.api import PlanError, answer, plan_from_text
from capacity_tui.engine.observe.guard.placeholders import environment_of, filled, filled_file, filled_words, values_of

PLAN = """
task: train
model: {name: llama-3.2-1b, spec: {layers: 4}}
training: {seq_len: 2048, micro_batch: 2, global_batch: 64, tokens: 2.0e9}
hardware: {name: rtx-4090, devices: 1}
"""


@pytest.fixture(scope="module")
def values():
    return values_of(answer(plan_from_text(PLAN, "plan.yaml")).plan, {"run.attempt": "2"})


def test_placeholders_are_keys_of_the_plan_in_any_part_of_a_word(values):
    words = ["python", "--bs={training.micro_batch}", "{training.seq_len}/{training.tokens}", "{model.spec.layers}"]
    assert filled_words(words, values) == ("python", "--bs=2", "2048/2000000000", "4")
    assert filled("{run.accumulation} {run.attempt} {parallelism.sequence_parallel}", values) == "32 2 false"


@pytest.mark.parametrize("text", ["{}", '{"a": {"b.c": 1}}', "${model.name}", "%{model.name}", "{step}", "{{ x.y }}"])
def test_braces_of_others_stay_as_they_are(values, text):
    assert filled(text, values) == text


def test_doubled_braces_stand_for_the_text_itself(values):
    assert filled("{{training.micro_batch}}", values) == "{training.micro_batch}"


@pytest.mark.parametrize(
    ("text", "said"),
    [("{training.micro_bach}", "{training.micro_batch} is a placeholder"), ("{training.steps}", "leaves it open")],
)
def test_what_cannot_be_filled_is_refused_by_name(values, text, said):
    with pytest.raises(PlanError, match=said):
        filled_words(["python", text], values)


def test_the_option_of_a_checkpoint_is_left_out_until_there_is_one(values):
    words = ["train", "--resume", "{run.checkpoint}", "--from={run.checkpoint}", "--go"]
    assert filled_words(words, values) == ("train", "--go")
    there = {**values, "run.checkpoint": "/c/7"}
    assert filled_words(words, there) == ("train", "--resume", "/c/7", "--from=/c/7", "--go")


def test_a_file_is_filled_and_stays_as_it_is(values, tmp_path):
    source = tmp_path / "train.yaml"
    source.write_text("batch: {training.micro_batch}\nresume: '{run.checkpoint}'\n")
    assert filled_file(source, values) == "batch: 2\nresume: ''\n"
    assert "{training.micro_batch}" in source.read_text()
    source.write_text("\nbatch: {training.nothing}\n")
    with pytest.raises(PlanError, match=r"train\.yaml:2: training\.nothing"):
        filled_file(source, values)


def test_the_environment_has_every_value_by_a_plain_name(values):
    found = environment_of(values)
    assert found["CAPACITY_TUI_TRAINING_MICRO_BATCH"] == "2"
    assert found["CAPACITY_TUI_RUN_ACCUMULATION"] == "32"
    assert "CAPACITY_TUI_TRAINING_STEPS" not in found
