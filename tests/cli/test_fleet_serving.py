"""``fleet serve`` on the command line: what scripts read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity_tui.tui.cli import main

PLAN = ("llama-3.1-8b serve lambda-gpu-1x-a100-sxm4", "--set", "inference.output_tokens=32")


def test_what_nothing_keeps_ends_with_a_code_and_the_same_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "serve", *PLAN, "--rate", "2", "--ttft", "1us", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["replicas"] is None and found["instance"] is None
    assert found["failing"][0]["instance"] == "lambda-gpu-1x-a100-sxm4"


def test_a_load_below_what_one_replica_answers_takes_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "serve", *PLAN, "--rate", "1", "--ttft", "2s", "--tpot", "50ms", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["replicas"] == 1 and found["instances"] == 1
    assert found["ttft"]["value"] <= found["ttft"]["limit"] == 2.0
    assert found["usd_per_million_tokens"] > 0
    assert found["batch"] >= 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ttft", "2s"), "no rate"),
        (("--rate", "2"), "no limit"),
        (("--rate", "x", "--ttft", "2s"), "x"),
        (("--rate", "-1", "--ttft", "2s"), "above 0"),
        (("--rate", "2", "--ttft", "2 parsecs"), "parsecs"),
        (("--rate", "2", "--ttft", "0"), "above 0"),
        (("--rate", "2", "--ttft", "2s", "--percentile", "200"), "percentile"),
        (("--rate", "2", "--ttft", "2s", "--load", "tomorrow"), "no load"),
        (("--rate", "2", "--ttft", "2s", "--hardware", "p99.huge"), "p99.huge"),
        (("--rate", "2", "--ttft", "2s", "--scale-down", "-5s"), "-5"),
    ],
)
def test_options_that_make_no_sense_are_one_line(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    assert main(["fleet", "serve", *PLAN, *options]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert said in told[-1]
    # The line before it tells which engine the plan's words were understood as.
    assert len(told) == 2


def test_a_load_file_with_a_fault_is_named_with_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    file.write_text("hour,rate\n0,2\n1,many\n")
    assert main(["fleet", "serve", *PLAN, "--rate", "2", "--ttft", "2s", "--load", str(file)]) == 2
    assert "day.csv:3" in capsys.readouterr().err


def test_a_line_without_hardware_chooses_among_what_can_be_rented(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity_tui.tui.cli.plan.fleet_jobs.RENTED", ("lambda",))
    assert main(["fleet", "serve", "serve llama-3.1-8b 2 req/s ttft 2s", "--format", "json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["instance"].startswith("lambda-") and "vllm" in told.err
