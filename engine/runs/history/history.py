"""The entries of one place: kept, matched and removed; and the store of those in a MongoDB that the user names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from capacity_tui.engine.errors import CapacityError, Place, PlanError, StorageError
from capacity_tui.engine.extras import DATABASE, connected, require_pymongo
from capacity_tui.engine.runs.history.records import (
    ESTIMATES_KEPT,
    HistoryPlace,
    RunRecord,
    Store,
    WantedRuns,
    Where,
    append,
    as_data,
    history_place,
    of_data,
    reason_of,
    taken,
)

if TYPE_CHECKING:
    from pymongo.collection import Collection

    Runs: TypeAlias = Collection[dict[str, object]]

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

        They are written to a file next to the store first, and stay there while the store is unusable.

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

    def find(self, run_filter: WantedRuns | None = None) -> tuple[RunRecord, ...]:
        """Return entries, the newest first.

        Raises:
            StorageError: the history cannot be read.
            MissingPartError: what it is kept in needs a part that is not installed.
        """
        store = self._current_store()
        records = store.find(run_filter or WantedRuns())
        self._take_notes(store)
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
        self._take_notes(store)
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
        self._take_notes(store)
        return store

    def _take_notes(self, store: Store) -> None:
        self.notes += [note for note in store.notes if note not in self.notes]


def _opened(place: HistoryPlace) -> Store:
    """Return the store of a place; what it needs is loaded, nothing is connected yet."""
    if place.uri:
        return MongoStore(place)
    from capacity_tui.engine.runs.history.sqlite_store import SqliteStore  # noqa: PLC0415 - loads sqlite3

    return SqliteStore(place.file)


MOST_WAITING = 4 * 2**20  # Bytes of estimates that wait until the command of the one that comes on top stores them all


def record_run(entry: RunRecord, where: Where = None) -> str:
    """Keep an entry where entries are kept by themselves, and return a note for the user; usually none.

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


_COLLECTION = "runs"
_NEWEST_FIRST = [("started", -1), ("_id", -1)]
_LARGEST_WHOLE = 2**63 - 1


class MongoStore:
    """Entries as documents.

    A document has what is searched for, the plan, and the figures as lists, for queries of the user's own; ``entry`` is
    the whole as text, which is what is read.

    Raises:
        MissingPartError: pymongo is not installed.
    """

    def __init__(self, place: HistoryPlace, most_estimates: int = ESTIMATES_KEPT) -> None:
        require_pymongo("a history in MongoDB")
        self.notes: list[str] = []
        self._place = place
        self._most_estimates = most_estimates

    def add(self, records: Sequence[RunRecord]) -> None:
        """Store entries; see ``Store``. Where that stops in between, storing the same ones again completes it."""
        with self._opened() as runs:
            for record in records:
                if record.kind == "estimate" and _says_nothing_new(runs, record):
                    continue
                runs.update_one({"_id": record.id}, {"$setOnInsert": _document(record)}, upsert=True)
            self._thin(runs)

    def find(self, run_filter: WantedRuns) -> tuple[RunRecord, ...]:
        with self._opened() as runs:
            documents = runs.find(_query(run_filter), {"entry": 1}).sort(_NEWEST_FIRST).limit(run_filter.most)
            return tuple(self._record(document) for document in documents)

    def forget(self, ids: Sequence[str]) -> int:
        with self._opened() as runs:
            return int(runs.delete_many({"_id": {"$in": list(ids)}}).deleted_count)

    @contextmanager
    def _opened(self) -> Iterator[Runs]:
        """Connect for a block; raises StorageError if the database cannot be reached, or refuses."""
        with connected(self._place.uri, "the history cannot be used") as client:
            yield client.get_default_database(DATABASE)[_COLLECTION]

    def _record(self, document: Mapping[str, object]) -> RunRecord:
        try:
            return of_data(json.loads(str(document["entry"])))
        except (KeyError, ValueError) as error:
            detail = f"{document.get('_id')}: {error}"
            raise StorageError("an entry cannot be read", detail, place=Place(self._place.label)) from error

    def _thin(self, runs: Runs) -> None:
        """Drop every other estimate of the older half where there are too many."""
        count = runs.count_documents({"kind": "estimate"})
        if count > self._most_estimates:
            older = runs.find({"kind": "estimate"}, {"_id": 1}).sort([("started", 1), ("_id", 1)]).limit(count // 2)
            runs.delete_many({"_id": {"$in": [document["_id"] for document in older][1::2]}})


def _says_nothing_new(runs: Runs, record: RunRecord) -> bool:
    same = {"kind": "estimate", "fingerprint": record.fingerprint}
    newest = runs.find_one(same, {"entry": 1}, sort=_NEWEST_FIRST)
    return newest is not None and record.repeats(of_data(json.loads(str(newest["entry"]))))


def _document(record: RunRecord) -> dict[str, object]:
    return {
        "kind": record.kind,
        "started": record.started,
        "device": record.device,
        "model": record.model,
        "hardware": record.hardware,
        "fingerprint": record.fingerprint,
        "measured": bool(record.actual),
        "plan": _storable(record.plan),
        "predicted": [{"figure": key, **ends} for key, ends in record.predicted.items()],
        "actual": [{"figure": key, "value": value} for key, value in record.actual.items()],
        "entry": json.dumps(as_data(record), separators=(",", ":")),
    }


def _storable(value: object) -> object:
    """Return plain data as documents can hold them: whole numbers of 64 bits, names without dots."""
    if isinstance(value, Mapping):
        return {str(key).replace(".", "_").replace("$", "_"): _storable(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_storable(entry) for entry in value]
    return float(value) if isinstance(value, int) and abs(value) > _LARGEST_WHOLE else value


def _query(run_filter: WantedRuns) -> dict[str, object]:
    query: dict[str, object] = {}
    if run_filter.kinds:
        query["kind"] = {"$in": list(run_filter.kinds)}
    for name, text in (("model", run_filter.model), ("hardware", run_filter.hardware)):
        if text:
            query[name] = {"$regex": re.escape(text), "$options": "i"}
    if run_filter.since:
        query["started"] = {"$gte": run_filter.since}
    if run_filter.device:
        query["device"] = run_filter.device
    if run_filter.measured:
        query["measured"] = True
    if run_filter.id_starts:
        query["_id"] = {"$regex": f"^{re.escape(run_filter.id_starts)}"}
    return query
