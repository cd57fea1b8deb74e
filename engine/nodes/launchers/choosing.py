"""Which launcher reaches the nodes: the one that is named, else the one that is there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.nodes.launchers.launcher import Launcher, read_hosts
from capacity_tui.engine.nodes.launchers.ray_nodes import RayNodes
from capacity_tui.engine.nodes.launchers.slurm import Slurm

RAY_ADDRESS = "RAY_ADDRESS"


def chosen_launcher(slurm: bool = False, ray: str | None = None, hosts: Path | None = None) -> Launcher:
    """Return what reaches the nodes of a cluster.

    Where nothing is named, Slurm's commands are taken if they are here, then the Ray cluster that ``RAY_ADDRESS`` of
    the environment names.

    Args:
        hosts: a file of hosts for ``ssh``.

    Raises:
        LauncherError: several are named, or none is there.
    """
    if sum((slurm, ray is not None, hosts is not None)) > 1:
        raise LauncherError(
            "several ways to reach the nodes", hint="give one of --slurm, --ray ADDRESS and --hosts FILE"
        )
    if hosts is not None:
        return read_hosts(hosts)
    if ray is not None:
        return RayNodes(ray)
    if slurm or shutil.which("scontrol"):
        return Slurm()
    if os.environ.get(RAY_ADDRESS):
        return RayNodes(os.environ[RAY_ADDRESS])
    hint = "name hosts with --hosts FILE, or a Ray cluster with --ray ADDRESS"
    raise LauncherError("no cluster is known here: Slurm is not installed", hint=hint)
