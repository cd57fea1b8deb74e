"""A real training with torch is followed by its log, and laid beside what was predicted of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from capacity_tui.engine.runs.history import History
from capacity_tui.tui.cli import main

pytest.importorskip("torch")

PROGRAM = Path(__file__).with_name("trained_decoder.py")
STEPS = 6
SPEC = {
    "layers": 4, "hidden": 256, "heads": 8, "kv_heads": 8, "ffn": 1024, "gated": False, "vocab": 2000,
    "tied_embeddings": True, "learned_positions": True, "norm": "layernorm", "biases": True,
}  # fmt: skip
PLAN = {
    "task": "train",
    "model": {"name": "transformer_decoder", "spec": SPEC},
    "training": {
        "seq_len": 128, "micro_batch": 4, "global_batch": 4, "steps": STEPS, "precision": "fp32", "optimizer": "adamw",
        "attention": "sdpa",
    },
    "hardware": {"name": "detected"},
}  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory of a process is counted otherwise elsewhere")
def test_a_training_is_followed_and_compared(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(tmp_path / "history.sqlite"))
    plan, lines = tmp_path / "plan.yaml", tmp_path / "looks.jsonl"
    plan.write_text(json.dumps(PLAN))
    arguments = ["monitor", "--interval", "0.5", "--plan", str(plan), "--jsonl", str(lines)]
    assert main([*arguments, "--", sys.executable, str(PROGRAM), str(STEPS)]) == 0
    looks = [json.loads(line) for line in lines.read_text().splitlines()]
    last = looks[-1]
    losses = [look["loss"] for look in looks if look["event"] == "state" and "loss" in look]
    assert last["step"] == STEPS - 1
    assert losses[-1] < losses[0]
    compared = {each["figure"]: each for each in last["compared"]}
    # How long a step takes depends on who else works here; what it holds does not.
    assert compared["computation.step_seconds"]["ratio"] > 0
    assert compared["memory.reserved_bytes"]["verdict"] == "inside"
    (run,) = History(tmp_path / "history.sqlite").find()
    assert run.kind == "run"
    assert set(run.ratio) >= {"computation.step_seconds", "memory.reserved_bytes"}
    assert "iter 0: loss" in capfd.readouterr().out
