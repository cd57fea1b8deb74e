"""Checkpoints that a run leaves on disk: which are complete, which is the newest, how long one takes to save."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.rows import CheckpointFiles
from capacity_tui.engine.observe.guard.whole_files import is_whole

_DEEPEST = 3
"""Levels of folders that are looked through."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint.

    Attributes:
        step: the number in its name; None without one.
        bytes: of all of its files.
        saved_at: when the last of it was written, in seconds since 1970.
        seconds: it took to be written at least.
    """

    path: Path
    step: int | None
    bytes: int
    saved_at: float
    seconds: float


class CheckpointFolder:
    """A folder in which a run leaves checkpoints; it need not exist yet.

    Args:
        kinds: what checkpoints look like; those of the catalogue by default.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        kinds: Iterable[CheckpointFiles] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._kinds = tuple(load_catalog().checkpoint_files.values() if kinds is None else kinds)
        self._clock = clock
        self._first_seen: dict[Path, float] = {}
        self._before: dict[Path, Checkpoint] = {}
        self._reported: dict[Path, float] = {path: checkpoint.saved_at for path, _, checkpoint in self._candidates()}

    def complete(self) -> tuple[Checkpoint, ...]:
        """Return those that are complete, the newest first; for a run that writes no more."""
        whole = [checkpoint for _, kind, checkpoint in self._candidates() if _is_complete(checkpoint, kind)]
        return tuple(sorted(whole, key=lambda checkpoint: checkpoint.saved_at, reverse=True))

    def look(self) -> tuple[Checkpoint, ...]:
        """Return those that were completed since the last look, also while the run writes: their size stands still."""
        now, present, new = self._clock(), {}, []
        for path, kind, checkpoint in self._candidates():
            present[path] = checkpoint
            if self._reported.get(path) == checkpoint.saved_at:
                continue
            self._first_seen.setdefault(path, now)
            if checkpoint == self._before.get(path) and _is_complete(checkpoint, kind):
                self._reported[path] = checkpoint.saved_at
                seen = self._first_seen.pop(path)
                seconds = max(checkpoint.seconds, checkpoint.saved_at - seen)
                new.append(Checkpoint(path, checkpoint.step, checkpoint.bytes, checkpoint.saved_at, seconds))
        self._before = present
        return tuple(sorted(new, key=lambda checkpoint: checkpoint.saved_at))

    def _candidates(self) -> Iterator[tuple[Path, CheckpointFiles, Checkpoint]]:
        """Yield what is called like a checkpoint, complete or not."""
        for path in _below(self.folder, _DEEPEST, self._kind):
            kind, checkpoint = self._kind(path), _measured(path)
            if kind is not None and checkpoint is not None:
                yield path, kind, checkpoint

    def _kind(self, path: Path) -> CheckpointFiles | None:
        kind = next((kind for kind in self._kinds if any(map(path.match, kind.names))), None)
        is_mark = kind is not None and any(path.match(glob.format(name="*")) for glob in kind.unfinished)
        return None if is_mark else kind


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
    markers = [glob.format(name=_glob_safe(path.stem if path.is_file() else path.name)) for glob in kind.unfinished]
    if any(any(folder.glob(glob)) for glob in markers for folder in (path.parent, path) if folder.is_dir()):
        return False
    return all(map(is_whole, _files(path)))


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


def _glob_safe(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)
