"""Plans without a file: the short flags, and one line in quotes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capacity_tui.tui.cli import main

FLAGS = ["--model", "llama-3.1-70b", "--task", "lora", "--gpu", "8xH100-SXM", "--seq", "4096", "--tokens", "50M"]


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["plan", *arguments, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_flags_and_a_line_say_the_same_plan(capsys: pytest.CaptureFixture[str]) -> None:
    by_flags = result(capsys, *FLAGS)
    assert by_flags == result(capsys, "llama-3.1-70b lora 8xh100 4k 50M")
    plan = by_flags["plan"]
    assert isinstance(plan, dict)
    assert plan["training"]["method"] == "lora"
    assert (plan["training"]["seq_len"], plan["training"]["tokens"]) == (4096, 50e6)
    assert plan["hardware"]["devices"] == 8


def test_a_line_needs_no_spaces_where_its_language_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "8卡4090能全参微调qwen2.5-7b吗，序列长度4096"]) == 0
    assert "qwen2.5-7b, finetune, 8 x rtx-4090" in capsys.readouterr().out


def test_what_a_line_guesses_stands_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "lama-3.1-8b train 8xh100"]) == 0
    told = capsys.readouterr()
    assert "assumed: lama-3.1-8b: llama-3.1-8b is the nearest name" in told.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("largest qwen", "the best of a family is no plan"),
        ("do i need fp8", "with it, or without it?"),
        ("pln.yaml", "No such file or directory"),
        ("my pln.yaml", "No such file or directory"),
        ("模型.yaml", "模型.yaml"),
    ],
)
def test_a_line_with_only_a_fault_shows_it_and_a_mistyped_path_is_one(
    text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", text]) != 0
    assert words in capsys.readouterr().err


def test_what_means_nothing_in_a_line_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    text = "lora llama-3.1-8b on a 4090 as in getting_start 4711"
    assert main(["plan", text]) != 0
    assert "`--leave-out` plans without getting_start, 4711" in capsys.readouterr().err
    assert main(["plan", text, "--leave-out"]) == 0
    shown = capsys.readouterr()
    assert "llama-3.1-8b, finetune, 1 x rtx-4090" in shown.out
    assert "not understood, and left out: getting_start, 4711" in shown.err


def test_what_contradicts_itself_is_not_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "lora llama-3.1-8b on a 4090, rank 16, rank 32 4711", "--leave-out"]) != 0
    shown = capsys.readouterr().err
    assert "given twice" in shown
    assert "--leave-out" not in shown


def test_flags_stand_over_what_a_line_says_and_nothing_is_guessed_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "lora llama-70b hardware.per_node=2 on 4 a100, 50M tokens", "--gpu", "8xh100", "--seq", "2k",
                 "--model", "llama-3.1-8b", "--format", "json"]) == 0  # fmt: skip
    told = capsys.readouterr()
    plan = json.loads(told.out)["plan"]
    assert (plan["model"]["name"], plan["task"]) == ("llama-3.1-8b", "finetune")
    assert plan["hardware"] == result(capsys, *FLAGS)["plan"]["hardware"]
    assert (plan["training"]["seq_len"], plan["training"]["tokens"]) == (2048, 50e6)
    assert told.err == ""


def test_the_model_of_a_line_without_one_is_the_largest_on_the_hardware_of_the_flag(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert result(capsys, "serve prompt 4k", "--gpu", "8xh100") == result(capsys, "serve prompt 4k 8xh100")


def test_flags_change_a_file_that_is_named_too(capsys: pytest.CaptureFixture[str]) -> None:
    changed = result(capsys, "qlora_rtx_4090", "--seq", "1k", "--gpu", "rtx-5090")["plan"]
    assert isinstance(changed, dict)
    assert changed["training"]["seq_len"] == 1024
    assert changed["hardware"]["name"] == "rtx-5090"
    assert changed["training"]["method"] == "qlora"


@pytest.mark.parametrize("command", ["plan", "validate", "configs"])
def test_every_command_that_takes_a_plan_takes_the_flags(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--model", "smollm2-135m", "--gpu", "rtx-4090"]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["plan"], "--model"),
        (["plan", "--model", "llama-3.1-70q"], "nearest known: llama"),
        (["plan", "--model", "llama-3.1-8b", "--task", "lorra"], "did you mean lora?"),
        (["plan", "--model", "llama-3.1-8b", "--gpu", "8xh10O"], "no hardware is called"),
        (["plan", "--model", "llama-3.1-8b", "--seq", "long"], "training.seq_len"),
        (["plan", "llama-3.1-8b train wibble"], "'wibble' is not a model, device or option"),
        (["validate", "llama-3.1-8b train tp 3 8xh100"], "parallelism: tp x pp"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert any(told in line for line in lines)
    assert not any("Traceback" in line for line in lines)


def test_a_file_with_spaces_in_its_name_stays_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my plan").write_text("model: {name: smollm2-135m}\nhardware: {name: rtx-4090}\n")
    assert result(capsys, "my plan")["plan"]["model"]["name"] == "smollm2-135m"


def test_the_name_of_a_model_alone_is_told_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "meta-llama/Llama-3.1-8B"]) == 2
    assert "it is a model: say what is done with it" in capsys.readouterr().err


def test_a_price_that_nobody_knows_is_said_to_be_missing(capfd: pytest.CaptureFixture[str]) -> None:
    main(["plan", "gpt2 train rtx 3060 1M"])
    line = next(line for line in capfd.readouterr().out.splitlines() if "cost per hour" in line)
    assert "n/a (no price known)" in line


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_an_answer_is_read_as_its_plan(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / f"answer.{form}"
    assert main(["plan", "qwen2.5-7b lora l40s 4k 50M", "--format", form, "-o", str(written)]) == 0
    capsys.readouterr()
    assert result(capsys, str(written))["memory"] == result(capsys, "qwen2.5-7b lora l40s 4k 50M")["memory"]
    assert main(["validate", str(written)]) == 0


def test_a_fault_in_the_plan_of_an_answer_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "answer.yaml"
    written.write_text(
        "plan:\n  model: {name: gpt2}\n  hardware: {name: rtx-4090, devics: 2}\nfits: true\nverdict: fits\n"
    )
    assert main(["validate", str(written)]) == 2
    assert "answer.yaml:3: hardware.devics" in capsys.readouterr().err


def test_a_line_without_hardware_is_about_the_first_that_a_search_tries(capsys: pytest.CaptureFixture[str]) -> None:
    line = "serve qwen2.5-7b 32 users 1k input 300 output"
    assert main(["search", line, "--hardware", "l40s,a100-80gb", "--goal", "usd", "--top", "1"]) == 0
    assert "engine: vllm" in capsys.readouterr().err


def test_time_and_cost_stand_over_numbers_of_devices(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    counts = ["--scaling", "--set", "scalability.device_counts=[64,256]", "--no-history"]
    assert main(["plan", "llama-3.1-70b train 64xh100 1T", *counts]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(index for index, line in enumerate(lines) if line.split()[:2] == ["devices", "batch"])
    assert lines[start].split()[:5] == ["devices", "batch", "step", "time", "cost"]
    few, many = lines[start + 2 : start + 4]
    assert (few.split()[0], many.split()[0]) == ("64", "256") and "$" in few and "$" in many
