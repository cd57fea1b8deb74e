"""Calibration learns from the history: from runs that were kept, by whatever version."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.machine import detect
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns, history_entry
from capacity_tui.engine.runs.sampling import UserRun, kept_runs, learnt_from, read_runs, with_cores_of
from capacity_tui.engine.runs.sampling.user_runs import STEP, estimate_as_measured, resolved_run
from capacity_tui.engine.solve import answer
from capacity_tui.tui.cli import main

PROGRAM = Path(__file__).with_name("trained_network.py")
SIZES = (512, 1024, 1024, 10)
RUN = {"plan": {"model": {"name": "mlp"}}, "step_seconds": 1.5, "peak_bytes": None, "date": "2026-03-04"}


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def earlier(data):
    """A file of runs as earlier versions wrote it, with a line that a killed program left."""
    file = data / "measured" / "cpu-x-2.runs.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps({**RUN, "step_seconds": seconds}) + "\n" for seconds in (1.5, 2.5)) + '{"plan"')
    return file


def plan_of(batch: int, folder: Path) -> str:
    hidden, out = list(SIZES[1:-1]), SIZES[-1]
    spec = {"d_in": SIZES[0], "layers": hidden, "d_out": out, "n": 10 * batch, "epochs": 1, "batch_size": batch}
    plan = {"model": {"name": "mlp", "spec": {**spec, "precision": "fp32"}, "optimization": "sgd"},
            "hardware": {"name": "detected"}}  # fmt: skip
    file = folder / f"{batch}.json"
    file.write_text(json.dumps(plan))
    return str(file)


def test_the_third_run_of_a_kind_is_predicted_better_than_the_first(tmp_path):
    for batch in (192, 320, 256):
        program = [sys.executable, str(PROGRAM), str(batch), *map(str, SIZES)]
        threads = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        ran = subprocess.run(program, env={**os.environ, **threads}, capture_output=True, text=True, check=True)
        assert main(["calibrate", "--plan", plan_of(batch, tmp_path), "--step-seconds", ran.stdout.strip()]) == 0
    third, second, first = (abs(math.log(run.ratio[STEP])) for run in History().find(WantedRuns(kinds=("run",))))
    assert third < first
    assert second < first


def test_runs_of_an_earlier_version_are_taken_over_and_their_file_kept_aside(earlier):
    text, history = earlier.read_text(), History()
    assert [run.step_seconds for run in read_runs("cpu-x-2", history)] == [1.5, 2.5]
    assert "cannot be read" in history.notes[0]
    assert not earlier.exists()
    assert earlier.with_name("cpu-x-2.runs.jsonl.old").read_text() == text
    assert len(kept_runs(History())) == 2


def test_taking_over_that_was_stopped_amid_is_completed(earlier):
    text = earlier.read_text()
    read_runs("cpu-x-2", History())
    earlier.write_text(text)
    assert len(read_runs("cpu-x-2", History())) == 2


def test_a_run_that_cannot_be_its_plan_is_left_out_with_a_word(tmp_path, capsys):
    plan = plan_of(256, tmp_path)
    assert main(["calibrate", "--plan", plan, "--step-seconds", "0.02"]) == 0
    (kept,) = History().find(WantedRuns(measured=True))
    impossible = {"plan": kept.plan, "device": kept.device}
    History().keep(RunRecord("run", actual={STEP: 1e-9}, **impossible),
                   RunRecord("run", {"model": {"name": "gone"}}, actual={STEP: 1.0}, device=kept.device))  # fmt: skip
    capsys.readouterr()
    assert main(["calibrate", "--device", "cpu"]) == 0
    assert capsys.readouterr().err.count("is left out") == 2


def test_one_watched_run_teaches_what_it_took():
    plan = {"task": "train", "model": {"name": "gpt2"}, "training": {"seq_len": 256, "micro_batch": 1, "steps": 10},
            "hardware": {"name": "rtx-4090", "devices": 1}}  # fmt: skip
    catalog, machine = load_catalog(), detect()
    predicted = answer(plan_from_data(plan), machine, catalog)
    took = 2 * float(predicted.estimate.computation.step_seconds.value)
    run = history_entry(predicted, "run", {STEP: took})
    learnt = learnt_from(run, machine, catalog, History())
    assert (learnt.measured.device, learnt.alike) == (run.device, 1)
    (error,) = learnt.measured.errors
    assert (error.name, error.count) == ("own runs, step time", 1)
    assert error.median < 0.01
    assert step_of(learnt.after) == pytest.approx(2 * step_of(learnt.before), rel=1e-3)
    with pytest.raises(PlanError, match="nothing can be learnt"):
        learnt_from(replace(run, actual={}), machine, catalog, History())


@pytest.mark.parametrize("hardware", ["epyc-9654", "rtx-4090"])
def test_runs_with_fused_attention_hardly_move_those_that_store_scores(hardware):
    def plan(batch, **training):
        return {"task": "train", "model": {"name": "pythia-160m"}, "hardware": {"name": hardware, "devices": 1},
                "training": {"seq_len": 512, "micro_batch": batch, **training}}  # fmt: skip

    def moved(document):
        resolved = resolved_run(plan_from_data(document), catalog, machine)
        before, after = (step_of(estimate_as_measured(resolved, known, catalog)) for known in (None, learnt.measured))
        return math.log(after / before)

    machine, catalog = detect(), load_catalog()
    predicted = answer(plan_from_data(plan(2)), machine, catalog)
    run = history_entry(predicted, "run", {STEP: 1.3 * step_of(predicted.estimate)})
    learnt = learnt_from(run, machine, catalog, History())
    stored = {"dropout": 0.1} if hardware.startswith("epyc") else {"attention": "eager"}
    assert moved(plan(4)) > 0.1
    assert 0 < moved(plan(4, **stored)) < 0.2 * moved(plan(4))


def test_a_run_that_others_held_up_teaches_nothing_of_time(tmp_path, capsys):
    machine, catalog = detect(), load_catalog()
    predicted = answer(plan_from_data(json.loads(Path(plan_of(256, tmp_path)).read_text())), machine, catalog)
    step = step_of(predicted.estimate)
    quiet = history_entry(predicted, "run", {STEP: 1.1 * step})
    held_up = history_entry(predicted, "run", {STEP: 3 * step}, {"why": ["shared"], "others": 0.6})
    with pytest.raises(PlanError, match="held up"):
        learnt_from(held_up, machine, catalog, History())
    History().keep(held_up)
    learnt = learnt_from(quiet, machine, catalog, History())
    assert step_of(learnt.after) == pytest.approx(1.1 * step, rel=1e-3)
    assert len(learnt.left_out) == 1
    History().keep(quiet)
    capsys.readouterr()
    assert main(["calibrate", "--device", "cpu"]) == 0
    assert "others used the machine" in capsys.readouterr().err


def test_a_run_beside_others_within_its_range_counts_for_less():
    run = UserRun({}, 1.0, None, "2026-11-26", others=0.5)
    assert run.weight < UserRun({}, 1.0, None, "2026-11-26", others=0.05).weight < 1.0


def test_what_was_calibrated_is_taken_back_and_comes_again(tmp_path, capsys):
    plan = plan_of(256, tmp_path)
    machine, catalog = detect(), load_catalog()
    shipped = step_of(answer(plan_from_data(json.loads(Path(plan).read_text())), machine, catalog).estimate)

    def now() -> float:
        return step_of(answer(plan_from_data(json.loads(Path(plan).read_text())), detect(), catalog).estimate)

    assert main(["calibrate", "--undo", "--device", "cpu"]) != 0
    capsys.readouterr()
    assert main(["calibrate", "--plan", plan, "--step-seconds", f"{2 * shipped}"]) == 0
    assert "rests on 1 run" in capsys.readouterr().err
    assert now() == pytest.approx(2 * shipped, rel=1e-3)
    assert main(["calibrate", "--undo", "--device", "cpu"]) == 0
    assert now() == shipped
    assert main(["calibrate", "--undo", "--device", "cpu"]) == 0
    assert now() == pytest.approx(2 * shipped, rel=1e-3)


def test_runs_on_other_cores_are_predicted_for_those_and_named(capsys):
    plan = {"model": {"name": "mlp", "spec": {"d_in": 512, "layers": [1024], "d_out": 10, "n": 2560, "epochs": 1,
            "batch_size": 256, "precision": "fp32"}, "optimization": "sgd"},
            "hardware": {"name": "detected"}}  # fmt: skip
    machine, catalog = detect(), load_catalog()
    one_core = replace(machine, cpu=replace(machine.cpu, usable_threads=replace(machine.cpu.usable_threads, value=1)))
    predicted = answer(plan_from_data(plan), one_core, catalog)
    run = history_entry(predicted, "run", {STEP: step_of(predicted.estimate)})
    assert run.device.endswith("-1")
    History().keep(run)
    (kept,) = kept_runs(History())
    again = answer(plan_from_data(kept.plan), with_cores_of(machine, kept), catalog)
    assert step_of(again.estimate) == pytest.approx(step_of(predicted.estimate))
    assert main(["accuracy", "--mine", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)
    if machine.cpu.usable_threads.value != 1:
        main(["calibrate", "--device", "cpu"])
        assert run.device in capsys.readouterr().err


def step_of(estimate: Estimate) -> float:
    return float(estimate.computation.step_seconds.value)
