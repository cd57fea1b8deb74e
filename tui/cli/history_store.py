"""What commands keep in the history, and where: as an option, the environment and the settings say."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.cli.output import tell

if TYPE_CHECKING:
    from capacity_tui.engine.estimate import Answer
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
