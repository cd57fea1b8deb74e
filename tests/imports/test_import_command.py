"""``--import`` wherever a plan is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity_tui.tui.cli import main

SAMPLES = Path(__file__).parent / "samples"
FILES = ["--import", str(SAMPLES / "training_args.yaml")]


def test_a_plan_is_imported_and_what_to_know_of_it_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *FILES, "--gpu", "8xh100-sxm", "--seq", "4096", "--format", "json"]) == 0
    told = capsys.readouterr()
    plan = json.loads(told.out)["plan"]
    assert (plan["training"]["micro_batch"], plan["training"]["seq_len"], plan["hardware"]["devices"]) == (4, 4096, 8)
    assert "ds_zero3_offload.json (DeepSpeed 0.19)" in told.err
    assert "assumed" not in told.err


def test_one_line_beside_a_file_says_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "llama-3.1-8b 4xa100 2k", *FILES, "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["model"]["name"], plan["hardware"]["devices"]) == ("llama-3.1-8b", 4)
    assert plan["training"]["seq_len"] == 2048


def test_a_plan_beside_a_file_says_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "pretrain_70b_512_h100", *FILES, "--set", "training.micro_batch=2", "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["hardware"]["devices"], plan["training"]["micro_batch"]) == (512, 2)
    assert plan["parallelism"]["zero"] == 3


@pytest.mark.parametrize(
    ("arguments", "says"), [((), "no hardware is named"), (("--gpu", "h10O"), "no hardware is called")]
)
def test_what_is_missing_or_wrong_is_one_line(arguments, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *FILES, *arguments]) == 2
    assert says in capsys.readouterr().err.splitlines()[-1]


def test_a_fault_that_only_the_estimate_finds_has_the_options_place(tmp_path: Path, capsys) -> None:
    (tmp_path / "acc.yaml").write_text(
        "distributed_type: FSDP\nnum_machines: 1\nnum_processes: 6\n"
        "parallelism_config:\n  parallelism_config_tp_size: 3\n"
    )
    path = str(tmp_path / "acc.yaml")
    assert main(["plan", "--import", path, "--model", "llama-3.1-8b", "--gpu", "h100-sxm"]) == 2
    assert f"{path}:5: parallelism_config.parallelism_config_tp_size: tensor parallelism" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "--vary", "training.micro_batch=1,2", "--format", "json"),
        ("need", "--solve", "training.micro_batch", "--limit", "memory<=95%", "--format", "json"),
        ("sensitivity", "--of", "cost.usd", "--format", "json"),
        ("validate",),
    ],
)
def test_every_command_that_reads_a_plan_takes_files_of_other_tools(arguments, capsys) -> None:
    command, *rest = arguments
    code = main([command, *FILES, "--gpu", "8xh100-sxm", "--seq", "1k", "--tokens", "50M", *rest])
    told = capsys.readouterr()
    assert (code, "DeepSpeed" in told.err) == (0, True)
    assert told.out


def test_a_device_of_a_file_that_nobody_knows_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = tmp_path / "theirs.yml"
    named.write_text((SAMPLES / "estimate_train_time.yml").read_text().replace("NVIDIAA100-SXM4-80GB", "NVIDIAFoo"))
    assert main(["plan", "--import", str(named)]) == 2
    assert f"{named}:2: gpu_name: no hardware is called 'NVIDIAFoo'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "validate"])
def test_a_file_of_another_tool_in_place_of_a_plan_is_told_to_be_one(command: str, capsys) -> None:
    theirs = str(SAMPLES / "estimate_train_time.yml")
    assert main([command, theirs]) == 2
    told = f"{theirs}: a configuration of estimate-train-time, not a plan; commands read it with --import {theirs}"
    assert told in capsys.readouterr().err


def test_a_model_of_sizes_has_the_context_that_it_is_trained_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(SAMPLES / "estimate_train_time.yml")]) == 0
    assert "Contradicts itself: nothing" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("plan", "--import"), ("audit",)])
def test_a_file_of_no_known_tool_is_not_taken_for_one_by_the_names_of_its_sections(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = tmp_path / "t.yaml"
    unknown.write_text("training:\n  epochs: 3\n  batch: 64\nmodel:\n  hf: x\n")
    assert main([*arguments, str(unknown), "--model", "llama-3.1-8b", "--gpu", "8xh100"]) == 2
    assert "of no known tool" in capsys.readouterr().err
    assert main(["plan", str(unknown)]) == 2
    assert "neither a plan nor a configuration of a known tool" in capsys.readouterr().err
