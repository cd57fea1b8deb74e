"""``detect`` and ``configs`` on this machine: score, doctor, benchmark, settings."""

from __future__ import annotations

import json
import socket

import pytest

from capacity_tui.engine.machine.benchmark import benchmark_report, io_speed
from capacity_tui.engine.machine.benchmark import benchmark_report as reports
from capacity_tui.engine.machine.detect import hide_names
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


def test_a_reason_is_said_once_and_only_the_machine_is_warned_of(capsys):
    assert main(["detect"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("not measured on this machine") <= 1
    assert "takes very long" not in shown
    assert main(["detect", "--format", "json"]) == 0
    codes = [note["code"] for note in json.loads(capsys.readouterr().out)["warnings"]]
    assert main(["detect", "--job", "gpt2_rtx_3060", "--format", "json"]) == 0
    of_job = [note["code"] for note in json.loads(capsys.readouterr().out)["warnings"]]
    assert set(codes) <= set(of_job)


def test_a_power_supply_has_headroom_or_not(capsys):
    assert main(["detect", "--power-supply", "100000", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    power = data["power_draw"]
    assert "on_mains" in data["power"]
    assert power["headroom_watts"] == 100000 - power["drawn_watts"]
    assert main(["detect", "--power-supply", "60", "--profile-only"]) == 2
    assert "leaves out what --power-supply would add" in capsys.readouterr().err


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
    monkeypatch.setattr(reports, "BUSY_SHARE", 2.0)  # whatever else this machine does
    monkeypatch.setattr(benchmark_report, "ENOUGH_SECONDS", 0.02)
    monkeypatch.setattr(io_speed, "FILE_BYTES", 16 << 20)
    monkeypatch.setattr(io_speed, "RANDOM_SECONDS", 0.02)
    assert main(["detect", "--benchmark", "--folder", str(tmp_path), "--learn", "1k", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["complete"] is True
    (kept,) = (tmp_path / "data" / "benchmarks").iterdir()
    assert report.items() >= json.loads(kept.read_text()).items()
    points = {part["id"]: part["points"] for part in report["score"]["parts"]}
    assert None not in [points[name] for name in ("disk", "random_reads", "round_trips", "database")]
    assert report["learning"]["rates"]["found_patterns"]["origin"] == "measured"
    assert max(report["learning"]["times"], key=report["learning"]["times"].get) == "database"
    assert main(["detect", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["benchmarked"]["disk_read"]["origin"] == "measured"
    assert next(part for part in data["score"]["parts"] if part["id"] == "disk")["points"] is not None


def test_what_holds_learning_up_is_told_with_the_profile(capsys):
    assert main(["detect", "--profile-only", "--learn", "1e12,500,15,4", "--format", "json"]) == 0
    learning = json.loads(capsys.readouterr().out)["learning"]
    assert learning["bottleneck"] == "storage"
    assert learning["bytes"] > learning["free_bytes"]
    assert learning["tier"] in ("LOW", "MEDIUM", "HIGH", "SERVER")
    assert main(["detect", "--profile-only", "--learn", "1k"]) == 0
    assert "Predicted bottleneck of learning 1.0 k samples" in capsys.readouterr().out
    for wrong in ("lots", "1,2,3,4,5", "1k,0"):
        assert main(["detect", "--learn", wrong]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_configurations_carry_their_settings(capsys):
    assert main(["configs", "--gpu", "8xH100-SXM", "--mode", "balanced", "--format", "yaml"]) == 0
    out = capsys.readouterr().out
    assert "# Settings for this hardware:" in out
    assert "#   attention=flash: FlashAttention 3" in out
    assert main(["configs", "--gpu", "8xH100-SXM", "--mode", "balanced", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"name", "value", "reason"} == set(data["balanced"]["settings"][0])


@pytest.mark.parametrize(
    "words",
    [
        ("--profile-only", "--generate-configs"),
        ("--profile-only", "--job", "transformer"),
        ("--profile-only", "--benchmark"),
        ("--doctor", "--generate-configs"),
        ("--doctor", "--benchmark"),
        ("--folder", "/tmp"),
        ("--url", "http://127.0.0.1/"),
        ("--private",),
    ],
)
def test_no_option_is_dropped_in_silence(words, capsys):
    assert main(["detect", *words]) == 2
    told = capsys.readouterr().err
    assert words[0] in told


def test_a_benchmark_and_configurations_come_together(capsys, monkeypatch):
    monkeypatch.setattr(benchmark_report, "ENOUGH_SECONDS", 0.01)
    monkeypatch.setattr(io_speed, "FILE_BYTES", 16 << 20)
    assert main(["detect", "--benchmark", "--generate-configs", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["benchmark"]["measured"]
    assert set(data["configurations"]) == {"conservative", "balanced", "extreme"}


@pytest.mark.parametrize(
    ("line", "secrets"),
    [
        ("disks[3].device = nas01.corp.example:/export/alice-secret", ("nas01", "corp", "alice")),
        ("disks[3].device = //smb.corp/alice$/x", ("smb", "alice")),
        ("disks[0].device = /dev/disk/by-id/nvme-SAMSUNG_S5GXNX0R", ("S5GXNX0R", "SAMSUNG")),
        ("disks[0].device = /dev/mapper/bobs--laptop--vg-root", ("bobs", "laptop")),
        (
            "limit = 5  [detected: /sys/fs/cgroup/user.slice/user-1000.slice/app-alice.scope/memory.max]",
            ("1000", "alice"),
        ),
        ("container = 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", ("0123456789ab",)),
    ],
)
def test_the_doctor_hides_what_names_a_place(line, secrets):
    cleaned = hide_names(line, ())
    assert not any(secret in cleaned for secret in secrets)


@pytest.mark.parametrize(
    "line",
    [
        "total_bytes = 17179869184  [detected: /sys/fs/cgroup/memory.max]",
        "host = 264175625000  [detected: /proc/meminfo]",
        "disks[0].device = /dev/nvme0n1p2",
        "model = Intel(R) Xeon(R) Processor @ 2.50GHz  [detected: /proc/cpuinfo]",
    ],
)
def test_the_doctor_keeps_what_helps(line):
    assert hide_names(line, ()) == line


@pytest.mark.parametrize(
    "damage", ["{", "[]", '{"device": "d", "date": "", "software": {}, "gemm": {}, "constants": {"sustained": 1e300}}']
)
def test_a_damaged_file_of_measured_constants_is_named_and_the_sound_one_kept(damage, tmp_path, capsys):
    folder = tmp_path / "data" / "measured"
    folder.mkdir(parents=True)
    sound = {"device": "d", "date": "2026-01-01", "software": {}, "gemm": {}, "curves": [], "errors": []}
    (folder / "sound.json").write_text(json.dumps({**sound, "constants": {"sustained": 0.9}}))
    (folder / "broken.json").write_text(damage)
    assert main(["detect", "--profile-only", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [entry["constants"] for entry in data["measured"]] == [{"sustained": 0.9}]
    assert main(["detect", "--profile-only"]) == 0
    out = capsys.readouterr().out
    assert "broken.json" in out
    assert "sound.json" not in out
