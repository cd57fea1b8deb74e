"""Saved plans from the command line, and what ``validate`` says beyond faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.plan.files.saved import save_plan
from capacity_tui.tui.cli import main

PLAN = "model: {name: gpt2-small}\nhardware: {name: rtx-3060-12gb}\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CAPACITY_TUI_CONFIG", str(tmp_path / "config"))
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["plans", "--format", "json"]) == 0
    return [entry["name"] for entry in json.loads(capsys.readouterr().out)]


def test_saved_plans_are_listed_renamed_and_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plans"]) == 0
    assert "no plans are saved yet" in capsys.readouterr().err
    save_plan("my run", plan_from_text(PLAN, "plan"))
    assert main(["plans", "--list"]) == 0
    assert "my run" in capsys.readouterr().out
    assert main(["plans", "--rename", "my run", "other"]) == 0
    capsys.readouterr()
    assert listed(capsys) == ["other"]
    assert main(["plans", "--delete", "othr"]) == 2
    assert "did you mean 'other'?" in capsys.readouterr().err
    assert main(["plans", "--delete", "other"]) == 0
    capsys.readouterr()
    assert listed(capsys) == []
    assert main(["plans", "--list", "--delete", "other"]) == 2
    assert "one thing at a time" in capsys.readouterr().err


def test_validate_tells_what_changes_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "vain.yaml").write_text(PLAN + "parallelism:\n  interleave: 4\n")
    assert main(["validate", "vain.yaml"]) == 0
    said = capsys.readouterr()
    assert said.out == "vain.yaml: valid\n"
    assert said.err.startswith(
        "capacity-tui: vain.yaml:4: parallelism.interleave: changes nothing here: needs more than"
    )


def test_a_bad_row_of_the_users_takes_one_line_and_validate_tells_all(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from capacity_tui.engine.catalog import Catalog

    (place / "catalog").mkdir()
    (place / "catalog" / "accelerators.yaml").write_text("mine: {nonsense: 1, memory_mib: many}\n")
    monkeypatch.setattr("capacity_tui.engine.catalog.load_catalog", lambda: Catalog(place / "catalog"))
    assert main(["hardware", "--filter", "rtx-4090"]) == 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "more: capacity-tui validate" in said
    assert main(["validate"]) == 2
    said = capsys.readouterr().err
    assert said.count("accelerators.yaml:1: ") == said.count("\n") > 2
