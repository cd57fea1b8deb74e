"""Entries that wait to be stored: one line each in a file, appended in one write.

An estimate should not make its command wait for a database, and a run should not be lost to one that is locked, gone or
full: both are written here first, and stored when the history is next opened.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.files import make_folder, storage_error
from capacity_tui.engine.observe.history.records import RunRecord, as_data, new_id, of_data

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
    try:
        with _opened(path) as handle:
            before = os.fstat(handle).st_size
            if os.write(handle, content) != len(content):
                os.ftruncate(handle, before)
                raise StorageError("the disk is full", hint="free some space", place=Place(str(path)))
            if lasting:
                os.fsync(handle)
            return before + len(content)
    except OSError as error:
        raise storage_error(error, path, "cannot be written") from error


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
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
    """Give the file another name, so that nobody appends to it any more."""
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
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_still(path, handle):
                yield handle
                return
        finally:
            os.close(handle)
    raise StorageError("is always taken by another program", hint="try again", place=Place(str(path)))


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _entries(file: Path) -> list[RunRecord]:
    """Return the entries of a file; invalid lines go to a file beside it."""
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
