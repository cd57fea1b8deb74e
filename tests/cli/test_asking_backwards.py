"""``need`` on the command line: the value on stdout, promised exit codes, one line for what makes no sense."""

from __future__ import annotations

import json
import re

import pytest

from capacity_tui.tui.cli import main, output

LINE = "llama-3.2-1b train 8xa100 2k 1B"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(("need", *arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def test_the_answer_is_the_plan_with_the_value(run):
    code, out, err = run(LINE, "--solve", "hardware.devices", "--limit", "time<=3h", "--format", "json")
    data = json.loads(out)
    assert code == 0 and "Traceback" not in err
    assert data["solve"] == "hardware.devices" and data["set"] == {"hardware.devices": data["value"]}
    assert data["result"]["plan"]["hardware"]["devices"] == data["value"]
    limit = data["limits"]["computation.estimated_train_time_seconds"]
    assert limit["holds"] and limit["value"] < limit["high"] <= limit["most"] == 3 * 3600
    assert data["result"]["computation"]["estimated_train_time_seconds"]["high"] == limit["high"]
    assert data["binding"] == data["neighbour"]["broken"][0]["figure"] == "computation.estimated_train_time_seconds"
    assert data["nearest"] is None
    assert data["evaluated"] > 1


def test_each_of_the_plans_that_a_line_compares_is_solved(run):
    code, out, _ = run("a10 vs a100 llama-3.2-1b lora", "--solve", "training.seq_len", "--format", "json")
    small, large = json.loads(out)
    assert code == 0 and (small["name"], large["name"]) == ("a10", "a100")
    assert small["value"] < large["value"]
    code, out, _ = run("a10 vs a100 llama-3.2-1b lora", "--solve", "training.seq_len")
    assert code == 0 and out.count("training.seq_len = ") == 2 and "Differs" in out


@pytest.mark.parametrize("solve", ["model.name", "hardware.devices", "training.micro_batch"])
def test_progress_says_how_many_values_are_tried_at_the_most(run, monkeypatch, solve):
    shown: list[str] = []
    monkeypatch.setattr(output.Progress, "show", lambda _, state: shown.append(state()))
    code, _, _ = run(LINE, "--solve", solve, "--limit", "time<=3h", "--limit", "memory<=100%")
    counts = [tuple(map(int, re.match(r"tried (\d+) of at most (\d+): ", line).groups())) for line in shown]
    assert code == 0 and [tried for tried, _ in counts] == list(range(1, len(counts) + 1))
    assert all(len(counts) <= most for _, most in counts)


def test_a_line_that_asks_is_answered_by_plan_as_by_need(run, capsys):
    assert main(("plan", "how many a100 to train llama-3.2-1b 2k 1B tokens in 3 hours", "--format", "json")) == 0
    asked = json.loads(capsys.readouterr().out)
    _, out, _ = run(
        "llama-3.2-1b train a100 2k 1B", "--solve", "hardware.devices", "--limit", "time<=3h", "--format", "json"
    )
    assert (asked["solve"], asked["value"]) == ("hardware.devices", json.loads(out)["value"])


def test_no_answer_is_exit_code_1_and_the_nearest(run):
    arguments = (LINE, "--solve", "hardware.devices", "--limit", "time<=3h", "--limit", "usd<=1")
    code, out, _ = run(*arguments, "--format", "json")
    data = json.loads(out)
    assert code == 1 and (data["value"], data["result"]) == (None, None)
    assert data["binding"] == data["nearest"]["broken"][0]["figure"] == "cost.usd"
    code, out, _ = run(*arguments)
    assert code == 1 and "keeps the limits" in out and "would do" in out


def test_a_table_begins_with_the_value(run):
    arguments = ("--limit", "time<=3h", "--vary", "training.checkpointing=full")
    code, out, _ = run(LINE, "--solve", "hardware.devices", *arguments)
    lines = out.splitlines()
    assert code == 0 and lines[0].startswith("hardware.devices = ")
    assert "training.checkpointing = full" in lines[0]
    assert any(line.startswith("next hardware.devices") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--solve", "hardware.devces"), "did you mean"),
        (("--solve", "hardware.devices", "--limit", "speed<=3"), "no figure is called"),
        (("--solve", "hardware.devices", "--limit", "time=3h"), "not a limit"),
        (("--solve", "hardware.devices", "--limit", "time<=soon"), "time"),
        (("--solve", "hardware.devices", "--goal", "nice"), "no figure is called"),
        (("--solve", "model.name", "--devices", "lots"), "hardware.devices"),
        ((), "--solve"),
    ],
)
def test_bad_input_is_one_line(run, arguments, words):
    code, out, err = run(LINE, *arguments)
    assert code == 2 and out == ""
    told = err.splitlines()
    assert words in told[-1] and "Traceback" not in err


@pytest.mark.parametrize(
    "figure", ["time", "training_time", "Training time", "computation.estimated_train_time_seconds"]
)
def test_a_figure_is_known_by_the_name_that_tables_show(figure: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["need", "full_finetune_8b", "--solve", "hardware.devices", "--limit", f"{figure}<=3h"]) == 0
    told = capsys.readouterr().out
    assert main(["need", "full_finetune_8b", "--solve", "hardware.devices", "--limit", "time<=3h"]) == 0
    assert told == capsys.readouterr().out
