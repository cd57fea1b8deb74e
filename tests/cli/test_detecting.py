"""``detect`` and ``configs`` on this machine: score, doctor, benchmark, settings."""

from __future__ import annotations

import json
import socket

import pytest

from capacity_tui.engine.hardware.benchmark import disk, measurement
from capacity_tui.engine.hardware.doctor import hide_names
from capacity_tui.tui.cli import main


@pytest.fixture(autouse=True)
def own_data(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))


def test_detect_shows_score_bottleneck_and_settings(capsys):
    assert main(["detect"]) == 0
    out = capsys.readouterr().out
    assert "Performance score:" in out
    assert "Predicted bottleneck for smollm2-135m:" in out
    assert "OMP_NUM_THREADS" in out
    assert "Topology:" in out


def test_the_profile_alone_is_short(capsys):
    assert main(["detect", "--profile-only"]) == 0
    assert "Performance score" not in capsys.readouterr().out


def test_detect_as_data(capsys, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("model: {name: gpt2-small}\nhardware: {name: detected}\ntraining: {precision: fp32}\n")
    assert main(["detect", "--job", str(plan), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["score"]["tier"] in ("LOW", "MEDIUM", "HIGH", "SERVER")
    assert data["score"]["rule"]
    assert data["bottleneck"]
    assert all(setting["reason"] for setting in data["settings"])


def test_the_doctor_names_no_one(capsys):
    assert main(["detect", "--doctor"]) == 0
    out = capsys.readouterr().out
    assert "[memory] found in" in out
    assert "total_bytes =" in out
    host = socket.gethostname()
    assert host == "localhost" or host not in out
    assert "uuid" not in out


def test_the_doctor_as_data_times_every_probe(capsys):
    assert main(["detect", "--doctor", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {probe["name"] for probe in data["probes"]} >= {"nvidia", "amd", "cpu", "disks", "benchmarks"}
    assert all(probe["seconds"] >= 0 for probe in data["probes"])
    assert data["catalogue_problems"] == []


def test_names_are_hidden_where_they_stand_alone():
    text = hide_names("/home/alice/data on box7, box70, alice's and malice", ["alice", "box7"])
    assert text == "/home/<user>/data on <name>, box70, <name>'s and malice"


def test_benchmarks_are_kept_and_used(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(measurement, "ENOUGH_SECONDS", 0.02)
    monkeypatch.setattr(disk, "FILE_BYTES", 16 << 20)
    monkeypatch.setattr(disk, "RANDOM_SECONDS", 0.02)
    assert main(["detect", "--benchmark", "--folder", str(tmp_path), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["complete"] is True
    (kept,) = (tmp_path / "data" / "benchmarks").iterdir()
    assert json.loads(kept.read_text()) == report
    assert main(["detect", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["benchmarked"]["disk_read"]["origin"] == "measured"
    assert next(part for part in data["score"]["parts"] if part["id"] == "disk")["points"] is not None


def test_configurations_carry_their_settings(capsys):
    assert main(["configs", "--gpu", "8xH100-SXM", "--mode", "balanced", "--format", "yaml"]) == 0
    out = capsys.readouterr().out
    assert "# Settings for this hardware:" in out
    assert "#   attention=flash: FlashAttention 3" in out
    assert main(["configs", "--gpu", "8xH100-SXM", "--mode", "balanced", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"name", "value", "reason"} == set(data["balanced"]["settings"][0])
