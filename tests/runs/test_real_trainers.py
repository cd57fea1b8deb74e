"""Trainers of others under guard, on tiny models: killed, and taken up again from their own checkpoints.

Each runs where its packages are installed beside torch; CAPACITY_TEST_TRAINERS names another Python that has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.runs.guard import Listeners, begin, new_order
from capacity_tui.engine.runs.guard.failures import Kernel, KernelWatch
from capacity_tui.engine.solve import answer

PYTHON = os.environ.get("CAPACITY_TEST_TRAINERS", sys.executable)
# What each program imports, and how the checkpoint of its fourth step is called.
PROGRAMS = {
    "tiny_trainer.py": ("accelerate, torch, transformers", "checkpoint-4"),
    "tiny_trl.py": ("datasets, torch, transformers, trl", "checkpoint-4"),
    "tiny_lightning.py": ("lightning, torch", "epoch=0-step=4.ckpt"),
}
PLAN = """
task: train
model: {name: transformer_decoder, spec: {layers: 2, hidden: 32, heads: 2, vocab: 64}}
training: {seq_len: 16, micro_batch: 2, global_batch: 2, steps: 8, precision: fp32, framework: transformers}
hardware: {name: cpu-4c-2.5ghz-basic}
watch: {interval: 0.5}
recovery: {max_restarts: 2, killed: restart}
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_killed_trainer_goes_on_from_its_own_checkpoint(program, tmp_path, monkeypatch):
    packages, checkpoint = PROGRAMS[program]
    modules = " and ".join(f"importlib.util.find_spec('{name}')" for name in packages.split(", "))
    asked = [PYTHON, "-c", f"import importlib.util, sys; sys.exit(not ({modules}))"]
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip(f"not all of {packages} are installed")
    monkeypatch.setenv("CAPACITY_TUI_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(KernelWatch, "report", lambda _: Kernel(oom_kills=0))
    monkeypatch.chdir(tmp_path)
    told, entries = [], []
    listeners = Listeners(told.append, lambda _, __: None, lambda _, __: None, entries.append)
    words = [PYTHON, str(Path(__file__).with_name(program)), "out", "{run.attempt}", "{run.checkpoint}"]
    estimated = answer(plan_from_text(PLAN, "plan.yaml"))
    order = new_order(words, estimated.plan, checkpoints=Path("out"))
    assert begin(order, estimated, listeners).run() == 0
    kinds = [event["kind"] for event in told if event["event"] == "failure"]
    assert kinds == ["killed"]
    first, second = (event for event in told if event["event"] == "started")
    assert first["checkpoint"] is None
    assert second["checkpoint"].endswith(checkpoint)
    (entry,) = entries
    assert entry.details["restarts"] == 1
    assert entry.details["exit_code"] == 0
