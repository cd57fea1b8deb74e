"""Options that several commands share: where the history is kept, and how the nodes of a cluster are reached."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.cli.output import tell

if TYPE_CHECKING:
    from capacity_tui.engine.estimate import Answer
    from capacity_tui.engine.nodes import Launcher
    from capacity_tui.engine.runs.history import History, HistoryPlace, RunRecord


CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def history_option(command: CommandT) -> CommandT:
    """Add ``--no-history`` to a command that keeps something by itself, as its argument ``no_history``."""
    return click.option("--no-history", is_flag=True, help="Do not write to the history.")(command)


def store_option(command: CommandT) -> CommandT:
    """Add ``--store`` to a command about the history, as its argument ``store``."""
    return click.option(
        "--store", metavar="PLACE", help="A file or a MongoDB URI, instead of the one in settings or environment."
    )(command)


def keep_entries(entries: Iterable[RunRecord], no_history: bool = False) -> None:
    """Keep entries; what goes wrong with that is reported in one line, and stops nothing."""
    if no_history:
        return
    from capacity_tui.engine.runs.history import record_run

    try:
        place = chosen_place()
    except CapacityError as error:
        tell(f"capacity-tui: not kept in the history: {error.one_line()}")
        return
    if not place.is_on:
        return
    for note in dict.fromkeys(record_run(entry, place) for entry in entries):
        if note:
            tell(f"capacity-tui: {note}; --no-history keeps nothing")


def keep_estimates(answers: Iterable[Answer], no_history: bool) -> None:
    """Keep what was estimated of plans, as ``keep_entries`` does."""
    if not no_history:
        from capacity_tui.engine.runs.history import history_entry

        keep_entries(history_entry(answer) for answer in answers)


def opened_history(store: str | None = None) -> History:
    """Return the history of the place that was named, or chosen before.

    Raises:
        CapacityError: the settings cannot be read.
    """
    from capacity_tui.engine.runs.history import History

    return History(chosen_place(store))


def tell_notes(history: History) -> None:
    """Tell what happened to a history, once."""
    for note in history.notes:
        tell(f"capacity-tui: {note}")
    history.notes.clear()


def chosen_place(store: str | None = None) -> HistoryPlace:
    """Return where the history is kept.

    Raises:
        CapacityError: the settings cannot be read.
    """
    from capacity_tui.engine.runs.history import VARIABLE as HISTORY_VARIABLE
    from capacity_tui.engine.runs.history import history_place

    if store or os.environ.get(HISTORY_VARIABLE):
        return history_place(store)
    from capacity_tui.tui.settings import settings_file

    try:
        text = settings_file().read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    # A command that only estimates should not wait for settings to be parsed that say nothing of the history.
    if "history" not in text:
        return history_place()
    from capacity_tui.tui.settings import load

    return history_place(setting=load(settings_file()).history)


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
            from capacity_tui.engine.nodes import chosen_launcher

            return chosen_launcher(
                bool(slurm),
                None if ray is None else str(ray),
                hosts if isinstance(hosts, Path) else None,
                str(context or "") if is_kubernetes else None,
                str(namespace or ""),
            )

        return command(choose, *words, **options)

    return with_choice
