"""Processes that torchrun starts on two nodes meet: through the script for hosts over ssh, and that for Slurm."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from capacity_tui.engine.nodes.jobs import SlurmOptions
from capacity_tui.engine.nodes.jobs.job_request import Launch
from capacity_tui.engine.nodes.jobs.proposal import hosts_proposal
from capacity_tui.engine.nodes.jobs.slurm_jobs import batch_script
from tests.nodes.slurm_cluster import SlurmCluster, free_ports
from tests.nodes.test_job_scripts import request

TRAIN = """\
import os, sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
rank, node = dist.get_rank(), os.environ["GROUP_RANK"]
open(f"rank{rank}", "w").write(f"{node} {dist.get_world_size()} {total.item():g} {sys.argv[1]}")
dist.destroy_process_group()
"""


LAUNCH = Launch(("train.py", "two words"), "torchrun", is_guarded=False)
TOLD = ["0 2 3 two words", "1 2 3 two words"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    pytest.importorskip("torch", reason="torch is not installed")
    folder = tmp_path / "my work"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    return folder


def told(work: Path) -> list[str]:
    return sorted(file.read_text() for file in work.glob("rank*"))


def test_ranks_of_two_hosts_meet(ssh_hosts: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(*free_ports(1)))
    script = hosts_proposal(replace(request(), per_node=1), LAUNCH, ("n1", "n2")).script
    done = subprocess.run(
        ["bash", "-s"], input=script, text=True, cwd=work, timeout=120, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert told(work) == TOLD


def test_ranks_of_a_slurm_job_meet(slurm: SlurmCluster, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its nodes are this machine under other names, which no resolver knows: what names them says this one."""
    monkeypatch.chdir(work)
    (work / "scontrol").write_text(
        f'#!/bin/sh\n[ "$2" = hostnames ] && echo localhost || exec {shutil.which("scontrol")} "$@"\n'
    )
    (work / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{work}:{Path(sys.executable).parent}", prepend=":")
    wanted = replace(request(), per_node=1, whole_nodes=False, limit_seconds=600.0)
    (work / "job.sh").write_text(batch_script(wanted, LAUNCH, SlurmOptions(), "", "gpu", "h100"))
    job = slurm.run("sbatch", "--parsable", "job.sh").strip()
    end = time.monotonic() + 120
    while slurm.run("squeue", "-h", "-j", job, "--states=PD,R,CG").strip() and time.monotonic() < end:
        time.sleep(0.2)
    assert told(work) == TOLD, "".join(file.read_text() for file in work.glob("*.out"))
