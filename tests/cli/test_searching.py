"""``search`` on the command line: what scripts read, what people see, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capacity_tui.tui.cli import main

LINE = "llama-3.1-8b lora h100 4k 10M"
SMALL = ["--vary", "micro_batch=1,2", "--vary", "tp=1,2"]


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["search", *arguments, "--format", "json"]) == 0
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    return answer


def test_scripts_read_what_was_tried_and_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    answer = found(capsys, LINE, *SMALL, "--devices", "1..2", "--limit", "memory<=95%", "--goal", "usd", "--top", "2")
    top, rejected = answer["top"], answer["rejected"]
    assert isinstance(top, list) and isinstance(rejected, list)
    assert answer["evaluated"] == answer["valid"] + sum(each["count"] for each in rejected)  # type: ignore[operator]
    assert [each["rule"] for each in rejected] == ["tp x pp x cp does not divide the devices"]
    for each in top:
        assert each["figures"]["memory.utilization_percent"]["high"] <= 95
        assert each["fits"]
    assert top[0]["figures"]["cost.usd"]["value"] <= top[-1]["figures"]["cost.usd"]["value"]


def test_the_best_is_repeated_by_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    best = found(capsys, LINE, *SMALL, "--devices", "1..2")["top"][0]  # type: ignore[index]
    settings = [word for key, value in best["set"].items() for word in ("--set", f"{key}={json.dumps(value)}")]
    assert main(["plan", LINE, *settings, "--format", "json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    step = planned["computation"]["step_seconds"]
    assert step["value"] == pytest.approx(best["figures"]["computation.step_seconds"]["value"], rel=1e-9)
    # To the last digit: bytes are whole in both.
    assert planned["memory"]["reserved_bytes"] == best["figures"]["memory.reserved_bytes"]


def test_a_front_stands_behind_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    answer = found(capsys, LINE, *SMALL, "--vary", "checkpointing=none,full", "--pareto", "time,memory", "--top", "1")
    top, pareto = answer["top"], answer["pareto"]
    assert isinstance(top, list) and isinstance(pareto, list)
    assert len(pareto) > 1
    for place, each in enumerate(top):
        assert (each["dominated_by"] is None) == (place in pareto)


def test_people_see_the_best_and_what_excluded_the_rest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "answer.txt"
    assert main(["search", LINE, *SMALL, "--devices", "1..2", "-o", str(out)]) == 0
    text = out.read_text("utf-8")
    assert "configurations are possible" in text
    assert "tp x pp x cp does not divide the devices" in text
    assert main(["search", LINE, *SMALL, "--limit", "time<=1s"]) == 0
    assert "nothing fits and keeps every limit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--vary", "tp=1..x"], "parallelism.tp: not allowed: 'x'"),
        (["--vary", "tp=4..1"], "the range ends before it begins"),
        (["--vary", "tp"], "not an axis"),
        (["--vary", "wibble=1"], "no field is called"),
        (["--vary", "tensor=1"], "did you mean parallelism.tp?"),
        (["--vary", "precision=fp9"], "did you mean fp8?"),
        (["--vary", "tp=auto"], "auto is not a value to try"),
        (["--vary", "tp=1,2", "--vary", "parallelism.tp=4"], "varies twice"),
        (["--vary", "learning_rate=1..9:0"], "not a step"),
        (["--limit", "time"], "not a limit"),
        (["--limit", "wibble<=3"], "no figure is called"),
        (["--limit", "time<=soon"], "write a time such as 24h"),
        (["--goal", "bottleneck.ridge_point"], "neither more nor less of this is better"),
        (["--pareto", ","], "no figures"),
        (["--hardware", "h10O"], "no hardware is called 'h10O'"),
        (["--devices", "0..4"], "hardware.devices: not allowed: 0"),
        (["--vary", "model.name=llamma"], "no model is called 'llamma'"),
        (["--top", "0"], "--top"),
        (["--set", "training.tokens=null", "--limit", "usd<=200"], "the length of the job is open"),
    ],
)
def test_nonsense_is_refused_in_one_line(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--model", "llama-3.1-8b", "--gpu", "h100", *arguments]) == 2
    assert told in capsys.readouterr().err.splitlines()[-1]


def test_a_line_without_hardware_is_served_as_what_is_tried_is(capsys: pytest.CaptureFixture[str]) -> None:
    def best(hardware: str) -> dict[str, Any]:
        line = "serve llama-3.1-8b 2 req/s"
        asked = ["--hardware", hardware, "--devices", "1", "--top", "1", "--format", "json"]
        assert main(["search", line, *asked]) == 0
        told = capsys.readouterr()
        assert "vllm" in told.err and "this machine" not in told.err
        (found,) = json.loads(told.out)["top"]
        return dict(found)

    among = best("lambda")
    assert best(among["set"]["hardware.name"])["figures"] == among["figures"]


def test_prices_of_several_lists_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["search", "llama-3.1-8b lora 4k 10M", "--hardware", "lambda-gpu-1x-gh200,runpod-h100-sxm", "--goal", "usd"]
    assert main([*asked, "--format", "json"]) == 0
    sources = {
        row["price_source"].partition(",")[0].rpartition(" ")[2] for row in json.loads(capsys.readouterr().out)["top"]
    }
    assert sources == {"Lambda", "RunPod"}
    assert main(asked) == 0
    shown = " ".join(capsys.readouterr().out.split())
    prices = shown[shown.index(" prices: ") :]
    assert "Lambda" in prices and "RunPod" in prices and "(row" in prices
