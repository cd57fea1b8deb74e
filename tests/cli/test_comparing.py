"""``plan --compare``: plans side by side, in every form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from capacity_tui.engine.plan.files import load_plan
from capacity_tui.engine.solve import answer
from capacity_tui.tui.cli import main

PLAN = "task: finetune\nmodel: {{name: llama-3.2-1b}}\ntraining: {{method: {method}, tokens: 1.0e+7, micro_batch: 2}}\n"
HARDWARE = "hardware: {name: rtx-4090}\n"


@pytest.fixture
def plans(tmp_path: Path) -> tuple[Path, Path]:
    found = tmp_path / "whole.yaml", tmp_path / "adapter.yaml"
    for path, method in zip(found, ("full", "lora"), strict=True):
        path.write_text(PLAN.format(method=method) + HARDWARE, encoding="utf-8")
    return found


def compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["plan", *map(str, arguments), "--compare"]) == 0
    return capsys.readouterr().out


def test_json_has_figures_by_result_key_with_their_differences(
    plans: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(compared(capsys, *plans, "--format", "json"))
    assert (data["plans"], data["baseline"]) == (["whole", "adapter"], "whole")
    assert data["differs"]["training.method"] == ["full", "lora"]
    assert "training.micro_batch" not in data["differs"], "it is the same in both"
    alone = [answer(load_plan(path)).estimate for path in plans]
    memory = data["figures"]["memory.reserved_bytes"]
    values = [each.memory.reserved_bytes.value for each in alone]
    assert [each["value"] for each in memory] == pytest.approx(values)
    assert memory[0]["low"] <= memory[0]["value"] <= memory[0]["high"]
    assert memory[0]["difference"] == 0
    assert memory[1]["difference"] == pytest.approx(values[1] / values[0] - 1)
    assert data["verdicts"] == [each.verdict.value for each in alone]


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_tables_say_what_differs_and_by_how_much(
    form: str, plans: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    text = compared(capsys, *plans, "--format", form)
    assert "Method" in text and "lora" in text
    assert "Micro batch" not in text
    row = next(line for line in text.splitlines() if "peak memory" in line and "allocated" not in line)
    assert "GiB" in row and "(-" in row


def test_the_output_can_say_the_form(plans: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "both.yaml"
    assert main(["plan", *map(str, plans), "--compare", "-o", str(output)]) == 0
    assert yaml.safe_load(output.read_text("utf-8"))["plans"] == ["whole", "adapter"]


def test_one_plan_on_several_devices(plans: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (plans[0], "--gpu", "h100-sxm-80gb", "--gpu", "2xrtx-4090", "--format", "json")
    data = json.loads(compared(capsys, *arguments))
    assert data["plans"] == ["h100-sxm-80gb", "2xrtx-4090"]
    assert data["differs"]["hardware.name"] == ["h100-sxm-80gb", "rtx-4090"]


def test_configurations_say_what_their_modes_are_and_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configs", "--model", "gpt2", "--gpu", "rtx-4090"]) == 0
    told = capsys.readouterr().out
    assert "conservative: up to 50 % of memory and 40 % of the power limit; " in told
    assert "of the power limit, the mode allows 40 %: " in told


def test_plans_of_different_kinds_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    text = compared(capsys, "qlora_rtx_4090", "vllm_70b_4_h100", "linear_regression")
    assert "–" in text


def test_plans_pinned_beside_a_plan_are_columns_too(
    plans: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = plans[1].read_text("utf-8").replace("\n", "\n    ").rstrip()
    plans[0].write_text(f"{plans[0].read_text('utf-8')}scenarios:\n  A:\n    {scenario}\n", encoding="utf-8")
    data = json.loads(compared(capsys, plans[0], "--format", "json"))
    assert data["plans"] == ["whole", "A"]
    assert data["differs"]["training.method"] == ["full", "lora"]


def test_equal_names_are_told_apart(plans: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(compared(capsys, plans[0], plans[0], "--format", "json"))
    assert data["plans"] == ["whole (1)", "whole (2)"]
    assert data["differs"] == {}


@pytest.mark.parametrize(
    "arguments",
    [["qlora_rtx_4090", "--compare"], ["qlora_rtx_4090", "gpt2_rtx_3060", "--compare", "--explain", "cost.usd"]],
)
def test_what_cannot_be_compared_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *arguments]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_plan_that_is_wrong_leaves_no_half_comparison(
    plans: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("model: {name: gpt2}\ntraining: {sequence: 5}\n", encoding="utf-8")
    assert main(["plan", str(plans[0]), str(wrong), "--compare"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "wrong.yaml:2" in told.err


def test_several_gpus_are_shown_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "gpt2_rtx_3060", "--gpu", "A100_80GB_fp16", "--gpu", "H100_80GB_fp16"]) == 0
    assert capsys.readouterr().out.split()[:3] == ["Plans", "A100_80GB_fp16", "H100_80GB_fp16"]


def test_verbose_draws_memory_time_and_the_roofline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "gpt2_rtx_3060", "--set", "report.detailed_breakdown=false", "--verbose"]) == 0
    told = capsys.readouterr().out
    assert all(words in told for words in ("weights", "At the peak", "Step: ", "ridge at"))


def test_one_line_compares_what_stands_around_versus(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "lora llama-3.2-1b 10M tokens rtx 6000 ada vs l40s", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["plans"] == ["rtx 6000 ada", "l40s"]
    assert data["differs"] == {"hardware.name": ["rtx-6000-ada", "l40s"]}


def test_a_comparison_says_where_less_is_trained_than_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "3090 or 8xA100 for mistral 7b finetune"]) == 0
    assert "Only lora fits on 3090: say lora to compare the same training" in capsys.readouterr().out


def test_a_limit_that_holds_is_shown_and_memory_that_nobody_limited_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "train qwen2.5 1.5B 3B tokens 4 H100 in less than a day", "--brief"]) == 0
    out = capsys.readouterr().out
    assert "time ≤ 1 d" in out and "holds" in out
    assert "memory ≤" not in out
