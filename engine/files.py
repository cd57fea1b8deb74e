"""Folders of the user's files; locks them, writes them whole or not at all; says what the operating system refused."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from capacity_tui.engine.errors import Place, StorageError

DATA_VARIABLE = "CAPACITY_TUI_DATA"  # Environment variable that names another folder for what the program keeps
STATE_VARIABLE = "CAPACITY_TUI_STATE"
"""Environment variable that names another folder for what outlasts one run of the program but can be made again."""
CONFIG_VARIABLE = "CAPACITY_TUI_CONFIG"
"""Environment variable that names another folder for what the user writes for the program."""
NOWHERE = Path("/dev/null/capacity-tui")
"""The folder of a user without a home: it cannot be, so nothing is read from it or kept in it."""
CORRUPT = ".corrupt-"  # What the name of a file that was set aside holds
_REMEDIES = {
    errno.EACCES: "choose a place you may write to",
    errno.EPERM: "choose a place you may write to",
    errno.EROFS: "choose a place you may write to",
    errno.ENOSPC: "free some space, nothing was changed",
    errno.EDQUOT: "free some space, nothing was changed",
    errno.ENOENT: "make the folder first, or choose another",
    errno.ENOTDIR: "make the folder first, or choose another",
    errno.EISDIR: "name a file, not a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
}
_READING_REMEDIES = {
    errno.EACCES: "allow reading it",
    errno.EPERM: "allow reading it",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "name a file, not a folder",
    errno.ENAMETOOLONG: "check the path: it is too long for one",
    errno.EMFILE: "close other programs and try again",
    errno.ENFILE: "close other programs and try again",
    errno.EIO: "try again, or check the disk",
}
_DRAFT = ".capacity-tui-draft-"
_STALE_SECONDS = 3600.0  # A draft lives for milliseconds: one of this age was left by a program that was killed
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NEW_FILE_MODE = 0o666
_LOCKED_BYTE = 2**30  # Where no file of the program reaches


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of what the user made with the program; it need not exist."""
    return _folder("data", environment.get(DATA_VARIABLE), appauthor=False)


def config_folder() -> Path:
    """Return the folder of settings, themes and the user's catalogue rows; the folder need not exist."""
    return _folder("config", os.environ.get(CONFIG_VARIABLE))


def settings_file() -> Path:
    """Return where the user's settings are read from."""
    return config_folder() / "settings.toml"


def cache_folder() -> Path:
    """Return the folder of what the program can compute again; it need not exist."""
    return _folder("cache")


def _folder(kind: str, chosen: str | None = None, appauthor: bool | None = None) -> Path:
    """Return a chosen folder, else the usual one of this system; NOWHERE for a user without a home."""
    import platformdirs  # noqa: PLC0415 - most users of this module need no folder

    try:
        usual = getattr(platformdirs, f"user_{kind}_path")
        return Path(chosen or usual("capacity-tui", appauthor=appauthor)).expanduser()
    except RuntimeError:
        return NOWHERE


def state_folder() -> Path:
    """Return the folder of unsaved edits and notes on mistakes; the folder need not exist."""
    return _folder("state", os.environ.get(STATE_VARIABLE), appauthor=False)


def write_atomically(path: Path, text: str | bytes, overwrite: bool = False) -> None:
    """Write a file so that any reader sees the old content or the new one, never a part.

    A link is followed, the mode of a replaced file is kept, and a pipe or device is written to as it is.

    Args:
        path: where to write; its folder must exist.
        text: the whole content; a text is written as UTF-8.
        overwrite: whether a file that is there may be replaced.

    Raises:
        StorageError: the file is there already, or cannot be written; what was there is untouched.
    """
    content = text.encode("utf-8") if isinstance(text, str) else text
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            _write_through(target, content)
            return
        _replace(target, content, overwrite)
    except FileExistsError as error:
        raise _taken(path) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_error(error, path, "cannot be written") from error


def rename_file(path: Path, new_path: Path) -> None:
    """Rename a file, never replacing another.

    Raises:
        StorageError: the new name is taken, or the file cannot be renamed.
    """
    try:
        _move_where_nothing_is(path, new_path)
    except FileExistsError as error:
        raise _taken(new_path) from error
    except OSError as error:
        raise storage_error(error, path, "cannot be renamed") from error


def set_aside(path: Path) -> Path:
    """Move a damaged file to a free name that says so, and return that name.

    Raises:
        StorageError: it cannot be moved.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = path.with_name(f"{path.stem}{CORRUPT}{stamp}{path.suffix}")
    attempt = 1
    while aside.exists():
        attempt += 1
        aside = path.with_name(f"{path.stem}{CORRUPT}{stamp}-{attempt}{path.suffix}")
    with writing(path, "is damaged and cannot be moved aside"):
        path.rename(aside)
    return aside


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if they are not there; raises StorageError if it cannot be made."""
    with writing(path, "cannot be made"):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def writing(path: Path, title: str = "cannot be written") -> Iterator[None]:
    """Write a file or folder within a block; raises StorageError if the operating system refuses.

    Args:
        title: of that error: the clause that follows the path.
    """
    try:
        yield
    except OSError as error:
        raise storage_error(error, path, title) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Read a file or folder within a block; raises StorageError if it cannot be read."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise reading_error(error, path) from error


def storage_error(error: Exception, path: Path, title: str) -> StorageError:
    """Return what the operating system refused to write, with a remedy where one is known.

    Args:
        title: the clause that follows the path, such as ``cannot be written``.
    """
    return _refused(error, path, title, _REMEDIES)


def reading_error(error: Exception, path: Path) -> StorageError:
    """Return that a file or folder cannot be read and why, with a remedy where one is known."""
    return _refused(error, path, "cannot be read", _READING_REMEDIES)


def typed_path(text: str) -> Path:
    """Return the path that a person wrote, ``~`` and ``~name`` as homes where there is such a user."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - the method raises for an unknown user


def _refused(error: Exception, path: Path, title: str, remedies: Mapping[int, str]) -> StorageError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    remedy = remedies.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    if path.is_relative_to(NOWHERE):
        remedy = f"this user has no home: set HOME, or {DATA_VARIABLE} and {CONFIG_VARIABLE}, to a folder"
    return StorageError(title, reason, remedy, Place(str(path)))


def _taken(path: Path) -> StorageError:
    return StorageError(
        "is there already", hint="choose another name, or replace it with --force", place=Place(str(path))
    )


def _replace(target: Path, content: bytes, overwrite: bool) -> None:
    """Put the content into a draft next to the target, then move it there in one step."""
    if not overwrite and target.exists():
        raise FileExistsError(target)
    _remove_stale_drafts(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=_DRAFT)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(_mode(target))
        if overwrite:
            draft.replace(target)
        else:
            _move_where_nothing_is(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _remove_stale_drafts(folder: Path) -> None:
    """Remove what programs that were killed in the middle of writing left behind."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_DRAFT) and time.time() - entry.stat().st_mtime > _STALE_SECONDS:
                Path(entry.path).unlink(missing_ok=True)


def _move_where_nothing_is(source: Path, target: Path) -> None:
    """Give a file another name, unless another program took that name meanwhile."""
    try:
        # A link fails where a plain renaming would replace what is there.
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # The file system has no hard links: looking first is the best there is.
        if target.exists():
            raise FileExistsError(target) from error
        source.replace(target)
    else:
        source.unlink()


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o7777
    # The mask can only be read by setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return _NEW_FILE_MODE & ~mask


def json_table(value: object) -> Mapping[str, object]:
    """Return a JSON object; raises TypeError if it is another kind of value."""
    if not isinstance(value, Mapping):
        raise TypeError(f"a table is expected, not {value!r:.60}")
    return value


def lock_file(handle: int, *, waits: bool) -> None:
    """Keep an open file for this program alone, until its handle is closed.

    Windows locks a byte far behind the end, so that others can read, and waits for ten seconds at the most.

    Raises:
        BlockingIOError: another program has it.
        OSError: the file system, or the system, has no locks.
    """
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - of this system alone

        place = os.lseek(handle, 0, os.SEEK_CUR)
        try:
            os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, "locked by another program") from error
        finally:
            os.lseek(handle, place, os.SEEK_SET)
        return
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        raise OSError(errno.ENOLCK, "this system has no locks") from None
    fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write_through(target: Path, content: bytes) -> None:
    with target.open("wb") as file:
        file.write(content)
