"""Values of a plan find their way into a command: words, files, environment."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.runs.guard import filled_words, values_of
from capacity_tui.engine.runs.guard.placeholders import RewrittenFiles, environment_of, filled, filled_file
from capacity_tui.engine.solve import answer

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


def rewritten(folder, files, *words):
    copies = RewrittenFiles(files, folder, folder / "attempt-1")
    return [word.replace(str(folder / "attempt-1" / "files"), "COPY") for word in copies.words(words)]


def test_files_of_one_name_and_names_that_the_guard_uses_are_copies_of_their_own(values, tmp_path):
    for name in ("ds/config.json", "model/config.json", "stdout", "pid"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{name} {{training.micro_batch}}")
    files = RewrittenFiles(["ds/config.json", "model/config.json", "stdout", "pid"], tmp_path, tmp_path / "attempt-1")
    texts = files.texts(values)
    named = files.words(["cat", "ds/config.json", "model/config.json", "stdout", "pid"])[1:]
    assert [texts[type(tmp_path)(path)] for path in named] == [
        "ds/config.json 2", "model/config.json 2", "stdout 2", "pid 2"
    ]  # fmt: skip
    assert not set(texts) & {tmp_path / "attempt-1" / name for name in ("stdout", "pid")}


@pytest.mark.parametrize(
    ("word", "filled_word"),
    [
        ("ds/config.json", "COPY/1/config.json"),
        ("./ds/../ds/config.json", "COPY/1/config.json"),
        ("{folder}/ds/config.json", "COPY/1/config.json"),
        ("--config=./ds/config.json", "--config=COPY/1/config.json"),
        ("cat ds/config.json; cat 'ds/config.json'", "cat COPY/1/config.json; cat 'COPY/1/config.json'"),
        ("open('./ds/config.json')", "open('COPY/1/config.json')"),
    ],
)
def test_a_file_is_known_however_its_path_is_written(tmp_path, word, filled_word):
    assert rewritten(tmp_path, ["ds/config.json"], word.format(folder=tmp_path)) == [filled_word]


def test_a_file_that_no_word_names_is_refused(tmp_path):
    with pytest.raises(PlanError, match="no word of the command names this file"):
        rewritten(tmp_path, ["ds/config.json"], "cat", "config.json", "ds/config.json.bak")


HOSTILE = 'm";touch pwned;echo "it\'s $HOME.json'


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("a.json", '{"model": "{model.config}"}', lambda text: json.loads(text)["model"]),
        ("a.yaml", 'model: "{model.config}"', lambda text: yaml.safe_load(text)["model"]),
        ("a.yaml", "it's: 1\nmodel: '{model.config}'", lambda text: yaml.safe_load(text)["model"]),
        ("a.sh", "# it's a comment\nprintf %s {model.config}", "sh"),
        ("a.sh", 'printf %s "{model.config}"', "sh"),
        ("a.sh", "printf %s '{model.config}'", "sh"),
    ],
)
def test_values_in_files_are_quoted_by_the_kind_of_file(tmp_path, name, text, read):
    source = tmp_path / name
    source.write_text(text)
    found = filled_file(source, {"model.config": HOSTILE})
    if read == "sh":
        done = subprocess.run(["sh", "-c", found], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == HOSTILE
        assert not (tmp_path / "pwned").exists()
    else:
        assert read(found) == HOSTILE


def test_a_value_that_needs_quotes_is_refused_where_there_are_none(tmp_path):
    source = tmp_path / "a.yaml"
    source.write_text("model: {model.config}\nwhere: {model.name}\nlist: {a.b}\n")
    with pytest.raises(PlanError, match="needs quotes"):
        filled_file(source, {"model.config": HOSTILE, "model.name": "x", "a.b": "[a, b]"})
    found = filled_file(source, {"model.config": "my model", "model.name": "x/y-z", "a.b": "[a, b]"})
    assert found == "model: my model\nwhere: x/y-z\nlist: [a, b]\n"
