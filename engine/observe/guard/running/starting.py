"""What an attempt is started with: words and environment with the plan's values, copies of files, a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from capacity_tui.engine.files import make_folder, write_atomically
from capacity_tui.engine.observe.guard.checkpoints import Checkpoint, CheckpointFolder
from capacity_tui.engine.observe.guard.placeholders import (
    ATTEMPT,
    CHECKPOINT,
    FOLDER,
    RUN,
    environment_of,
    filled_file,
    filled_words,
    values_of,
)
from capacity_tui.engine.observe.guard.running.order import Order


class Start(NamedTuple):
    """What an attempt is started with.

    Attributes:
        words: the command.
        variables: what is added to its environment.
        copies: files as the command gets them, by where those copies lie.
    """

    words: tuple[str, ...]
    variables: Mapping[str, str]
    copies: Mapping[Path, str]


def start_of(order: Order, folder: Path, run: str, checkpoint: Checkpoint | None) -> Start:
    """Return what the attempt of an order is started with; nothing is written.

    Args:
        order: what is run.
        folder: of the attempt.
        run: id of the run.
        checkpoint: to start from; None to start from nothing.

    Raises:
        CapacityError: a file cannot be read, or a placeholder cannot be filled.
    """
    of_run = {RUN: run, ATTEMPT: str(order.attempt), FOLDER: str(folder.parent)}
    if checkpoint is not None:
        of_run[CHECKPOINT] = str(checkpoint.path)
    values = values_of(order.plan, of_run)
    places = {file: folder / Path(file).name for file in order.files}
    copies = {copy: filled_file(order.work / file, values) for file, copy in places.items()}
    words = filled_words([_with_copies(word, places) for word in order.words], values)
    variables: dict[str, str] = {}
    for step in order.steps:
        variables |= cast("Mapping[str, str]", step.get("environment", {}))
    return Start(words, {**variables, **environment_of(values)}, copies)


def newest_checkpoint(order: Order) -> Checkpoint | None:
    """Return the newest complete checkpoint of an order, or the one before where its last step says so."""
    found = () if order.checkpoints is None else CheckpointFolder(order.checkpoints).complete()
    is_before = bool(order.steps) and order.steps[-1].get("checkpoint") == "before"
    return next(iter(found[1:] if is_before else found), None)


def write_copies(start: Start) -> None:
    """Write the copies of files that a command gets.

    Raises:
        StorageError: one cannot be written.
    """
    for path, text in start.copies.items():
        make_folder(path.parent)
        write_atomically(path, text, overwrite=True)


def whole_environment(start: Start) -> dict[str, str]:
    """Return the environment of a command; Python writes its lines when they are said, not when a buffer is full."""
    return {"PYTHONUNBUFFERED": "1", **os.environ, **start.variables}


def _with_copies(word: str, places: Mapping[str, Path]) -> str:
    """Return a word with copies in the place of files, alone or behind ``--option=``."""
    option, equals, value = word.partition("=")
    if word in places:
        return str(places[word])
    return f"{option}={places[value]}" if equals and value in places else word
