"""``history`` from the command line: estimates are kept by themselves, listed, compared, exported and removed."""

import csv
import io
import json
import os

import pytest

from capacity_tui.engine.runs.history import History, RunRecord
from capacity_tui.tui.cli import main

LINE = "gpt2 train 1xrtx-3060"
STEP = "computation.step_seconds"


@pytest.fixture
def place(tmp_path, monkeypatch):
    place = tmp_path / "kept" / "history.sqlite"
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(place))
    return place


def listed(capsys, *arguments):
    capsys.readouterr()
    assert main(["history", "list", "--format", "json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)["runs"]


@pytest.fixture
def ran(place):
    """A run that took twice as long as predicted."""
    run = RunRecord("run", {"task": "train", "model": {"name": "gpt2-small"}}, {"name": "node7"},
                    {STEP: {"value": 2.0, "low": 1.0, "high": 3.0}}, {STEP: 4.0, "exit_code": 0.0})  # fmt: skip
    History(place).keep(run)
    return run


def test_every_estimate_of_a_plan_is_kept_once(place, capsys):
    assert main(["plan", LINE, "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert main(["plan", LINE]) == 0
    assert main(["plan", LINE, "--set", "training.micro_batch=2", "--check"]) in (0, 1)
    newest, first = listed(capsys)
    assert (first["kind"], first["plan"], first["actual"]) == ("estimate", result["plan"], {})
    assert first["predicted"][STEP] == result["computation"]["step_seconds"]
    assert first["predicted"]["memory.reserved_bytes"] == result["memory"]["reserved_bytes"]
    assert first["machine"]["hardware"] == result["basis"]["devices"]
    assert newest["plan"]["training"]["micro_batch"] == 2


@pytest.mark.parametrize("way", ["option", "environment", "settings"])
def test_nothing_is_kept_where_that_is_wanted(way, place, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CAPACITY_TUI_CONFIG", str(tmp_path))
    if way != "option":
        monkeypatch.setenv("CAPACITY_TUI_HISTORY", "off" if way == "environment" else "")
    if way == "settings":
        (tmp_path / "settings.toml").write_text("history = false\n")
    assert main(["plan", LINE, *(["--no-history"] if way == "option" else [])]) == 0
    assert capsys.readouterr().err == ""
    assert not place.parent.exists()
    assert not (tmp_path / "data").exists()


def test_a_history_that_cannot_be_written_stops_no_plan(monkeypatch, capsys):
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", os.devnull + "/history.sqlite")
    assert main(["plan", LINE]) == 0
    told = capsys.readouterr()
    assert "peak memory" in told.out
    assert told.err.count("\n") == 1
    assert "not kept in the history" in told.err
    assert "--no-history" in told.err


def test_facts_of_an_entry_are_shown_with_their_units(place, capsys):
    details = {"seconds": 1.126, "cpu_average_percent": 99.0, "bottleneck_confidence": 0.88, "exit_code": 3}
    History(place).keep(RunRecord("profile", details=details))
    assert main(["history", "show", History(place).find()[0].id]) == 0
    shown = {tuple(line.split()) for line in capsys.readouterr().out.splitlines()}
    said = {("seconds", "1.13", "s"), ("cpu", "average", "percent", "99", "%"), ("exit", "code", "3")}
    assert {*said, ("bottleneck", "confidence", "88.0", "%")} <= shown


def test_a_run_is_shown_with_what_was_measured(ran, capsys):
    assert main(["history", "show", ran.id[:5]]) == 0
    shown = capsys.readouterr().out
    assert "node7" in shown
    assert any(line.split()[:2] == ["step", "time"] and line.split()[-1] == "2.00" for line in shown.splitlines())
    assert main(["history", "show", "zzzz"]) == 2
    assert "history list" in capsys.readouterr().err


def test_entries_are_filtered_and_listed_as_a_table(ran, capsys):
    main(["plan", LINE])
    assert [run["id"] for run in listed(capsys, "--kind", "run", "--model", "gpt2", "--since", "1h")] == [ran.id]
    assert len(listed(capsys, "--limit", "1")) == 1
    assert listed(capsys, "--measured") == listed(capsys, "--kind", "run")
    assert listed(capsys, "--since", "2999-01-01") == []
    assert main(["history", "list"]) == 0
    assert ran.id in capsys.readouterr().out
    assert main(["history", "list", "--since", "some day"]) == 2


def test_a_run_without_a_plan_is_listed_as_what_was_started(place, capsys):
    History(place).keep(RunRecord("profile", details={"command": ["python", "train.py", "--some", "long", "words"]}))
    assert main(["history", "list"]) == 0
    assert "python train.py --som..." in capsys.readouterr().out


def test_two_entries_are_compared(place, capsys):
    for batch in (1, 2):
        main(["plan", LINE, "--set", f"training.micro_batch={batch}"])
    second, first = (run["id"] for run in listed(capsys))
    assert main(["history", "compare", first, second, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["id"] for run in found["runs"]] == [first, second]
    assert {"key": "training.micro_batch", "values": [1, 2]} in found["settings"]
    assert main(["history", "compare", first, second]) == 0
    assert "step time, predicted" in capsys.readouterr().out


def test_an_entry_gives_its_plan_back(place, capsys, tmp_path):
    main(["plan", LINE, "--format", "json"])
    before = json.loads(capsys.readouterr().out)
    (kept,) = listed(capsys)
    assert main(["history", "show", kept["id"], "--plan", "-o", str(tmp_path / "again.yaml")]) == 0
    assert main(["plan", str(tmp_path / "again.yaml"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["memory"] == before["memory"]


def test_entries_are_exported_and_removed(ran, capsys, tmp_path):
    main(["plan", LINE])
    assert main(["history", "export", "-o", str(tmp_path / "all.csv")]) == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "all.csv").read_text())))
    assert {row["kind"] for row in rows} == {"run", "estimate"}
    assert next(row for row in rows if row["kind"] == "run")[f"ratio.{STEP}"] == "2.0"
    assert main(["history", "export", "-o", str(tmp_path / "all.jsonl")]) == 0
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in lines} == {row["id"] for row in rows}
    assert main(["history", "forget", ran.id]) == 0
    assert [run["kind"] for run in listed(capsys)] == ["estimate"]
