"""Runs that people hand to each other: nothing private is in them, they are read again, and faults have their line."""

from __future__ import annotations

import csv
import io
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.engine.plan import leaves
from capacity_tui.engine.runs.accuracy import read_shared, shared_text
from capacity_tui.engine.runs.accuracy.published import measurement_of
from capacity_tui.engine.runs.accuracy.shared_runs import PEAK, SOURCE, STEP
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns
from capacity_tui.tui.cli import main
from tests.plans import SERVING, TRAINING, plan_of

MLP = {"task": "train", "model.name": "mlp", "model.spec": {"d_in": 512, "layers": [1024, 1024]},
       "hardware.name": "detected"}  # fmt: skip
PLANS = [plan_of(base).plain_data() for base in (TRAINING, SERVING, MLP)]
CPU = "cpu-amd-epyc-9b14-4"


def run_of(plan, device="h100-sxm-80gb", actual=None, **more) -> RunRecord:
    sizes = {"model.parameters": {"value": 8e9}, "model.active_parameters": {"value": 8e9}}
    return RunRecord("run", plan, predicted=sizes, actual=actual or {STEP: 2.5, PEAK: 3e9 + 1}, device=device, **more)


RUNS = [run_of(plan, CPU if plan["hardware"]["name"] == "detected" else "h100-sxm-80gb") for plan in PLANS]
# Letters that no word of a catalogue is made of, and paths, names and numbers as they look.
secrets = st.one_of(
    st.text(string.ascii_uppercase, min_size=12, max_size=20),
    st.uuids().map(str),
    st.text(string.ascii_uppercase, min_size=8).map(lambda name: f"/home/{name}/models/config.json"),
    st.text(string.ascii_uppercase, min_size=8).map(lambda name: f"GPU-{name}.corp.example"),
)


def spoilt(value, path, secret):
    """Return nested data with a secret at a path of it."""
    name, *rest = path
    return {**value, name: spoilt(value.get(name) or {}, rest, secret) if rest else secret}


def read(text, tmp_path):
    file = tmp_path / "shared.csv"
    file.write_text(text)
    return read_shared(file)


@given(st.data(), secrets)
def test_no_secret_is_in_what_is_shared(data, secret):
    run = data.draw(st.sampled_from(RUNS))
    paths = [path for path, value in leaves(run.plan) if not isinstance(value, bool | int | float)]
    hidden = data.draw(st.lists(st.sampled_from([*paths, "new", "model.spec.new", "hardware.spec.new"]), max_size=3))
    plan = run.plan
    for path in hidden:
        plan = spoilt(plan, path.split("."), secret)
    kept = run_of(plan, data.draw(st.sampled_from([run.device, secret, f"cpu-{secret}-2"])),
                  machine={"name": secret, "serial": secret, "hardware": secret},
                  details={"command": ["python", secret], "user": {"name": secret}}, id=secret[:10])  # fmt: skip
    text, reasons = shared_text([kept])
    assert secret not in text
    assert secret[:10] not in text
    assert text.count("\n") + len(reasons) == 2


@pytest.mark.parametrize("run", RUNS, ids=["training", "serving", "network"])
def test_what_is_shared_is_read_again(run, tmp_path):
    text, reasons = shared_text([run])
    assert reasons == ()
    (found,) = read(text, tmp_path)
    assert found.actual == run.actual
    assert found.device == run.device
    assert found.started[:10] == run.started[:10]
    for section in ("model", "parallelism", "hardware", "inference" if run.plan["task"] == "infer" else "training"):
        assert json.loads(json.dumps(found.plan[section])) == json.loads(json.dumps(run.plan[section]))
    (row,) = csv.DictReader(io.StringIO(text))
    measured = measurement_of("train_time", row, SOURCE, Place())
    assert (measured.value, measured.quantity) == (2.5, "step_seconds")


def test_runs_that_cannot_be_told_are_left_out_with_a_reason():
    own = spoilt(PLANS[0], ("model", "config"), "/home/me/config.json")
    runs = [run_of(own), run_of(None), run_of(PLANS[0], actual={"loss": 2.0}), run_of(PLANS[0], "my-own-gpu")]
    text, reasons = shared_text(runs)
    assert text.count("\n") == 1
    assert [reason.split(": ", 1)[1].split()[0] for reason in reasons] == ["model.config", "it", "neither", "its"]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("step_time_s", "soon", "soon"),
        ("step_time_s", "-1", "cannot be"),
        ("step_time_s", "nan", "cannot be"),
        ("peak_memory_unit", "bags", "bags"),
        ("device", "../../etc", "device"),
        ("date", "yesterday", "day"),
        ("training.micro_batch", "-3", "micro_batch"),
        ("training.optimizer", "[", "read"),
        ("model.name", "", "model"),
    ],
)
def test_a_fault_has_its_line_and_nothing_is_taken(column, value, words, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))
    rows = list(csv.DictReader(io.StringIO(shared_text([run_of(PLANS[0]), run_of(PLANS[0], actual={STEP: 3.0})])[0])))
    rows[1][column] = value
    rows[1]["peak_memory"] = rows[1]["peak_memory"] or "1"
    rows[1]["counted_as"] = "device"
    rows[1]["peak_memory_unit"] = rows[1]["peak_memory_unit"] or "MiB"
    file = tmp_path / "shared.csv"
    with file.open("w", newline="") as target:
        table = csv.DictWriter(target, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    assert main(["calibrate", "--from", str(file)]) == 2
    told = capsys.readouterr().err
    assert f"{file}:3" in told
    assert words in told
    assert "Traceback" not in told
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a,b\n1,2\n", b'id,"source\n', b"\x00"])
def test_what_is_no_such_file_is_one_line(content, tmp_path):
    file = tmp_path / "shared.csv"
    file.write_bytes(content)
    with pytest.raises(CapacityError, match=str(file)):
        read_shared(file)


def test_runs_are_shared_taken_and_kept_apart_by_device(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "one"))
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(plan_of(MLP).plain_data()))
    assert main(["calibrate", "--plan", str(plan), "--step-seconds", "0.05"]) == 0
    (own,) = History().find(WantedRuns(kinds=("run",)))
    History().keep(run_of(PLANS[0]))
    shared = str(tmp_path / "shared.csv")
    assert main(["history", "export", "--share", "-o", shared]) == 0
    assert own.machine["name"] not in (tmp_path / "shared.csv").read_text().split(",")
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "other"))
    capsys.readouterr()
    for _ in range(2):
        assert main(["calibrate", "--from", shared, "--device", "cpu"]) == 0
    told = capsys.readouterr().err
    assert "2 runs" in told
    assert "kept apart, of other devices: h100-sxm-80gb" in told
    assert len(History().find()) == 2
    assert (tmp_path / "other" / "measured" / f"{own.device}.json").exists()
    assert not (tmp_path / "other" / "measured" / "h100-sxm-80gb.json").exists()
