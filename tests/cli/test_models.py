"""``models``: families, networks and plug-ins beside the architectures."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from capacity_tui.engine.models import FAMILIES, load_plugins
from capacity_tui.tui.cli import main

PLUGIN = """
def model():
    return {
        "title": "a sum of rows",
        "best_use": "tests of plug-ins",
        "fields": {"n": {"default": 1000, "unit": "rows", "help": "rows to add"}},
        "calculate": lambda spec: {"params": 1, "train_flops": spec["n"], "complexity_class": "O(n)"},
    }
"""
Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("COLUMNS", raising=False)  # parallel runs of tests set it

    def command(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    return command


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with one model."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "row_sum.py").write_text(PLUGIN, "utf-8")
    information = tmp_path / "row_sum-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: row_sum\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[capacity_tui.models]\nrow_sum = row_sum:model\n")
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "row_sum", raising=False)
    load_plugins.cache_clear()
    yield
    load_plugins.cache_clear()


def test_every_family_and_network_is_listed_once_with_what_it_is_for(run: Run) -> None:
    entries = json.loads(run("models", "--list", "--format", "json"))
    ids = [entry["id"] for entry in entries]
    assert len(ids) == len(set(ids))
    own = {entry["id"]: entry for entry in entries if "complexity" in entry}
    assert {*FAMILIES, "unet", "resnet-50"} <= own.keys()
    assert all(entry["complexity"] and entry["best_use"] for entry in own.values())
    table = run("models")
    assert "O(n²·p) to O(n³)" in table
    assert own["svm_rbf"]["best_use"] in table


def test_filter_covers_families(run: Run) -> None:
    assert json.loads(run("models", "--filter", "pixel", "--format", "json"))[0]["id"] == "unet"
    table = run("models", "--filter", "svm")
    assert "svm_linear" in table
    assert "llama" not in table


@pytest.mark.parametrize("name", ["svm_rbf", "SVM-RBF", "mlp", "resnet50", "ResNet-50", "transformer_decoder", "UNet"])
def test_details_say_what_a_plan_may(run: Run, name: str) -> None:
    found = yaml.safe_load(run("models", "--details", name, "--format", "yaml"))
    assert found["complexity"]
    assert found["best_use"]
    assert found["reasonable_up_to"]
    for parameter in found["parameters"]:
        assert parameter["meaning"]
        assert parameter.keys() >= {"default", "unit", "minimum", "maximum", "choices"}
    shown = run("models", "--details", name)
    assert all(parameter["name"] in shown for parameter in found["parameters"])
    assert f"name: {found['id']}" in shown


@pytest.mark.parametrize("name", [*FAMILIES, "unet", "resnet-18"])
def test_the_example_of_each_is_a_plan(run: Run, name: str, tmp_path: Path) -> None:
    example = json.loads(run("models", "--details", name, "--format", "json"))["example"]
    path = tmp_path / "example.json"
    path.write_text(json.dumps(example))
    assert json.loads(run("plan", str(path), "--gpu", "rtx-4090", "--format", "json"))["plan"]["model"]["name"] == name


def test_algorithms_say_where_they_stop(run: Run) -> None:
    details = run("models", "--details", "svm_rbf")
    assert "rows with the defaults below" in details
    assert "random Fourier" in details
    assert "200" in next(line for line in details.splitlines() if line.startswith("cache_mb"))


@pytest.mark.usefixtures("plugin")
def test_models_of_other_packages(run: Run) -> None:
    assert "tests of plug-ins" in run("models", "--filter", "row_sum")
    details = run("models", "--details", "Row-Sum")
    assert "O(n)" in details
    assert "rows to add" in details


def test_configurations_carry_the_warnings_of_their_mode(run: Run) -> None:
    one = ("configs", "--gpu", "rtx-4090", "--model", "llama-3.2-1b")
    assert "throttle" in run(*one)
    assert "# Warning: " in run(*one, "--mode", "extreme", "--format", "yaml")
    data = json.loads(run(*one, "--format", "json"))
    assert "mode" in {note["code"] for note in data["extreme"]["warnings"]}
    assert "mode" not in {note["code"] for note in data["conservative"]["warnings"]}


def test_models_are_listed_by_the_names_of_their_variants(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--filter", "meta-llama/Llama-3.1-70B-Instruct", "--format", "json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ["llama-3.1-70b"]
    assert main(["models", "--filter", "llama-3.1-70bb"]) == 0
    assert "nearest: llama-3.1-70b" in capsys.readouterr().err
    assert main(["hardware", "--filter", "rtx4909"]) == 0
    assert "rtx-4090" in capsys.readouterr().err
    assert main(["hardware", "--filter", "NVIDIA GeForce RTX4090", "--format", "json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ["rtx-4090"]


def test_a_network_tells_which_fields_of_the_plan_its_parameters_stand_for(run: Run) -> None:
    taken = {
        row["name"]: row["field"]
        for row in json.loads(run("models", "--details", "mlp", "--format", "json"))["taken_for_fields"]
    }
    assert taken["batch_size"] == "training.micro_batch"
    assert {"n", "epochs", "precision"} <= taken.keys()
    assert "training.samples" in run("models", "--details", "mlp")
    assert "field of the plan" not in run("models", "--details", "random_forest")
