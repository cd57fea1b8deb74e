"""Checkpoints on disk: which are complete and the newest, and how often saving one pays."""

from __future__ import annotations

import json
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from glob import escape
from pathlib import Path
from typing import BinaryIO

import numpy as np

from capacity_tui.engine.catalog import load_catalog, named_numbers
from capacity_tui.engine.catalog.rows import CheckpointFiles
from capacity_tui.engine.estimate import Answer, checkpoint_period, failure_interval
from capacity_tui.engine.keys import Key
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.guard.pauses import NUMBERS
from capacity_tui.engine.units import format_percent, format_seconds

_DEEPEST = 3  # Levels of folders that are looked through
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint."""

    path: Path
    step: int | None  # the number in its name; None without one
    bytes: int  # of all of its files
    saved_at: float  # when the last of it was written, in seconds since 1970
    seconds: float  # it took to be written at least


class CheckpointFolder:
    """A folder in which a run leaves checkpoints of some kinds, by two clocks in seconds; it need not exist yet."""

    def __init__(
        self,
        folder: Path,
        kinds: Iterable[CheckpointFiles] | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self._kinds = tuple(load_catalog().checkpoint_files.values() if kinds is None else kinds)
        self._last = tuple(kind.last for kind in self._kinds if kind.last is not None)
        self._clock, self._steady = clock, steady
        self._looks, self._looked_at = 0, steady()
        self._first_seen: dict[Path, tuple[float, float]] = {}
        self._before: dict[Path, Checkpoint] = {}
        self._reported: dict[Path, float] = {path: checkpoint.saved_at for path, _, checkpoint in self._candidates()}
        self._written: dict[Path, tuple[float, int]] = {path: (at, 0) for path, at in self._reported.items()}

    def complete(self) -> tuple[Checkpoint, ...]:
        """Return those that are complete, the newest first; for a run that writes no more.

        What was seen to be written later is newer, whatever time the clock of the files had then.
        """
        candidates = [(self._place(checkpoint), kind, checkpoint) for _, kind, checkpoint in self._candidates()]
        complete = [(place, checkpoint) for place, kind, checkpoint in candidates if _is_complete(checkpoint, kind)]
        return tuple(checkpoint for _, checkpoint in sorted(complete, key=lambda pair: pair[0], reverse=True))

    def _place(self, checkpoint: Checkpoint) -> tuple[int, float]:
        """Return the look at which a checkpoint was first seen as it is, and the time of its files."""
        saved_at, look = self._written.get(checkpoint.path, (None, 0))
        return look if saved_at == checkpoint.saved_at else self._looks + 1, checkpoint.saved_at

    def look(self) -> tuple[Checkpoint, ...]:
        """Return those completed since the last call, also while the run writes: their size no longer changes."""
        now, steady, present, new = self._clock(), self._steady(), {}, []
        for path, kind, checkpoint in self._candidates():
            present[path] = checkpoint
            self._written[path] = (checkpoint.saved_at, self._place(checkpoint)[0])
            if self._reported.get(path) == checkpoint.saved_at:
                continue
            self._first_seen.setdefault(path, (now, self._looked_at))
            if checkpoint == self._before.get(path) and _is_complete(checkpoint, kind):
                self._reported[path] = checkpoint.saved_at
                first_seen, looked_at = self._first_seen.pop(path)
                # No longer than since it was not there yet, whatever the clock of the files did.
                seconds = min(max(checkpoint.seconds, checkpoint.saved_at - first_seen), steady - looked_at)
                new.append(Checkpoint(path, checkpoint.step, checkpoint.bytes, checkpoint.saved_at, seconds))
        self._before, self._looks, self._looked_at = present, self._looks + 1, steady
        return tuple(sorted(new, key=lambda checkpoint: checkpoint.saved_at))

    def _candidates(self) -> Iterator[tuple[Path, CheckpointFiles, Checkpoint]]:
        for path in _below(self.folder, _DEEPEST, self._kind):
            kind, checkpoint = self._kind(path), _measured(path)
            if kind is not None and checkpoint is not None:
                yield path, kind, checkpoint

    def _kind(self, path: Path) -> CheckpointFiles | None:
        kind = next((kind for kind in self._kinds if _is_of(path, kind)), None)
        marks = () if kind is None else [glob.format(name="*") for glob in kind.unfinished]
        return None if any(map(path.match, (*marks, *self._last))) else kind


def _is_of(path: Path, kind: CheckpointFiles) -> bool:
    """Return whether a file or folder is called like a checkpoint of some software, and lies where that writes."""
    return any(map(path.match, kind.names)) and (kind.sibling is None or path.with_name(kind.sibling).is_file())


def _below(folder: Path, levels: int, is_one: Callable[[Path], object]) -> Iterator[Path]:
    """Yield checkpoints in a folder and in folders below it, but none within another."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if is_one(entry):
            yield entry
        elif levels > 1 and entry.is_dir() and not entry.is_symlink():
            yield from _below(entry, levels - 1, is_one)


def _measured(path: Path) -> Checkpoint | None:
    """Return a checkpoint as it is now; None where it vanishes meanwhile, or is empty."""
    try:
        facts = [file.stat() for file in _files(path)]
    except OSError:
        return None
    if not facts:
        return None
    times = [fact.st_mtime for fact in facts]
    numbers = _NUMBER.findall(path.name)
    step = int(numbers[-1]) if numbers else None
    return Checkpoint(path, step, sum(fact.st_size for fact in facts), max(times), max(times) - min(times))


def _is_complete(checkpoint: Checkpoint, kind: CheckpointFiles) -> bool:
    path = checkpoint.path
    if path.is_dir() and not all(any(path.rglob(name)) for name in kind.holds):
        return False
    if kind.newest is not None and not _is_named(checkpoint, path.parent / kind.newest):
        return False
    if kind.last is not None and not _is_behind(path.parent / kind.last, checkpoint.saved_at):
        return False
    name = escape(path.stem if path.is_file() else path.name)
    markers = [glob.format(name=name) for glob in kind.unfinished]
    if any(any(folder.glob(glob)) for glob in markers for folder in (path.parent, path) if folder.is_dir()):
        return False
    return all(map(is_whole, _files(path)))


def _is_behind(last: Path, saved_at: float) -> bool:
    """Return whether a file was written to its end, and not before a time in seconds since 1970."""
    try:
        return last.stat().st_mtime >= saved_at and is_whole(last)
    except OSError:
        return False


def _is_named(checkpoint: Checkpoint, newest: Path) -> bool:
    """Return whether a checkpoint is the one that a file names as the newest complete one, or came before it."""
    try:
        named = newest.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return False
    numbers = _NUMBER.findall(named)
    return named == checkpoint.path.name or (
        checkpoint.step is not None and bool(numbers) and checkpoint.step <= int(numbers[-1])
    )


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]


_ARCHIVE = b"PK\x03\x04"  # What archives begin with; torch writes its files as such, with a record at their end
_LARGEST_JSON = 1 << 26
_INDEX = ".index.json"
_HEADER_LENGTH = 8


def is_whole(path: Path) -> bool:
    """Return whether a file is complete by its structure: archives, tensors behind a header, documents, indexes.

    Others count as complete, unless they are empty where their like never is.
    """
    try:
        if path.suffix == ".json":
            return _is_document(path)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if path.suffix == ".safetensors":
                return _has_all_tensors(file, size)
            if file.read(len(_ARCHIVE)) == _ARCHIVE:
                return zipfile.is_zipfile(file)
            return size > 0 or path.suffix not in (".pt", ".pth", ".bin", ".ckpt", ".npz")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _is_document(path: Path) -> bool:
    """Return whether a document ends, and the files that an index names are there."""
    if path.stat().st_size > _LARGEST_JSON:
        return True
    document = json.loads(path.read_bytes())
    if not path.name.endswith(_INDEX):
        return True
    return all((path.parent / name).is_file() for name in set(document["weight_map"].values()))


def _has_all_tensors(file: BinaryIO, size: int) -> bool:
    """Return whether the tensors that the header lists end where the file does."""
    length = int.from_bytes(file.read(_HEADER_LENGTH), "little")
    if not 0 < length <= min(size, _LARGEST_JSON):
        return False
    header = json.loads(file.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return _HEADER_LENGTH + length + max(ends, default=0) == size


@dataclass(frozen=True, slots=True)
class SaveInterval:
    """Work between two checkpoints."""

    seconds: float
    steps: int | None  # optimizer steps in that time, at least one; None where the time of a step is not known
    reason: str


def save_interval(answer: Answer, save_seconds: float, step_seconds: float | None = None) -> SaveInterval | None:
    """Return how long to work between two checkpoints: as the plan says, else by what saving takes.

    Where the mode chose, work between checkpoints is never longer than its choice or than what loses least (Young,
    Daly), and never so short that saving takes more than a share of the time, unless failures make that pay.

    Returns:
        The interval; None where the plan has none.
    """
    every = answer.plan.recovery.checkpoint_every
    if not isinstance(every, float):
        return None
    if Key.RECOVERY_CHECKPOINT_EVERY not in answer.estimate.basis.running:
        return _interval(every, step_seconds, "set in the plan")
    numbers = named_numbers(NUMBERS)
    between = seconds_between_failures(answer)
    best = float(checkpoint_period(save_seconds, between))
    most_saving = numbers["most_saving"].value
    bounded = save_seconds * (1.0 - most_saving) / most_saving
    interval = min(every, best)
    takes = f"saving takes {format_seconds(save_seconds)}"
    if interval < bounded and interval < best:
        seconds = min(bounded, best)
        return _interval(
            seconds, step_seconds, f"{takes}: {format_percent(most_saving)} of the time goes into it at most"
        )
    if best < every:
        why = f"{takes}, something fails every {format_seconds(between)}: that loses least (Young, Daly)"
        return _interval(best, step_seconds, why)
    return _interval(every, step_seconds, answer.estimate.basis.running[Key.RECOVERY_CHECKPOINT_EVERY])


def seconds_between_failures(answer: Answer) -> float:
    """Return the mean time between two failures of a run: those of its devices, and spot capacity taken back."""
    cluster = answer.resolved.cluster
    spot = cluster.price.interruptions if cluster.price.is_spot else None
    taken_back = np.inf if spot is None else spot.seconds_between
    return float(failure_interval(float(np.max(cluster.devices)), cluster.failures.device_hours.value, taken_back))


def _interval(seconds: float, step_seconds: float | None, reason: str) -> SaveInterval:
    steps = None if not step_seconds else max(1, round(seconds / step_seconds))
    return SaveInterval(seconds, steps, reason)
