"""From nodes to plans: a cluster is detected and kept under a name, and a plan that names it runs on its nodes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from capacity_tui.tui.cli.program import run_command
from tests.machine.recorded import RECORDINGS
from tests.nodes.slurm_cluster import GPU_NODES, PROCESSOR_NODES, SlurmCluster

ACCELERATED = ("epyc_server", "mi300x_node")
"""Recordings that make up a node with two devices: host and network of one, devices of the other."""
# The shell of a step finds this one first: each node tells what was recorded for it.
SHELL = '#!/bin/sh\nexec cat "{folder}/$SLURMD_NODENAME.txt"\n'


@pytest.fixture
def recorded_nodes(slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmCluster:
    """Slurm whose nodes answer as recorded machines: three with accelerators in two racks, one without."""
    texts = {name: (RECORDINGS / f"{name}.txt").read_text().partition("\n")[2] for name in ACCELERATED}
    for node in (*GPU_NODES, *PROCESSOR_NODES):
        names = ACCELERATED if node in GPU_NODES else ACCELERATED[:1]
        (tmp_path / f"{node}.txt").write_text("".join(texts[name] for name in names))
    shell = tmp_path / "bin" / "sh"
    shell.parent.mkdir()
    shell.write_text(SHELL.format(folder=tmp_path))
    shell.chmod(0o755)
    monkeypatch.setenv("PATH", str(shell.parent), prepend=os.pathsep)
    return slurm


def test_a_plan_runs_on_the_nodes_that_were_detected(
    recorded_nodes: SlurmCluster, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["cluster", "detect", "--slurm", "--name", "lab", "--format", "json"]) == 0
    detected = json.loads(capsys.readouterr().out)
    assert [kind["nodes"] for kind in detected["kinds"]] == [3, 1]
    assert any("no accelerators" in words for words in detected["left_out"])

    asked = ["plan", "--model", "llama-3.2-1b", "--task", "lora", "--gpu", "lab", "--format", "json"]
    assert run_command(asked) == 0
    basis = json.loads(capsys.readouterr().out)["basis"]
    assert basis["devices"] == "6 x mi300x"
    assert [(level["name"], level["devices"]) for level in basis["levels"]] == [("node", 2), ("rack", 4), ("fabric", 6)]
    assert [level["link"] for level in basis["levels"][1:]] == ["InfiniBand NDR 4x"] * 2
    assert basis["levels"][1]["bandwidth"] * 2 == 400e9 / 8, "one port of 400 Gb/s serves the two devices of a node"
