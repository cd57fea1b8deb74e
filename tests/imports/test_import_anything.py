"""Whatever stands in a file of another tool: a plan, or one line that says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.imports import import_plan
from capacity_tui.engine.plan.options.tools import tools
from capacity_tui.tui.cli import main

TYPED = {"model.name": "llama-3.1-8b", "hardware.name": "h100-sxm-80gb", "hardware.devices": 8}
OPTIONS = sorted({(each.id, name) for each in tools().values() for name in each.options})
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
    st.sampled_from(["auto", "true", "bf16", "all", "-1", "0", "nvme", "cpu"]),
)  # fmt: skip


def tried(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    try:
        assert isinstance(import_plan([str(path)], TYPED).plan, Plan)
    except CapacityError as error:
        assert "\n" not in error.one_line()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(OPTIONS), VALUES), max_size=6), st.sampled_from(sorted(tools())))
def test_any_values_of_options_are_read_or_refused(tmp_path: Path, entries, owner: str) -> None:
    data: dict[str, object] = dict.fromkeys(tools()[owner].signs[:1], 1)
    for (_, name), value in entries:
        section = data
        *above, last = name.split(".")
        for part in above:
            inner = section.get(part)
            section[part] = inner if isinstance(inner, dict) else {}
            section = section[part]  # type: ignore[assignment]
        section[last] = value
    import yaml

    tried(tmp_path / "any.yaml", yaml.safe_dump(data, allow_unicode=True))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    tried(tmp_path / "any.txt", text.replace("\r", "").encode("utf-8", "ignore").decode())


@pytest.mark.parametrize("content", [b"\x80\x02}q\x00.", b"", b"\xff\xfe", b"{" * 500, b"[table\n", b"a = [1,"])
def test_garbage_is_one_line_and_exit_code_two(tmp_path: Path, content: bytes, capsys) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(content)
    assert main(["plan", "--import", str(path), "--model", "llama-3.1-8b", "--gpu", "h100-sxm"]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)


def test_a_pickle_is_refused_with_what_to_do(tmp_path: Path, capsys) -> None:
    path = tmp_path / "training_args.bin"
    path.write_bytes(b"\x80\x02")
    assert main(["plan", "--import", str(path), "--gpu", "h100-sxm"]) == 2
    assert "to_json_string" in capsys.readouterr().err


CALLS = (
    "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n",
    "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-4B')\n",
    "Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=2)).train()",
)
STARTED = "!swift sft --model Qwen/Qwen3-4B --per_device_train_batch_size {batch} \\\n  --train_type lora --dataset x"


@pytest.mark.parametrize(
    "cells",
    [
        [CALLS],
        ["%%writefile a.py\nx = (", "%%capture\n!pip install", CALLS],
        ["batch = 2", STARTED],
        ["batch = 2", f'{STARTED} --deepspeed \'{{"zero_optimization": {{"stage": 2}}}}\''],
        [(*CALLS[:2], "model?\n", CALLS[2])],
    ],
)
def test_notebooks_are_read_cell_by_cell(alone, cells) -> None:
    data = [{"cell_type": "markdown", "source": ["# Title"]}, *({"cell_type": "code", "source": one} for one in cells)]
    plan = alone("train.ipynb", json.dumps({"cells": data, "nbformat": 4})).plan
    assert (plan.model.name, plan.training.micro_batch) == ("qwen3-4b", 2)


@pytest.mark.parametrize(
    "given", ["batch, steps = 2, 16\nbatch, steps = steps, batch", "*rest, batch, steps = 1, 4, 16, 2"]
)
def test_values_that_are_given_together_are_each_their_own(alone, given: str) -> None:
    call = CALLS[2].replace("size=2", "size=batch, gradient_accumulation_steps=steps")
    plan = alone("train.py", "".join((CALLS[0], given, "\n", CALLS[1], call))).plan
    assert (plan.training.micro_batch, plan.training.global_batch) == (16, 16 * 2 * 8)


def test_a_model_below_the_folder_of_results_is_none_of_them(alone) -> None:
    arguments = "arguments = TrainingArguments(output_dir='/workspace', per_device_train_batch_size=2)\n"
    model, train = CALLS[1].replace("Qwen/", "/workspace/"), "Trainer(model=model, args=arguments).train()"
    assert alone("train.py", "".join((CALLS[0], arguments, model, train))).plan.model.name == "qwen3-4b"


@pytest.mark.parametrize("text", ['{"cells": 7}', '{"cells": [7]}', '{"cells": [{"cell_type": "code"}]}'])
def test_a_broken_notebook_is_refused(alone, text: str) -> None:
    with pytest.raises(CapacityError):
        alone("train.ipynb", text)
