"""The table of figures is whole: every key has one row and one name, and every row is explained in plain English."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import get_args

import pytest

from capacity_tui.engine.estimate import METRICS, PARTS, Part, figure_keys, figure_text, usual_words
from capacity_tui.engine.estimate.figures.values import figure_words
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import all_fields
from capacity_tui.engine.plan.files import yaml_text
from capacity_tui.engine.present import to_json
from capacity_tui.engine.present.frameworks.exports import as_yaml
from capacity_tui.engine.present.results import to_builtins

FIGURES = (*METRICS, *(f"{group}.{part}" for group, parts in PARTS.items() for part in parts))


@pytest.mark.parametrize("key", FIGURES)
def test_a_figure_is_explained_in_two_sentences(key: str) -> None:
    assert len(re.findall(r"[.!](?:\s|$)", figure_text(key))) == 2
    assert len(figure_text(key)) < 260


def test_every_figure_has_a_name_and_every_name_a_figure() -> None:
    assert set(Figure) == set(FIGURES)
    assert PARTS["computation.parts"] == get_args(Part)


def test_every_field_has_a_name_and_every_name_a_field() -> None:
    assert set(Key) == set(all_fields())
    assert not set(Key) & set(Figure)


def test_names_are_keys_in_capitals() -> None:
    assert all(member.name == member.value.replace(".", "_").upper() for member in Key)
    groups = ("computation", "infer", "parts")
    for member in Figure:
        assert member.name == "_".join(word for word in member.value.split(".") if word not in groups).upper()


def test_names_are_plain_texts_in_files() -> None:
    data = {Key.TRAINING_SEQ_LEN: Figure.COST_USD}
    assert yaml_text(data) == as_yaml((), (), data) == "training.seq_len: cost.usd\n"
    assert json.loads(to_json(to_builtins(data))) == {"training.seq_len": "cost.usd"}


def test_names_cost_no_library() -> None:
    code = "import sys, capacity_tui.engine.keys; print(*{'numpy', 'pydantic', 'yaml'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("task", ["train", "infer"])
def test_what_tables_call_a_figure_and_its_short_words_name_it(task: str) -> None:
    for label in {usual_words(metric.label) for metric in METRICS.values()} - {*figure_words(task)}:
        assert usual_words(METRICS[figure_keys(label, task)[0]].label) == label
    for word, keys in figure_words(task).items():
        assert figure_keys(word, task) == keys


def test_of_figures_with_one_word_a_percentage_is_meant_first() -> None:
    assert figure_keys("memory") == (Figure.MEMORY_UTILIZATION_PERCENT, Figure.MEMORY_RESERVED_BYTES)
