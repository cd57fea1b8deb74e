"""What Slurm says of energy and turns goes into the history; its commands answer as where nodes measure it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity_tui.engine.nodes.jobs.submitted_jobs import SubmittedJob
from capacity_tui.engine.runs.history import History, history_entry
from capacity_tui.engine.solve import answer
from capacity_tui.tui.cli import main
from tests.plans import TRAINING, plan_of

SEPARATOR = "\x1f"
FIRST_TURN = (
    *("7", "PREEMPTED", "gpu", "2", "a[1-2]", "1800", "60"),
    *("2026-11-20T10:00:00", "2026-11-20T10:05:00", "2026-11-20T10:35:00", "3600000", "billing=2,energy=3600000"),
    *("0:15", "pretrain"),
)
LAST_TURN = (
    *("7", "COMPLETED", "gpu", "2", "a[1-2]", "3600", "60"),
    *("2026-11-20T10:35:00", "2026-11-20T11:00:00", "2026-11-20T12:00:00", "7200000", "billing=2,energy=7200000"),
    *("0:0", "pretrain"),
)
RUNNING = (
    *("8", "RUNNING", "gpu", "2", "a[1-2]", "5:00", "1:00:00", "2026-11-20T12:00:00", "2026-11-20T12:01:00"),
    *("None", "gres/gpu:8", "finetune"),
)
NODES = "\n".join(f"NodeName=a{n} CPUTot=192 State=ALLOCATED Partitions=gpu CurrentWatts=4100" for n in (1, 2))
SAID = {
    "squeue": SEPARATOR.join(RUNNING),
    "sacct": "\n".join(SEPARATOR.join(turn) for turn in (FIRST_TURN, LAST_TURN)),
    "scontrol": f"ClusterName = watts\n{NODES}",
}


@pytest.fixture
def slurm_that_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"CAPACITY_TUI_{name}", str(tmp_path / name))
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(tmp_path / "history.sqlite"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name, said in SAID.items():
        (tmp_path / f"{name}.said").write_text(said + "\n")
        (tmp_path / name).write_text('#!/bin/sh\ncat "$0.said"\n')
        (tmp_path / name).chmod(0o755)


def test_energy_of_all_turns_is_kept_beside_what_was_predicted(
    slurm_that_measures: None, capsys: pytest.CaptureFixture[str]
) -> None:
    SubmittedJob(
        "watts", "7", history_entry(answer(plan_of(TRAINING, {"training.tokens": 1e9})), "run"), usd_per_hour=10.0
    ).write()
    assert main(["cluster", "jobs", "--slurm", "--format", "json"]) == 0
    jobs = {job["id"]: job for job in json.loads(capsys.readouterr().out)["jobs"]}
    assert jobs["7"]["turns"] == 2
    assert jobs["8"]["watts"] == 8200

    (entry,) = History().find()
    assert entry.actual["energy.kwh"] == pytest.approx(3.0)
    assert entry.actual["cost.usd"] == pytest.approx(15.0)
    assert entry.predicted["energy.kwh"]
    main(["cluster", "jobs", "--slurm"])
    assert "job 8: its nodes draw 8.2 kW now" in capsys.readouterr().out
    assert len(History().find()) == 1, "told once"
