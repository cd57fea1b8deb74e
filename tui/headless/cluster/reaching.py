"""The options that say how the nodes of a cluster are reached."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click

from capacity_tui.engine.nodes.launchers import Launcher, chosen_launcher

P = ParamSpec("P")
R = TypeVar("R")


def reaching(command: Callable[Concatenate[Launcher, P], R]) -> Callable[P, R]:
    """Give a command ``--slurm``, ``--ray`` and ``--hosts``, and hand it the launcher that they choose."""

    @wraps(command)
    def with_launcher(choose: Callable[[], Launcher], /, *words: P.args, **options: P.kwargs) -> R:
        return command(choose(), *words, **options)

    return reaching_later(with_launcher)


def reaching_later(command: Callable[Concatenate[Callable[[], Launcher], P], R]) -> Callable[P, R]:
    """Give a command ``--slurm``, ``--ray`` and ``--hosts``, and hand it what chooses the launcher when asked."""

    @click.option("--slurm", is_flag=True, help="Reach the nodes through Slurm; what is taken where it is installed.")
    @click.option(
        "--ray", metavar="ADDRESS", help="Reach them through a Ray cluster: auto, or the address of its head."
    )
    @click.option(
        "--hosts",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Reach them by ssh: a file with a host a line, and rack=NAME behind it where that is known.",
    )
    @wraps(command)
    def with_choice(*words: P.args, **options: P.kwargs) -> R:
        slurm, ray, hosts = (options.pop(name) for name in ("slurm", "ray", "hosts"))

        def choose() -> Launcher:
            return chosen_launcher(
                bool(slurm), None if ray is None else str(ray), hosts if isinstance(hosts, Path) else None
            )

        return command(choose, *words, **options)

    return with_choice
