"""Trainers of others under guard, on tiny models: killed, and taken up again from their own checkpoints.

CAPACITY_TEST_TRAINERS names a Python that has their packages; each takes half a minute, and a machine with little else
to do, since what it measures is compared.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.runs.guard import Listeners, begin, new_order
from capacity_tui.engine.runs.guard.failures import Kernel, KernelWatch
from capacity_tui.engine.runs.history import History
from capacity_tui.engine.solve import answer
from capacity_tui.tui.cli import main

PYTHON = os.environ.get("CAPACITY_TEST_TRAINERS")
# What each program imports, and how the checkpoint of its fourth step is called.
PROGRAMS = {
    "tiny_trainer.py": ("accelerate, torch, transformers", "checkpoint-4"),
    "tiny_trl.py": ("datasets, torch, transformers, trl", "checkpoint-4"),
    "tiny_lightning.py": ("lightning, torch", "epoch=0-step=4.ckpt"),
    "tiny_axolotl.py": ("axolotl, torch, transformers", "checkpoint-4"),
    "tiny_torchtune.py": ("torchao, torchtune", "epoch_1"),
}
STEPS, PEAK = 8, "memory.reserved_bytes"
PLAN = """
task: train
model: {name: transformer_decoder, spec: {layers: 2, hidden: 32, heads: 2, vocab: 64}}
training: {seq_len: 16, micro_batch: 2, global_batch: 2, steps: 8, precision: fp32, framework: transformers}
hardware: {name: cpu-4c-2.5ghz-basic}
watch: {interval: 0.5}
recovery: {max_restarts: 2, killed: restart}
"""


@pytest.fixture(params=PROGRAMS)
def words(request, tmp_path, monkeypatch):
    """The command of a trainer that is installed, without its attempt and checkpoint."""
    if PYTHON is None:
        pytest.skip("CAPACITY_TEST_TRAINERS names no Python that has trainers")
    packages, _ = PROGRAMS[request.param]
    modules = " and ".join(f"importlib.util.find_spec('{name}')" for name in packages.split(", "))
    asked = [PYTHON, "-c", f"import importlib.util, sys; sys.exit(not ({modules}))"]
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip(f"not all of {packages} are installed")
    for name in ("STATE", "DATA", "HISTORY"):
        monkeypatch.setenv(f"CAPACITY_TUI_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    return [PYTHON, str(Path(__file__).with_name(request.param)), "out"]


def test_a_killed_trainer_goes_on_from_its_own_checkpoint(words, monkeypatch):
    monkeypatch.setattr(KernelWatch, "report", lambda _: Kernel(oom_kills=0))
    told, entries = [], []
    listeners = Listeners(told.append, lambda _, __: None, lambda _, __: None, entries.append)
    estimated = answer(plan_from_text(PLAN, "plan.yaml"))
    order = new_order([*words, "{run.attempt}", "{run.checkpoint}"], estimated.plan, checkpoints=Path("out"))
    assert begin(order, estimated, listeners).run() == 0
    kinds = [event["kind"] for event in told if event["event"] == "failure"]
    assert kinds == ["killed"]
    first, second = (event for event in told if event["event"] == "started")
    assert first["checkpoint"] is None
    assert second["checkpoint"].endswith(PROGRAMS[Path(words[1]).name][1])
    (entry,) = entries
    assert entry.details["restarts"] == 1
    assert entry.details["exit_code"] == 0


def test_a_trainer_is_followed_compared_and_learnt_from(words, tmp_path, capfd):
    plan, looks = tmp_path / "plan.yaml", tmp_path / "looks.jsonl"
    plan.write_text(PLAN.replace("cpu-4c-2.5ghz-basic", "detected"))
    following = ["monitor", "--interval", "0.2", "--plan", str(plan), "--jsonl", str(looks)]
    assert main([*following, "--", *words, "2"]) == 0
    last = json.loads(looks.read_text().splitlines()[-1])
    assert last["loss"] > 0
    assert last.get("step", STEPS) == STEPS
    (run,) = History(tmp_path / "history").find()
    assert run.actual["computation.step_seconds"] > 0
    measured, predicted = run.actual[PEAK], run.actual[PEAK] / run.ratio[PEAK]
    # Steps that others on the same cores held up teach nothing; what the process held does.
    assert main(["calibrate", "--device", "cpu"]) == 0
    capfd.readouterr()
    assert main(["plan", str(plan), "--format", "json"]) == 0
    learnt = json.loads(capfd.readouterr().out)["memory"]["reserved_bytes"]
    assert abs(learnt["value"] - measured) < abs(predicted - measured)
    assert learnt["low"] < measured < learnt["high"]
