"""Edits that no file holds yet, kept where a crash, a kill or a lost line cannot take them.

Each running screen has a file of its own in the state folder. Next to it lies a lock, which the operating system frees
when the program ends, however it ends: a file whose lock is free was left behind. Where a file system has no locks,
nothing is kept.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from itertools import count
from pathlib import Path

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import lock_file, make_folder, set_aside, state_folder, write_atomically
from capacity_tui.engine.record import dataclass
from capacity_tui.tui.store import Store


class UnsavedPlans:
    """The unsaved plans of a store, kept in a swap file."""

    def __init__(self, store: Store, swap: Swap) -> None:
        self._store = store
        self._swap = swap
        self._numbers = count(1)
        self._restored: list[LeftBehind] = []

    def keeping(self) -> Callable[[], None]:
        """Return a function that writes the plans down as they are now; any thread may call it, the newest wins.

        What they were restored from is needed no more once they are written down anew.
        """
        number, unsaved = next(self._numbers), self._store.unsaved

        def keep() -> None:
            plans = [KeptPlan(document.name, str(path or ""), document.dump()) for document, path in unsaved]
            self._swap.keep(plans, number)
            for kept in self._restored:
                kept.discard()

        return keep

    def left_behind(self) -> tuple[LeftBehind, ...]:
        return tuple(self._swap.left_behind())

    def restored_from(self, kept: LeftBehind) -> None:
        self._restored.append(kept)

    def give_up(self) -> None:
        """Keep nothing any more: all is saved, or the user wants none of it."""
        for kept in self._restored:
            kept.discard()
        self._swap.close()


_SUFFIX = ".plans.json"
_MOST_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan with changes that no file holds."""

    name: str
    path: str  # the file it belongs to, empty if it was never saved
    text: str  # the plan as YAML


class LeftBehind:
    """What another run of the program left behind; nobody else is offered it while this one looks at it."""

    def __init__(self, file: Path, lock: int, plans: tuple[KeptPlan, ...], kept_at: datetime) -> None:
        self.plans = plans  # the plans, the last edited first
        self.kept_at = kept_at  # when they were kept
        self._file = file
        self._lock = lock
        self._is_gone = False

    def leave(self) -> None:
        """Leave it to the next run of the program."""
        os.close(self._lock)

    def discard(self) -> None:
        """Remove it for good; once it is removed, nothing more happens."""
        if not self._is_gone:
            self._is_gone = True
            _remove(self._file, self._lock)


class Swap:
    """The file in which this run of the program keeps its edits, by default in the state folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._writing = threading.Lock()
        self._file: Path | None = None
        self._lock: int | None = None
        self._newest = 0
        self._is_closed = False

    def keep(self, plans: Sequence[KeptPlan], number: int) -> None:
        """Keep these plans in place of what was kept before; none removes the file.

        Args:
            plans: the plans, the last edited first.
            number: grows from call to call; an older call that comes late is passed over.

        Raises:
            StorageError: the file cannot be written.
        """
        with self._writing:
            if self._is_closed or number < self._newest:
                return
            self._newest = number
            if not plans:
                self._remove()
                return
            if self._file is None:
                self._begin()
            if self._file is not None:
                write_atomically(self._file, json.dumps([asdict(plan) for plan in plans]), overwrite=True)

    def close(self) -> None:
        """Remove the file: all is saved, or given up."""
        with self._writing:
            self._is_closed = True
            self._remove()

    def left_behind(self) -> list[LeftBehind]:
        """Return what other runs of the program left behind, the latest first; damaged files are set aside."""
        left_behind = []
        with suppress(OSError):
            files = sorted(self._where().glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True)
            for file in files:
                lock = None if file == self._file else _locked(_lock_file(file))
                if lock is not None and (kept := _read(file, lock)):
                    left_behind.append(kept)
        return left_behind

    def _where(self) -> Path:
        return self._folder or state_folder() / "unsaved"

    def _begin(self) -> None:
        """Find a name that no other run of the program has, or has left behind."""
        make_folder(self._where())
        for attempt in count():
            file = self._where() / f"{platform.node()}-{os.getpid()}-{attempt}{_SUFFIX}"
            if file.exists():
                continue
            self._lock = _locked(_lock_file(file))
            self._file = file if self._lock is not None else None
            return

    def _remove(self) -> None:
        if self._file is not None and self._lock is not None:
            _remove(self._file, self._lock)
        self._file = self._lock = None


def _lock_file(file: Path) -> Path:
    return file.with_name(file.name.removesuffix(_SUFFIX) + ".lock")


def _locked(file: Path) -> int | None:
    """Return a handle that holds the lock, None where another program holds it, or there are no locks."""
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        lock_file(handle, waits=False)
    except OSError:
        os.close(handle)
        return None
    return handle


def _remove(file: Path, lock: int) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
        _lock_file(file).unlink(missing_ok=True)
    os.close(lock)


def _read(file: Path, lock: int) -> LeftBehind | None:
    """Return what a file holds, None where it is damaged; then it is set aside."""
    try:
        kept_at = datetime.fromtimestamp(file.stat().st_mtime).astimezone()
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError("too large to be a saved file")
        plans = tuple(_plan(entry) for entry in json.loads(file.read_text(encoding="utf-8")))
        if plans:
            return LeftBehind(file, lock, plans, kept_at)
        _remove(file, lock)
    except OSError:
        os.close(lock)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        with suppress(StorageError):
            set_aside(file)
        _remove(file, lock)
    return None


def _plan(entry: dict[str, object]) -> KeptPlan:
    texts = [entry[name] for name in ("name", "path", "text")]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a plan is kept as text")
    return KeptPlan(*map(str, texts))
