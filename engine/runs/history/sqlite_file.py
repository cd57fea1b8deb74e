"""The SQLite file of the history: made, brought up to date, and set aside when it is damaged."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import make_folder, set_aside, storage_error
from capacity_tui.engine.machine import Host, is_on_a_share

APPLICATION = 0x43505455  # Marks the file as ours, so that no other program's database is ever written to
MIGRATIONS: tuple[Sequence[str], ...] = (
    (
        "CREATE TABLE runs (id TEXT PRIMARY KEY, kind TEXT NOT NULL, started TEXT NOT NULL, device TEXT NOT NULL, "
        "model TEXT NOT NULL, hardware TEXT NOT NULL, fingerprint TEXT NOT NULL, measured INTEGER NOT NULL, "
        "data TEXT NOT NULL)",
        "CREATE INDEX runs_by_time ON runs (started)",
        "CREATE INDEX estimates_by_plan ON runs (fingerprint, started) WHERE kind = 'estimate'",
    ),
)
"""What brings a file from each version to the next: the first makes it."""
BUSY_SECONDS = 2.0  # How long another program may hold the file; what cannot be stored by then waits next to it
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_LOST_SCHEMA = (
    "no such table",
    "no such column",
    "no such index",
    "malformed database schema",
    "unsupported file format",
)
"""What SQLite says where the names of a file of ours were damaged."""
_OURS = frozenset({"runs", "runs_by_time", "estimates_by_plan"})
_PRIMARY = 0xFF
_MODE = 0o600
_PAGE, _PAGE_AT = struct.Struct(">H"), 16
_PAGES, _PAGES_AT = struct.Struct(">I"), 28
"""Where the head of a file says how large pages are, and how many there are (sqlite.org/fileformat.html)."""
_HINTS = {
    sqlite3.SQLITE_BUSY: "another program holds it: try again",
    sqlite3.SQLITE_LOCKED: "another program holds it: try again",
    sqlite3.SQLITE_PROTOCOL: "its file system cannot lock: name another file in CAPACITY_TUI_HISTORY",
    sqlite3.SQLITE_FULL: "free some space",
    sqlite3.SQLITE_IOERR: "check the disk, or name another file in CAPACITY_TUI_HISTORY",
    sqlite3.SQLITE_READONLY: "name a file that you may write in CAPACITY_TUI_HISTORY",
    sqlite3.SQLITE_CANTOPEN: "name a file that you may write in CAPACITY_TUI_HISTORY",
}


class DamagedError(Exception):
    """The file is no database any more, or parts of it cannot be read."""


@contextmanager
def opened(path: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> Iterator[sqlite3.Connection]:
    """Open the file to read and write, made if it is not there and brought up to date.

    Raises:
        StorageError: it cannot be used; nothing that was stored is lost.
        DamagedError: it is damaged.
    """
    _make(path)
    with database_errors(path), closing(_connected(path, "rw")) as connection:
        version = _version(connection, path, len(migrations))
        if version < len(migrations):
            _migrate(connection, path, migrations)
        _write_ahead(connection, path)
        yield connection


@contextmanager
def opened_to_read(path: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> Iterator[sqlite3.Connection | None]:
    """Open the file to read it, also where nothing may be written; None where there is no file, or it is empty.

    Raises:
        StorageError: it cannot be read, is of a later version, or of an earlier one and cannot be written.
        DamagedError: it is damaged.
    """
    if not path.exists() or not path.stat().st_size:
        yield None
        return
    with database_errors(path), closing(_readable(path)) as connection:
        is_older = _version(connection, path, len(migrations)) < len(migrations)
        if not is_older:
            yield connection
    if is_older:
        with opened(path, migrations) as newer:
            yield newer


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Make errors of the database ours.

    Raises:
        StorageError: the database refuses.
        DamagedError: it is damaged.
    """
    try:
        yield
    except UnicodeDecodeError as error:  # of a message about a schema that is damaged itself
        raise DamagedError(str(error)) from error
    except sqlite3.Error as error:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & _PRIMARY
        if code in _DAMAGED or str(error).startswith(_LOST_SCHEMA):
            raise DamagedError(str(error)) from error
        raise StorageError("the history cannot be used", str(error), _HINTS.get(code, ""), Place(str(path))) from error


def check_whole(connection: sqlite3.Connection) -> None:
    """Look at every page of the file, 25 ms for 10,000 entries: SQLite itself notices damage only where it reads."""
    report = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if report != "ok":
        raise DamagedError(str(report))


def text_of(data: bytes) -> str:
    """Return a text of the file; bytes of a damaged one that are no text stay, so that the rows around can be read."""
    return data.decode("utf-8", "surrogateescape")


def moved_aside(path: Path) -> Path:
    """Move a damaged file, and what SQLite keeps next to it, to a free name; return that name."""
    aside = set_aside(path)
    for ending in ("-wal", "-shm", "-journal"):
        companion = Path(f"{path}{ending}")
        try:
            companion.rename(f"{aside}{ending}")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(error, companion, "cannot be moved aside") from error
    return aside


@contextmanager
def with_new_schema(path: Path) -> Iterator[Path]:
    """Give a copy of a damaged file whose first page, which holds nothing but the schema, is that of a new file."""
    with TemporaryDirectory() as folder:
        new, copy = Path(folder) / "new.sqlite", Path(folder) / "copy.sqlite"
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            for statement in (sql for version in MIGRATIONS for sql in version):
                connection.execute(statement)
        size = _PAGE.unpack_from(new.read_bytes(), _PAGE_AT)[0]
        page, tail = bytearray(new.read_bytes()[:size]), path.read_bytes()[size:]
        _PAGES.pack_into(page, _PAGES_AT, 1 + len(tail) // size)
        copy.write_bytes(page + tail)
        yield copy


def _make(path: Path) -> None:
    """Make the file that only the user may read, if it is not there."""
    make_folder(path.parent)
    try:
        path.touch(_MODE, exist_ok=False)
    except FileExistsError:
        return
    except OSError as error:
        raise storage_error(error, path, "cannot be written") from error


def _connected(path: Path, mode: str, more: str = "") -> sqlite3.Connection:
    # Transactions are ours to begin.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}{more}", uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )
    connection.text_factory = text_of
    return connection


def _readable(path: Path) -> sqlite3.Connection:
    """Return a connection that reads; of a file in a folder that may not be written, as it was last checkpointed."""
    connection = _connected(path, "ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        connection.close()
        log = Path(f"{path}-wal")
        if log.exists() and log.stat().st_size:
            raise
        return _connected(path, "ro", "&immutable=1")
    return connection


def _version(connection: sqlite3.Connection, path: Path, known: int) -> int:
    """Return the version of the file; 0 of a new one.

    Raises:
        StorageError: it is another program's, or of a version that is not known yet.
        DamagedError: it says so for being damaged.
    """
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application != APPLICATION and tables >= _OURS:
        check_whole(connection)
    if application != APPLICATION and (application or tables):
        raise StorageError(
            "is a database of another program", hint="name another file in CAPACITY_TUI_HISTORY", place=Place(str(path))
        )
    if version > known:
        check_whole(connection)
        raise StorageError(
            "the history was written by a newer capacity-tui",
            f"its version is {version}, this one knows {known}",
            "update capacity-tui, or name another file in CAPACITY_TUI_HISTORY",
            Place(str(path)),
        )
    return version


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]]) -> None:
    """Bring the file up to date in one transaction; a copy of the old file stays next to it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another program may have done so since.
        version = _version(connection, path, len(migrations))
        if 0 < version < len(migrations):
            _keep_copy(path, version)
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _keep_copy(path: Path, version: int) -> None:
    """Copy the file as it is to one that says its version, unless that is there."""
    copy = path.with_name(f"{path.stem}.version-{version}{path.suffix}")
    if copy.exists():
        return
    draft = copy.with_name(f"{copy.name}.part")
    draft.unlink(missing_ok=True)
    _make(draft)
    with closing(_connected(path, "ro")) as source, closing(sqlite3.connect(draft)) as target:
        source.backup(target)
    draft.rename(copy)


def _write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Let readers and a writer work at once, where the file system can; a rollback journal serves elsewhere."""
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal" or is_on_a_share(path, Host()):
        return
    with suppress(sqlite3.OperationalError):  # another process is reading, or shared memory is unavailable
        connection.execute("PRAGMA journal_mode = WAL")
