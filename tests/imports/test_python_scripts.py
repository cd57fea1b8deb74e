"""Python scripts: the calls that say a plan are read, and nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import PlanError


def test_a_script_that_fine_tunes_says_its_plan(read) -> None:
    found = read("train_qlora.py", model__name=None, hardware__devices=2)
    training = found.plan.training
    assert found.plan.model.name == "qwen2.5-7b"
    assert (training.method, training.quantization, training.optimizer) == ("qlora", "nf4", "adamw8bit")
    assert training.adapter is not None
    assert (training.adapter.rank, training.adapter.targets) == (64, "query+value")
    assert (training.seq_len, training.micro_batch, training.global_batch, training.steps) == (4096, 2, 32, 1000)
    assert (training.attention, training.precision, training.framework) == ("flash2", "bf16", "trl")
    assert found.settings["training.adapter.rank"].place.line == 17
    assert found.clashes == ()
    assert not [remark for reading in found.readings for remark in (*reading.unknown, *reading.unmodelled)]


def test_a_script_that_serves_says_its_plan(written) -> None:
    text = 'from vllm import LLM\n\nllm = LLM("gpt2", tensor_parallel_size=2, max_model_len=1024, dtype="float16")\n'
    plan = written("serve.py", text, model__name=None).plan
    assert (plan.task, plan.parallelism.tp, plan.inference.weights) == ("infer", 2, "fp16")


def test_what_only_running_tells_stays_open(written) -> None:
    text = "import sys\n\nTrainingArguments(per_device_train_batch_size=int(sys.argv[1]), bf16=True)\n"
    assert written("train.py", text).plan.training.precision == "bf16"


def test_a_script_is_never_run(written, tmp_path: Path) -> None:
    text = f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\nTrainingArguments(bf16=True)\n"
    written("train.py", text)
    assert not (tmp_path / "ran").exists()


def test_a_script_of_something_else_is_refused(written) -> None:
    with pytest.raises(PlanError, match="no call of a known tool"):
        written("train.py", "import torch\n\nprint(torch.ones(2))\n")
