"""The entries of one place: kept, found and removed."""

from __future__ import annotations

from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.runs.history.records import RunRecord
from capacity_tui.engine.runs.history.stores import (
    HistoryPlace,
    Store,
    WantedRuns,
    Where,
    append,
    history_place,
    reason_of,
    taken,
)

_SHORTEST_PREFIX = 3


class History:
    """The entries of one place.

    Args:
        where: a place, a file, a MongoDB URI, or ``off``; by default as the environment says.

    Attributes:
        notes: what the user should know of what happened to it, one line each.
    """

    def __init__(self, where: Where = None) -> None:
        self.place = history_place(where)
        self.notes: list[str] = []

    def keep(self, *entries: RunRecord) -> None:
        """Keep entries, also where nothing is kept by itself.

        They are written to a file beside the store first, and stay there while the store is unusable.

        Raises:
            StorageError: they cannot be kept at all.
        """
        for entry in entries:
            append(self.place.waiting, entry, lasting=True)
        self.take_in()

    def take_in(self) -> None:
        """Store waiting entries; those that cannot be stored now keep waiting."""
        try:
            self._store()
        except (CapacityError, OSError, ImportError) as error:
            self.notes.append(f"waits in {self.place.waiting} to be stored: {reason_of(error)}")

    def find(self, wanted: WantedRuns | None = None) -> tuple[RunRecord, ...]:
        """Return entries, the newest first.

        Raises:
            StorageError: the history cannot be read.
            MissingPartError: what it is kept in needs a part that is not installed.
        """
        store = self._current_store()
        records = store.find(wanted or WantedRuns())
        self._tell(store)
        return records

    def one(self, name: str) -> RunRecord:
        """Return the entry whose id is, or alone begins with, a name.

        Raises:
            PlanError: none is, or several are.
            StorageError: the history cannot be read.
        """
        records = self.find(WantedRuns(id_starts=name.lower(), most=2)) if len(name) >= _SHORTEST_PREFIX else ()
        if len(records) > 1:
            raise PlanError(f"several entries of the history begin with {name!r}", hint="give more of the id")
        if not records:
            raise PlanError(f"no entry of the history is called {name!r}", hint="capacity-tui history list shows all")
        return records[0]

    def forget(self, *ids: str) -> int:
        """Remove entries by their whole ids, and return how many were there.

        Raises:
            StorageError: the history cannot be written.
        """
        store = self._current_store()
        removed = store.forget(ids)
        self._tell(store)
        return removed

    def _current_store(self) -> Store:
        """Return the store with what waited in it, as far as that can be written."""
        try:
            return self._store()
        except (CapacityError, OSError) as error:
            self.notes.append(f"what waits in {self.place.waiting} is left out: {reason_of(error)}")
            return _opened(self.place)

    def _store(self) -> Store:
        store = _opened(self.place)
        with taken(self.place.waiting) as entries:
            if entries:
                store.add(entries)
        self._tell(store)
        return store

    def _tell(self, store: Store) -> None:
        self.notes += [note for note in store.notes if note not in self.notes]


def _opened(place: HistoryPlace) -> Store:
    """Return the store of a place; what it needs is loaded, nothing is connected yet.

    Raises:
        MissingPartError: the program that it needs is not installed.
    """
    if place.uri:
        from capacity_tui.engine.runs.history.mongodb_store import MongoStore  # noqa: PLC0415 - an optional extra

        return MongoStore(place)
    from capacity_tui.engine.runs.history.sqlite_store import SqliteStore  # noqa: PLC0415 - loads sqlite3

    return SqliteStore(place.file)


MOST_WAITING = 4 * 2**20
"""Bytes of estimates that wait until the command of the one that comes on top stores them all."""


def record_run(entry: RunRecord, where: Where = None) -> str:
    """Keep an entry where entries are kept by themselves, and return a note for the user; mostly none.

    Never raises for a history that cannot be written. An estimate is put down to be stored when the history is next
    read: its command should not wait for a database.

    Args:
        where: a place, a file, a MongoDB URI, or ``off``; by default as the environment says.
    """
    place = history_place(where)
    if not place.is_on:
        return ""
    is_estimate = entry.kind == "estimate"
    try:
        if append(place.waiting, entry, lasting=not is_estimate) < MOST_WAITING and is_estimate:
            return ""
    except (CapacityError, OSError) as error:
        return f"not kept in the history: {reason_of(error)}"

    history = History(place)
    history.take_in()
    return "; ".join(history.notes)
