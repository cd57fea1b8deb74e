"""Where the history is kept, what its stores can do, and the file in which entries wait to be stored."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.extras import URIS, without_password
from capacity_tui.engine.files import NOWHERE, data_folder, lock_file, make_folder, typed_path, writing
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history.records import Kind, RunRecord, as_data, new_id, of_data

ESTIMATES_KEPT = 10_000  # Of more estimates than these, every other one of the older half is dropped


@dataclass(frozen=True, slots=True)
class WantedRuns:
    """A query of entries: those that meet every given condition.

    Attributes:
        kinds: of these kinds; of any where empty.
        model: whose plan's model has this in its name.
        hardware: whose hardware has this in its name.
        since: started at this time or later, ISO 8601.
        device: of the device that goes by this key.
        measured: whether only those with something measured.
        most: at most this many, the newest; 0 for all.
    """

    kinds: tuple[Kind, ...] = ()
    model: str = ""
    hardware: str = ""
    since: str = ""
    device: str = ""
    measured: bool = False
    id_starts: str = ""
    most: int = 0


class Store(Protocol):
    """Keeps entries. Every method raises a StorageError where the store cannot be used."""

    notes: list[str]  # what the user should know of what happened to the store, one line each

    def add(self, records: Sequence[RunRecord]) -> None:
        """Store entries; one whose id is there already stays as it is, so that storing them again does no harm.

        An estimate that says what the newest of the same plan says is left out.
        """

    def find(self, run_filter: WantedRuns) -> tuple[RunRecord, ...]:
        """Return entries, the newest first."""

    def forget(self, ids: Sequence[str]) -> int:
        """Remove entries, and return how many were there."""


VARIABLE = "CAPACITY_TUI_HISTORY"
"""Environment variable that names another file or a MongoDB URI, or turns the history ``off``."""

OFF = "off"
FILE = "history.sqlite"
_DIGITS = 8


class HistoryPlace(NamedTuple):
    """Where the history is kept."""

    file: Path  # the SQLite file; next to it waits what could not be stored yet
    uri: str = ""  # of a MongoDB in its place; empty for the file
    is_on: bool = True  # whether estimates and runs are kept by themselves; what the user hands over is kept anyway

    @property
    def waiting(self) -> Path:
        """The file in which entries wait until they are stored."""
        return self.file.with_suffix(".waiting.jsonl")

    @property
    def label(self) -> str:
        """The place in words, without a password."""
        return without_password(self.uri) if self.uri else str(self.file)


Where: TypeAlias = HistoryPlace | str | Path | None


def history_place(where: Where = None, setting: str = "") -> HistoryPlace:
    """Return where the history is kept.

    Args:
        where: a place, a file, a MongoDB URI, or ``off``; by default that of the environment, else the user's file.
        setting: what the user's settings say, where nothing else does.
    """
    if isinstance(where, HistoryPlace):
        return where
    named = str(where or os.environ.get(VARIABLE) or setting)
    usual = data_folder() / FILE
    if not named or named == OFF:
        # A user without a home has nowhere to keep anything, and needs no note of it at every command.
        return HistoryPlace(usual, is_on=not named and not usual.is_relative_to(NOWHERE))
    if named.lower().startswith(URIS):
        import hashlib  # noqa: PLC0415 - only a database needs it

        digest = hashlib.blake2b(named.encode(), digest_size=_DIGITS // 2).hexdigest()
        return HistoryPlace(usual.with_name(f"history-{digest}.sqlite"), named)
    return HistoryPlace(typed_path(named))


_FILE_MODE = 0o600
_ATTEMPTS = 100


def append(path: Path, record: RunRecord, *, lasting: bool) -> int:
    """Append an entry as one write, and return how long the file is now.

    Args:
        path: the file, made if it is not there.
        lasting: whether to wait until it would outlast a power cut; it outlasts the program in any case.

    Raises:
        StorageError: it cannot be written; the file is as it was.
    """
    content = (json.dumps(as_data(record), separators=(",", ":")) + "\n").encode()
    make_folder(path.parent)
    with writing(path), _opened(path) as handle:
        before = os.fstat(handle).st_size
        if os.write(handle, content) != len(content):
            os.ftruncate(handle, before)
            raise StorageError("the disk is full", hint="free some space", place=Place(str(path)))
        if lasting:
            os.fsync(handle)
        return before + len(content)


@contextmanager
def taken(path: Path) -> Iterator[tuple[RunRecord, ...]]:
    """Give the entries that wait, oldest file first, and remove them once the block ends well.

    What cannot be read as an entry is kept in a separate file. Several programs may take at once: each entry is given
    to one of them, or once more if the one before was ended amid its block.
    """
    _put_away(path)
    handles, files, records = [], [], []
    try:
        for file in sorted(path.parent.glob(f"{path.stem}.taken-*")):
            try:
                handle = os.open(file, os.O_RDONLY)
            except FileNotFoundError:
                continue
            handles.append(handle)
            try:
                lock_file(handle, waits=False)
            except BlockingIOError:
                continue
            except OSError:
                pass  # a file system without locks: taken twice, an entry is still stored once
            if not _is_still(file, handle):  # another program has stored it since
                continue
            files.append(file)
            records += _entries(file)
        yield tuple(records)
        for file in files:
            file.unlink(missing_ok=True)
    finally:
        for handle in handles:
            os.close(handle)


def reason_of(error: Exception) -> str:
    """Return why entries have to wait, in one line."""
    return error.one_line() if isinstance(error, CapacityError) else str(error)


def _put_away(path: Path) -> None:
    """Give the file another name, so that nothing is appended to it any more."""
    with suppress(FileNotFoundError):  # nothing waits, or another program has put it away since
        if path.stat().st_size:
            with _opened(path):
                path.rename(path.with_name(f"{path.stem}.taken-{new_id()}"))


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open the file to append to it, locked, and sure to be the one of that name."""
    for _ in range(_ATTEMPTS):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE)
        try:
            with suppress(OSError):  # a file system without locks: a single write is whole all the same
                lock_file(handle, waits=True)
            if _is_still(path, handle):
                yield handle
                return
        finally:
            os.close(handle)
    raise StorageError("is locked by another program", hint="try again", place=Place(str(path)))


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _entries(file: Path) -> list[RunRecord]:
    """Return the entries of a file; invalid lines go to a file next to it."""
    records, bad = [], []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            records.append(of_data(json.loads(line)))
        except ValueError:
            bad.append(line)
    if bad:
        damaged = file.with_name(file.name.replace(".taken-", ".damaged-"))
        damaged.write_text("".join(f"{line}\n" for line in bad), encoding="utf-8")
    return records
