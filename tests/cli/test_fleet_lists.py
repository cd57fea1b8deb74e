"""``workloads``, ``fleet sets`` and ``fleet sizes``: what instances are compared for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import Catalog
from capacity_tui.tui.cli import main

Run = Callable[..., str]

SETS = {
    "basic_demos": 2,
    "cost_optimization_focus": 3,
    "performance_focus": 2,
    "comprehensive_suite": 4,
    "research_academic": 2,
}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("COLUMNS", raising=False)

    def command(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    return command


def test_five_sets_say_what_they_are_for_and_hold_known_workloads(run: Run) -> None:
    rows = {row["id"]: row for row in json.loads(run("fleet", "sets", "--format", "json"))}
    assert {name: len(row["workloads"]) for name, row in rows.items()} == SETS
    assert all(row["purpose"] and row["use_case"] for row in rows.values())
    known = {row["id"] for row in json.loads(run("workloads", "--format", "json"))}
    assert {each for row in rows.values() for each in row["workloads"]} == known
    table = run("fleet", "sets")
    assert "Organizations prioritizing cost savings" in table
    assert "research_training_g6e, batch_inference_g5" in table


def test_workloads_say_what_runs_where_and_what_is_expected(run: Run) -> None:
    rows = {row["id"]: row for row in json.loads(run("workloads", "--list", "--format", "json"))}
    assert len(rows) == 7
    serving = rows["inference_small_p5"]
    assert serving["scenario"] == {
        "current_instance": "P5",
        "current_gpu_count": 1,
        "workload_type": "infer",
        "model_size": "small",
        "monthly_hours": 720,
        "use_spot": False,
        "precision": "fp16",
    }
    assert serving["expected_outcome"] == "Significant cost savings with G6/G6e instances"
    assert "over_provisioned" in serving["tags"]
    assert "current_gpu_count 1, workload_type infer" in run("workloads", "--details", "Inference small P5")
    only = json.loads(run("workloads", "--filter", "train g6e", "--format", "json"))
    assert [row["id"] for row in only] == ["research_training_g6e"]


def test_what_workloads_name_is_in_the_catalogue(tmp_path: Path) -> None:
    shipped = Catalog(tmp_path)
    for row in shipped.workloads.values():
        scenario = row.scenario
        assert shipped.instances.find_id(scenario.current_instance)
        assert shipped.model_sizes.find_id(scenario.model_size)
        assert shipped.precisions.find_id(scenario.precision)


def test_a_name_that_is_not_there_says_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("fleet", "sets", "--details", "basic")) == 2
    assert "basic_demos" in capsys.readouterr().err
    assert main(("workloads", "--details", "nothing-like-it")) == 2
    assert capsys.readouterr().err.startswith("capacity-tui: no workload is called")
    assert main(("fleet", "nope")) == 2
    assert "capacity-tui fleet --help" in capsys.readouterr().err


def test_a_medium_model_takes_what_the_guide_says(run: Run) -> None:
    wanted = ["--precision", "fp32", "--precision", "fp16", "--precision", "bf16", "--precision", "fp8"]
    rows = json.loads(run("fleet", "sizes", "medium", *wanted, "--precision", "int8", "--format", "json"))
    assert [row["weights_gb"] for row in rows] == [140, 70, 70, 35, 35]
    assert rows[0]["parameter_count_billion"] == 35
    line = next(line for line in run("fleet", "sizes", *wanted).splitlines() if line.startswith("medium"))
    assert line.split()[1:7] == ["35", "B", "140.0", "70.0", "70.0", "35.0"]


def test_faults_of_ones_own_files_are_named_and_the_rest_is_used(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model_config.json"
    path.write_text('{"model_sizes": {"huge": {"parameter_count_billion": 700}, // mine\n"odd": {"parameters": 3}}}')
    assert main(("fleet", "check", "--config", str(tmp_path), "--format", "json")) == 2
    said = json.loads(capsys.readouterr().out)
    assert not said["valid"]
    assert said["files"] == [str(path)]
    assert said["known"]["sizes"] == 5
    assert {(fault["line"], fault["field"]) for fault in said["faults"]} >= {(2, "odd.parameters")}
    rows = json.loads(run("fleet", "sizes", "--precision", "fp8", "--config", str(path), "--format", "json"))
    assert next(row["weights_gb"] for row in rows if row["id"] == "huge") == 700
    assert main(("validate", str(path))) == 2
    assert "odd.parameters: unknown field" in capsys.readouterr().err
    price = tmp_path / "price.json"
    price.write_text('{"P5": {"on_demand_cost_per_hour": 45.0}}')
    assert main(("validate", str(price))) == 0
    assert main(("fleet", "check", "--config", str(tmp_path / "none"))) == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_prices_have_a_month_and_the_memory_of_all_accelerators(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "prices", "--filter", "aws-p5-48xlarge", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["usd_per_month"] == pytest.approx(55.04 * 720) and row["usd_per_month_spot"] > 0
    assert row["device_memory_bytes"] == pytest.approx(8 * 79.6 * 2**30, rel=0.01)
    assert main(["fleet", "prices", "--filter", "aws-p5-48xlarge"]) == 0
    assert "$39 629" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "heads"),
    [
        (("recommend", "full_finetune_8b", "--deadline", "24h", "--hardware", "lambda"), ("time", "cost", "$/h")),
        (("regions", "--model", "small", "--task", "lora", "--gpu", "P5", "--tokens", "10M", "--data", "2TB"),
         ("together", "job", "data")),
        (("migrate", "--from", "G6", "--model", "small", "--to", "G5,G6e"), ("saving", "$/M tok", "work/s")),
    ],
)  # fmt: skip
def test_eighty_columns_have_room_for_the_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], heads: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["fleet", *asked])
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if line.startswith(("machines ", "region ", "instance ")))
    assert all(name in head for name in heads) and len(head) <= 80
