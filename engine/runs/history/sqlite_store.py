"""The history in one SQLite file of the user's folder."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import lock_file
from capacity_tui.engine.runs.history.records import ESTIMATES_KEPT, RunRecord, WantedRuns, as_data, of_data
from capacity_tui.engine.runs.history.sqlite_file import (
    DamagedError,
    check_whole,
    database_errors,
    moved_aside,
    opened,
    opened_to_read,
    text_of,
    with_new_schema,
)

_COLUMNS = "id, kind, started, device, model, hardware, fingerprint, measured, data"
_INSERT = f"INSERT OR IGNORE INTO runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_NEWEST_ESTIMATE = (
    "SELECT data FROM runs WHERE kind = 'estimate' AND fingerprint = ? ORDER BY started DESC, rowid DESC LIMIT 1"
)
_THIN = (
    "DELETE FROM runs WHERE rowid IN (SELECT rowid FROM (SELECT rowid, row_number() OVER (ORDER BY started, rowid) AS "
    "place FROM runs WHERE kind = 'estimate') WHERE place <= ? AND place % 2 = 0)"
)
_ROWS = "SELECT rowid, data FROM runs NOT INDEXED"
_MOST_LOST = 1_000_000  # Rows that are read one by one between those that were read from both ends
_Result = TypeVar("_Result")


class SqliteStore:
    """Entries in a file; a damaged file is set aside, and what can be read of it taken into a new one."""

    def __init__(self, path: Path, most_estimates: int = ESTIMATES_KEPT) -> None:
        self.notes: list[str] = []
        self._path = path
        self._most_estimates = most_estimates

    def add(self, records: Sequence[RunRecord]) -> None:
        """Store entries, all of them or none; see ``Store``.

        A damaged file is mended first: entries that are put into damaged pages can be lost with them.
        """

        def stored() -> None:
            with opened(self._path) as connection, _transaction(connection):
                _check(connection)
                for record in records:
                    _insert(connection, record)
                _thin(connection, self._most_estimates)

        self._mended(stored)

    def find(self, run_filter: WantedRuns) -> tuple[RunRecord, ...]:
        query, values = _query(run_filter)

        def records() -> tuple[RunRecord, ...]:
            with opened_to_read(self._path) as connection:
                rows = connection.execute(query, values).fetchall() if connection else ()
            return tuple(_record(data) for (data,) in rows)

        return self._mended(records)

    def forget(self, ids: Sequence[str]) -> int:
        def removed() -> int:
            with opened(self._path) as connection, _transaction(connection):
                return sum(
                    connection.execute("DELETE FROM runs WHERE id = ?", (record_id,)).rowcount for record_id in ids
                )

        return self._mended(removed)

    def _mended(self, action: Callable[[], _Result]) -> _Result:
        """Return what an action on the file gives; if the file is damaged, once that is mended."""
        try:
            return action()
        except DamagedError:
            self._start_new_file()
        try:
            return action()
        except DamagedError as error:
            raise StorageError("the history keeps being damaged", str(error), "check the disk") from error

    def _start_new_file(self) -> None:
        with _exclusive(self._path):
            # Another program may have done so since.
            if not _is_damaged(self._path):
                return
            aside = moved_aside(self._path)
            rescued = _readable_records(aside)
            with opened(self._path) as connection, _transaction(connection):
                for record in rescued:
                    _insert(connection, record)
        outcome = f"{len(rescued)} of its entries were recovered" if rescued else "a new one was started"
        self.notes.append(f"the history was damaged: kept as {aside}, {outcome}")


def _insert(connection: sqlite3.Connection, record: RunRecord) -> None:
    if record.kind == "estimate" and _says_nothing_new(connection, record):
        return
    values = (
        record.id,
        record.kind,
        record.started,
        record.device,
        record.model,
        record.hardware,
        record.fingerprint,
        bool(record.actual),
        json.dumps(as_data(record), separators=(",", ":")),
    )
    connection.execute(_INSERT, values)


def _says_nothing_new(connection: sqlite3.Connection, record: RunRecord) -> bool:
    row = connection.execute(_NEWEST_ESTIMATE, (record.fingerprint,)).fetchone()
    return row is not None and record.repeats(_record(row[0]))


def _thin(connection: sqlite3.Connection, most: int) -> None:
    """Drop every other estimate of the older half where there are too many."""
    count = int(connection.execute("SELECT count(*) FROM runs WHERE kind = 'estimate'").fetchone()[0])
    if count > most:
        connection.execute(_THIN, (count // 2,))


def _query(run_filter: WantedRuns) -> tuple[str, list[object]]:
    tests: list[str] = []
    values: list[object] = []

    def test(condition: str, *parameters: object) -> None:
        tests.append(condition)
        values.extend(parameters)

    if run_filter.kinds:
        test(f"kind IN ({', '.join('?' * len(run_filter.kinds))})", *run_filter.kinds)
    for column, text in (("model", run_filter.model), ("hardware", run_filter.hardware)):
        if text:
            test(f"instr(lower({column}), ?)", text.lower())
    if run_filter.since:
        test("started >= ?", run_filter.since)
    if run_filter.device:
        test("device = ?", run_filter.device)
    if run_filter.measured:
        test("measured")
    if run_filter.id_starts:
        test("substr(id, 1, ?) = ?", len(run_filter.id_starts), run_filter.id_starts)
    conditions = f" WHERE {' AND '.join(tests)}" if tests else ""
    limit = f" LIMIT {run_filter.most}" if run_filter.most else ""
    # Conditions are of the few above, and values are bound.
    return f"SELECT data FROM runs{conditions} ORDER BY started DESC, rowid DESC{limit}", values  # noqa: S608


def _record(data: object) -> RunRecord:
    """Return the entry of a row; raises DamagedError if it holds none."""
    try:
        return of_data(json.loads(str(data).encode("utf-8")))
    except (ValueError, OverflowError, RecursionError) as error:
        raise DamagedError(str(error)) from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _check(connection: sqlite3.Connection) -> None:
    """Look at the pages, and for every column; raises DamagedError where something is damaged."""
    check_whole(connection)
    connection.execute(f"SELECT {_COLUMNS} FROM runs LIMIT 0")  # noqa: S608


def _is_damaged(path: Path) -> bool:
    try:
        with opened_to_read(path) as connection:
            if connection is None:
                return False
            _check(connection)
            for (data,) in connection.execute("SELECT data FROM runs"):
                _record(data)
    except DamagedError:
        return True
    return False


def _readable_records(path: Path) -> list[RunRecord]:
    """Return the entries that can still be read of a damaged file."""
    rows = _readable_rows(path)
    if not rows:
        with suppress(OSError), with_new_schema(path) as copy:
            rows = _readable_rows(copy)
    records: dict[str, RunRecord] = {}
    for data in rows:
        with suppress(DamagedError):
            record = _record(data)
            records[record.id] = record
    return sorted(records.values(), key=lambda record: record.started)


def _readable_rows(path: Path) -> list[object]:
    """Return what the rows of a damaged file hold: from its beginning, from its end, and one by one between.

    Damage may give two rows one number: both are taken.
    """
    rows: dict[object, None] = {}
    with suppress(StorageError, DamagedError), database_errors(path), closing(sqlite3.connect(path)) as connection:
        connection.text_factory = text_of
        reached = []
        for order in ("ASC", "DESC"):
            last = 0
            with suppress(sqlite3.Error):
                for rowid, data in connection.execute(f"{_ROWS} ORDER BY rowid {order}"):
                    last, rows[data] = rowid, None
            reached.append(last)
        for rowid in range(reached[0] + 1, min(reached[1], reached[0] + _MOST_LOST)):
            with suppress(sqlite3.Error):
                rows |= {data: None for _, data in connection.execute(f"{_ROWS} WHERE rowid = ?", (rowid,))}
    return list(rows)


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Keep other programs that mend the same file waiting."""
    lock = path.with_name(f"{path.name}.lock")
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with suppress(OSError):  # a file system without locks
            lock_file(handle, waits=True)
        yield
    finally:
        os.close(handle)
