"""``configs -o``: beside each plan, the files that run it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from capacity_tui.engine.plan.files import load_plan
from capacity_tui.tui.cli import main

ASKED = ("configs", "--model", "gpt2-small", "--gpu", "2xrtx-4090", "--mode", "balanced", "-o")


def test_a_folder_beside_the_plan_runs_it(tmp_path: Path) -> None:
    assert main([*ASKED, str(tmp_path / "plans")]) == 0
    plan = load_plan(tmp_path / "plans" / "balanced.yaml")
    folder = tmp_path / "plans" / "balanced"
    launch = yaml.safe_load((folder / "accelerate.yaml").read_text("utf-8"))
    loop = yaml.safe_load((folder / "training_arguments.yaml").read_text("utf-8"))
    assert launch["num_processes"] == plan.hardware.devices
    batch = loop["per_device_train_batch_size"] * loop["gradient_accumulation_steps"] * launch["num_processes"]
    assert batch == plan.training.global_batch
    assert "PYTORCH_CUDA_ALLOC_CONF" in (folder / "environment.sh").read_text("utf-8")


def test_files_that_are_there_stay_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "balanced" / "environment.sh"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert main([*ASKED, str(tmp_path)]) != 0
    assert "is there already" in capsys.readouterr().err
    assert mine.read_text("utf-8") == "mine"
    assert main([*ASKED, str(tmp_path), "--force"]) == 0
    assert mine.read_text("utf-8") != "mine"


def test_a_plan_goes_to_its_own_framework(tmp_path: Path) -> None:
    assert main(["plan", "pretrain_70b_512_h100", "--frameworks", str(tmp_path / "run")]) == 0
    assert {file.name for file in (tmp_path / "run").iterdir()} == {"megatron.sh", "environment.sh"}


def test_one_folder_holds_one_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "transformer", "deep_learning", "--frameworks", str(tmp_path)]) == 2
    assert "one FILE" in capsys.readouterr().err
    assert main(["plan", "vllm_70b_4_h100", "--frameworks", str(tmp_path)]) == 0
    assert main(["plan", "vllm_70b_4_h100", "--frameworks", str(tmp_path)]) != 0
    assert "is there already" in capsys.readouterr().err
    assert main(["plan", "vllm_70b_4_h100", "--frameworks", str(tmp_path), "--force"]) == 0
