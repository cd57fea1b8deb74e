"""``profile``: the command's own output and exit code, and beside them what it used."""

from __future__ import annotations

import json
import sys

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.runs.history import History
from capacity_tui.tui.cli.program import run_command

LEAKS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; held = b'x' * (60 << 20); time.sleep(0.5)"])
held = []
while child.poll() is None:
    held.append(b"x" * (2 << 20))
    time.sleep(0.02)
print("out"), print("err", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture(autouse=True)
def _own_history(monkeypatch, tmp_path):
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(tmp_path / "history.sqlite"))


@pytest.fixture
def told(tmp_path, capfd):
    file = tmp_path / "profile.json"

    def profile(*words: str) -> tuple[int, dict, str, str]:
        code = run_command(["profile", "--interval", "0.1", "--json", str(file), *words])
        captured = capfd.readouterr()
        return code, json.loads(file.read_text()), captured.out, captured.err

    return profile


def test_a_command_that_leaks_beside_a_child(told, tmp_path):
    page = tmp_path / "page.html"
    code, data, out, err = told("--samples", "10", "--html", str(page), "--", sys.executable, "-S", "-c", LEAKS)
    assert (code, data["exit_code"], out) == (3, 3, "out\n")
    assert err.startswith("err\n")
    assert "exit code 3" in err
    assert "Bottleneck" in err
    summary = data["summary"]
    assert summary["peak_memory_bytes"] > 60 << 20
    assert summary["processes_peak"] == 2
    assert summary["memory_bytes_per_sample"] == summary["peak_memory_bytes"] / 10
    held = [point["memory_bytes"] for point in data["timeline"]]
    assert max(held) > held[0]
    assert page.read_text().count("<svg") > 3
    assert "http" not in page.read_text()
    (kept,) = History(tmp_path / "history.sqlite").find()
    assert (kept.kind, kept.details["exit_code"]) == ("profile", 3)


def test_looks_go_out_while_the_command_runs(told, tmp_path):
    lines = tmp_path / "looks.jsonl"
    outlets = ("--jsonl", str(lines), "--serve", "0")
    work = ("--stage", "rest", "--samples", "5")
    code, data, _, _ = told("-q", "--no-history", *outlets, *work, "--", "sleep", "0.3")
    looks = [json.loads(line) for line in lines.read_text().splitlines()]
    assert code == 0
    assert len(looks) == data["samples"]
    (stage,) = data["stages"]
    assert (stage["name"], stage["samples"]) == ("rest", 5)
    assert stage["samples_per_second"] == 5 / stage["seconds"]
    assert {"time", "memory_bytes", "cpu_percent"} <= set(looks[0])


TELLS = """
import time
print("loading", flush=True); time.sleep(0.2)
for step in range(1, 4):
    print(f"training, step {step * 100}", flush=True); time.sleep(0.1)
"""


def test_stages_and_samples_are_found_in_the_output(told):
    options = ("--stage", "load=^loading", "--stage", "train=^training, step 100$", "--samples", r"step (\d+)")
    _, data, out, _ = told("-q", "--no-history", *options, "--", sys.executable, "-S", "-c", TELLS)
    assert out == "loading\n" + "".join(f"training, step {step}\n" for step in (100, 200, 300))
    load, train = data["stages"]
    assert (load["name"], load["samples"]) == ("load", None)
    assert (train["name"], train["samples"]) == ("train", 300)
    assert load["seconds"] >= 0.1  # of 0.2; lines may be read late
    assert data["summary"]["work_samples"] == 300


def test_a_stage_whose_line_does_not_come_is_told(told):
    _, data, _, err = told("--no-history", "--stage", "load=^loading", "--stage", "x=^never", "--", "echo", "loading")
    assert data["problems"] == ["stage x never began: no line of the output is as its expression says"]
    assert "stage x never began" in err


def test_a_command_that_dies_by_a_signal(told):
    code, data, _, err = told("--no-history", "sh", "-c", "kill -9 $$")
    assert (code, data["exit_code"], data["signal"]) == (137, 137, 9)
    assert "SIGKILL" in err


def test_a_file_that_cannot_be_written_leaves_the_exit_code(capfd):
    code = run_command(["profile", "-q", "--no-history", "--json", "/nowhere/x.json", "--", "sh", "-c", "exit 4"])
    assert code == 4
    assert capfd.readouterr().err.startswith("capacity-tui: /nowhere/x.json: cannot be written")


@pytest.mark.parametrize(
    "words",
    [
        ["--stage", "a", "--stage", "b"],
        ["--samples", "("],
        ["--threshold", "cpu"],
        ["--samples", "0"],
        ["--url", "x"],
        ["--interval", "0"],
        [],
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_runs(words, tmp_path):
    with pytest.raises(CapacityError):
        run_command(["profile", *words, *(["--", "touch", str(tmp_path / "ran")] if words else [])])
    assert not (tmp_path / "ran").exists()
