"""What is run under guard, as it stands in the folder of its run, and what each attempt of it is started with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple, cast

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import make_folder, write_atomically
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.runs.guard.checkpoints import Checkpoint, CheckpointFolder
from capacity_tui.engine.runs.guard.placeholders import (
    ATTEMPT,
    CHECKPOINT,
    FOLDER,
    RUN,
    RewrittenFiles,
    environment_of,
    filled_words,
    keys_in,
    values_of,
)

_FILE = "guard.json"


@dataclass(frozen=True)
class Order:
    """What is run under guard."""

    words: tuple[str, ...]  # the command with its placeholders
    plan: Plan  # every default filled in, as changed so far
    # of which the command gets copies with values in the place of placeholders, as its words name them
    files: tuple[str, ...]
    checkpoints: Path | None  # folder of its checkpoints; None where nothing is known of them
    log: str  # where it writes its log besides its output; empty for nowhere
    work: Path
    attempt: int = 1  # how often it was started, this time included
    steps: tuple[Mapping[str, object], ...] = ()  # what was changed after each end, as plain data

    def next(self, plan: Plan, step: Mapping[str, object]) -> Order:
        """Return the order of the next attempt, with a changed plan."""
        return replace(self, plan=plan, attempt=self.attempt + 1, steps=(*self.steps, step))

    def write(self, folder: Path) -> None:
        """Write it into the folder of the run; raises StorageError if it cannot be written."""
        data = {field.name: getattr(self, field.name) for field in fields(self)} | {"plan": self.plan.plain_data()}
        write_atomically(folder / _FILE, json.dumps(data, default=str) + "\n", overwrite=True)


def read_order(folder: Path) -> Order:
    """Return what is run in the folder of a run; raises StorageError where that is not guarded, or cannot be read."""
    try:
        data = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return record_of_data(Order, {**data, "plan": plan_from_data(data["plan"], str(folder / _FILE))})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StorageError("no guarded run can be read there", str(error), place=Place(str(folder))) from None


class Start(NamedTuple):
    """What an attempt is started with."""

    words: tuple[str, ...]
    variables: Mapping[str, str]  # what is added to its environment
    copies: Mapping[Path, str]  # files as the command gets them, by where those copies lie


def start_of(order: Order, folder: Path, run: str, checkpoint: Checkpoint | None) -> Start:
    """Return what the attempt of an order is started with; nothing is written.

    Args:
        checkpoint: to start from; None to start from nothing.

    Raises:
        CapacityError: a file cannot be read or is named by no word, or a placeholder cannot be filled.
    """
    run_values = {RUN: run, ATTEMPT: str(order.attempt), FOLDER: str(folder.parent)}
    if checkpoint is not None:
        run_values[CHECKPOINT] = str(checkpoint.path)
    values = values_of(order.plan, run_values)
    files = RewrittenFiles(order.files, order.work, folder)
    copies, words = files.texts(values), filled_words(files.words(order.words), values)
    variables: dict[str, str] = {}
    for step in order.steps:
        variables |= cast("Mapping[str, str]", step.get("environment", {}))
    return Start(words, {**variables, **environment_of(values)}, copies)


def newest_checkpoint(order: Order, folder: CheckpointFolder | None = None) -> Checkpoint | None:
    """Return the newest complete checkpoint of an order, or the one before where its last step says so.

    Args:
        folder: that of its checkpoints, where it was looked at while they were written.
    """
    folder = folder or (CheckpointFolder(order.checkpoints) if order.checkpoints is not None else None)
    checkpoints = folder.complete() if folder else ()
    is_before = bool(order.steps) and order.steps[-1].get("checkpoint") == "before"
    return next(iter(checkpoints[1:] if is_before else checkpoints), None)


def why_not_from_checkpoint(order: Order) -> str:
    """Return why a command that was ended from outside cannot go on; empty where it can, as whatever serves a model."""
    if order.plan.is_inference:
        return ""
    if order.checkpoints is None:
        return "no folder of its checkpoints is named (--checkpoints)"
    checkpoint = newest_checkpoint(order)
    if checkpoint is None:
        return f"no checkpoint below {order.checkpoints} is complete"
    if not any(f"{{{CHECKPOINT}}}" in text for text in _texts_of(order)):
        return f"nothing of the command takes {{{CHECKPOINT}}}; go on by hand from {checkpoint.path}"
    return ""


def _texts_of(order: Order) -> list[str]:
    """Return the words of a command and the files of which it gets copies, as far as they can be read."""
    texts = [*order.words]
    for file in order.files:
        with suppress(OSError, ValueError):
            texts.append((order.work / file).read_text(encoding="utf-8"))
    return texts


def keys_not_taken(order: Order, change: Mapping[str, object]) -> list[str]:
    """Return the changed fields of a plan where no word and no file of an order takes the value of any of them.

    A command may read its environment instead, of which nothing is known.
    """
    used_keys = {key for text in _texts_of(order) for key in keys_in(text)}
    return [] if used_keys & change.keys() else list(change)


def write_copies(start: Start) -> None:
    """Write the copies of files that a command gets; raises StorageError if one cannot be written."""
    for path, text in start.copies.items():
        make_folder(path.parent)
        write_atomically(path, text, overwrite=True)


def whole_environment(start: Start) -> dict[str, str]:
    """Return the environment of a command; Python writes its lines at once, not when a buffer is full."""
    return {"PYTHONUNBUFFERED": "1", **os.environ, **start.variables}
