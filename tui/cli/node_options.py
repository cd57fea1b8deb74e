"""Options that say how the nodes of a cluster are reached."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click

from capacity_tui.engine.nodes import Launcher, chosen_launcher

P = ParamSpec("P")

R = TypeVar("R")


def reaching(command: Callable[Concatenate[Launcher, P], R]) -> Callable[P, R]:
    """Give a command the options that say how nodes are reached, and hand it the launcher that they choose."""

    @wraps(command)
    def with_launcher(choose: Callable[[], Launcher], /, *words: P.args, **options: P.kwargs) -> R:
        return command(choose(), *words, **options)

    return reaching_later(with_launcher)


def reaching_later(command: Callable[Concatenate[Callable[[], Launcher], P], R]) -> Callable[P, R]:
    """Give a command the options that say how nodes are reached, and hand it what chooses the launcher when asked."""

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
    @click.option("--kubernetes", is_flag=True, help="Read the nodes from the API server that kubectl reaches.")
    @click.option("--context", metavar="NAME", help="Context of kubectl; the current one by default.")
    @click.option("--namespace", metavar="NAME", help="Namespace of Kubernetes; that of the context by default.")
    @wraps(command)
    def with_choice(*words: P.args, **options: P.kwargs) -> R:
        slurm, ray, hosts = (options.pop(name) for name in ("slurm", "ray", "hosts"))
        is_kubernetes, context, namespace = (options.pop(name) for name in ("kubernetes", "context", "namespace"))
        for option, value in (("--context", context), ("--namespace", namespace)):
            if value is not None and not is_kubernetes:
                raise click.UsageError(f"{option} is one of kubectl: give --kubernetes too")

        def choose() -> Launcher:
            return chosen_launcher(
                bool(slurm),
                None if ray is None else str(ray),
                hosts if isinstance(hosts, Path) else None,
                str(context or "") if is_kubernetes else None,
                str(namespace or ""),
            )

        return command(choose, *words, **options)

    return with_choice
