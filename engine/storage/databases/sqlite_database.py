"""Patterns in an SQLite file, which is gone afterwards."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import storage_error
from capacity_tui.engine.storage.databases.database import Database, DatabaseSize
from capacity_tui.engine.storage.databases.patterns import Pattern

HOW = "a transaction each, written ahead to a log that is flushed at checkpoints"
_TABLE = (
    "CREATE TABLE patterns (id INTEGER PRIMARY KEY, name TEXT NOT NULL, level INTEGER NOT NULL, "
    "frequency INTEGER NOT NULL, words TEXT NOT NULL)"
)
_INDEXES = (
    "CREATE UNIQUE INDEX patterns_by_name ON patterns (name)",
    "CREATE INDEX patterns_by_frequency ON patterns (level, frequency)",
)


@contextmanager
def sqlite_database(folder: Path) -> Iterator[Database]:
    """Open a new file in a folder, for a block.

    Raises:
        StorageError: it cannot be made or written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".capacity-tui-", dir=folder, ignore_cleanup_errors=True) as made:
            path = Path(made) / "patterns.sqlite"
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                yield _SqliteDatabase(connection, path, folder)
    except OSError as error:
        raise storage_error(error, folder, "cannot hold a database") from error
    except sqlite3.Error as error:
        raise StorageError("SQLite refuses", str(error), "check the disk", Place(str(folder))) from error


class _SqliteDatabase:
    """See ``Database``."""

    def __init__(self, connection: sqlite3.Connection, path: Path, folder: Path) -> None:
        self.place = str(folder)
        self.version = f"SQLite {sqlite3.sqlite_version}"
        self.how = HOW
        self._connection, self._path = connection, path
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _TABLE, *_INDEXES):
            connection.execute(statement)

    def insert(self, patterns: Sequence[Pattern]) -> None:
        rows = [(each.name, each.level, each.frequency, " ".join(each.words)) for each in patterns]
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO patterns (name, level, frequency, words) VALUES (?, ?, ?, ?)", rows)
        self._connection.execute("COMMIT")

    def frequency(self, name: str) -> int | None:
        row = self._connection.execute("SELECT frequency, words FROM patterns WHERE name = ?", (name,)).fetchone()
        return None if row is None else int(row[0])

    def size(self) -> DatabaseSize:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return DatabaseSize(self._path.stat().st_size, self._index_bytes())

    def _index_bytes(self) -> int | None:
        """Return the bytes of pages that indexes have; None where SQLite was built without counting them."""
        names = "SELECT name FROM sqlite_master WHERE type = 'index'"
        with suppress(sqlite3.OperationalError):
            sums = self._connection.execute(f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({names})")  # noqa: S608
            return int(sums.fetchone()[0])
        return None
