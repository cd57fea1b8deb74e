"""Stores of patterns as hierarchical learning fills them: what is asked of one, and its database, SQLite or MongoDB."""

from __future__ import annotations

import hashlib
import random
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Assumption
from capacity_tui.engine.errors import Place, PlanError, StorageError
from capacity_tui.engine.extras import DATABASE, connected, require_pymongo, without_password
from capacity_tui.engine.files import storage_error
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.storage.zipf import MOST_KINDS, kinds_of_corpus

if TYPE_CHECKING:
    from pymongo.collection import Collection

    from capacity_tui.engine.extras import Client

    Patterns: TypeAlias = Collection[dict[str, object]]


MOST_LEVELS = 20
HOLDS = ("chunks", "paragraphs", "chapters", "books")
_LARGEST = 1e18
_EXPONENTS = (0.05, 5.0)


def held_at(level: int) -> str:
    """Return what the patterns of a level are in a text."""
    return HOLDS[level] if level < len(HOLDS) else f"level {level + 1}"


@dataclass(frozen=True, slots=True)
class PatternQuestion:
    """A corpus, how it is cut into patterns, and what is known of them; what is not given the catalogue assumes.

    Where several values are for several levels, the last holds for all further ones; of deduplication the rule of
    decay goes on from the last.

    Attributes:
        samples: texts; an array for several sizes of a corpus at once.
        tokens: of a sample.
        chunk: tokens of a pattern of the first level.
        levels: how many there are.
        fan_in: patterns of a level in one of the next; None for as many as a chunk has tokens.
        alpha: exponent of the law, by level.
        deduplication: share of the patterns that repeat an earlier one, by level.
        decay: share by which that falls with each further level.
        overhead: what the store adds to the documents, as a share of them.
        pattern_bytes: bytes of a pattern, by level.
        kinds: how many different patterns there could be, by level; by default as many as leave the rarest one
            occurrence.
    """

    samples: Number
    tokens: Number
    chunk: Number = 15
    levels: int = 4
    fan_in: Number | None = None
    alpha: tuple[float, ...] = ()
    deduplication: tuple[float, ...] = ()
    decay: float | None = None
    overhead: float | None = None
    pattern_bytes: tuple[float, ...] = ()
    kinds: tuple[float, ...] = ()

    def check(self) -> None:
        """Refuse what makes no sense; raises PlanError if a number is out of its range."""
        if not 1 <= self.levels <= MOST_LEVELS:
            raise PlanError("not a number of levels", str(self.levels), f"from 1 to {MOST_LEVELS}")
        ranges: dict[str, tuple[float, float]] = {
            "samples": (1, _LARGEST),
            "tokens": (1, _LARGEST),
            "chunk": (1, _LARGEST),
            "fan_in": (2, _LARGEST),
            "alpha": _EXPONENTS,
            "deduplication": (0, 1),
            "decay": (0, 1),
            "overhead": (0, 100),
            "pattern_bytes": (1, _LARGEST),
            "kinds": (1, MOST_KINDS),
        }
        for entry in fields(self):
            low, high = ranges.get(entry.name, (0, np.inf))
            value = getattr(self, entry.name)
            if value is None or not np.size(value):
                continue
            array = np.asarray(value, dtype=float)
            if not np.all((array >= low) & (array <= high)):
                raise PlanError(f"{entry.name.replace('_', ' ')} out of range", f"{value}", f"from {low:g} to {high:g}")


@dataclass(frozen=True)
class Known:
    """What holds for a question, given or assumed, each with the least and the most it may be."""

    question: PatternQuestion  # what is given
    catalog: Catalog  # what is assumed

    def assumed(self, key: str) -> Assumption:
        return self.catalog.pattern_storage[key]

    def range_of(self, key: str) -> tuple[float, float]:
        """Return the least and the most of an assumption; twice its value where it has no range."""
        row = self.assumed(key)
        return row.low or row.value, row.high or row.value

    def alpha(self, level: int) -> float:
        given = self.question.alpha
        return given[min(level, len(given) - 1)] if given else self.assumed("alpha").value

    def alpha_range(self, level: int) -> tuple[float, float]:
        """Return the least and the largest exponent of a level."""
        return (self.alpha(level),) * 2 if self.question.alpha else self.range_of("alpha")

    def kinds(self, level: int, occurrences: Number, alpha: float) -> Number:
        """Return how many different patterns there could be at a level."""
        given = self.question.kinds
        if given:
            return np.full(np.shape(occurrences), given[min(level, len(given) - 1)])
        return kinds_of_corpus(occurrences, alpha)

    @cached_property
    def first_deduplication(self) -> float:
        """The share of the first level's patterns that repeat an earlier one."""
        given = self.question.deduplication
        return given[0] if given else self.assumed("deduplication").value

    @cached_property
    def decay(self) -> float:
        """The share by which deduplication falls with each level."""
        given = self.question.decay
        return self.assumed("deduplication-decay").value if given is None else given

    @cached_property
    def overhead_parts(self) -> dict[str, float]:
        """What indexes, padding and the store itself take, as shares of the documents; a given sum is split alike."""
        parts = {part: self.assumed(f"{part}-overhead").value for part in ("index", "padding", "internal")}
        given, usual = self.question.overhead, sum(parts.values())
        return parts if given is None else {part: given * share / usual for part, share in parts.items()}

    @cached_property
    def overhead(self) -> float:
        """What the store adds to the documents, as a share of them."""
        given = self.question.overhead
        return sum(self.overhead_parts.values()) if given is None else given

    @cached_property
    def overhead_range(self) -> tuple[float, float]:
        """The least and the most of it."""
        if self.question.overhead is not None:
            return self.overhead, self.overhead
        low, high = (sum(self.range_of(f"{part}-overhead")[end] for part in self.overhead_parts) for end in (0, 1))
        return low, high


VOCABULARY = 50_000  # Different words; the first is drawn most often, by Zipf's law with exponent one
MOST_FREQUENT = 100_000  # How often the first pattern of a level occurs; that of rank r an r-th of this, once at least
LEVELS = 4
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern."""

    name: str  # forty hexadecimal digits that stand for its content
    level: int  # of the hierarchy, from 0
    frequency: int  # how often it occurred
    words: tuple[str, ...]  # what it holds

    @property
    def content_bytes(self) -> int:
        """Bytes of what it says, words parted by one character, without what a database adds."""
        return len(self.name) + 2 * _NUMBER_BYTES + sum(map(len, self.words)) + len(self.words) - 1


def name_of(number: int) -> str:
    return hashlib.sha1(f"pattern {number}".encode(), usedforsecurity=False).hexdigest()


def patterns(first: int, count: int, chunk: int) -> Iterator[Pattern]:
    """Yield patterns by their numbers from a first one on, the same ones at any time and in any portions."""
    for number in range(first, first + count):
        drawn = random.Random(number)  # any words by that law will do
        words = tuple(f"word{int(VOCABULARY ** drawn.random())}" for _ in range(chunk))
        yield Pattern(name_of(number), number % LEVELS, max(1, MOST_FREQUENT // (number // LEVELS + 1)), words)


@dataclass(frozen=True, slots=True)
class DatabaseSize:
    """What a database takes on disk."""

    total_bytes: int
    index_bytes: int | None  # of that, what its indexes take; None where it does not tell


class Database(Protocol):
    """Holds patterns, found by their names and by level and frequency. Every method raises a StorageError."""

    place: str  # where it is, without a password
    version: str  # what serves it
    how: str  # what counts as stored

    def insert(self, patterns: Sequence[Pattern]) -> None:
        """Store patterns, all of them in one go."""

    def frequency(self, name: str) -> int | None:
        """Return how often the pattern of a name occurred; None where there is none."""

    def size(self) -> DatabaseSize:
        """Return what it takes once all is written out."""


HOW = "acknowledged as the URI sets it, else by the first server"
_PREFIX = "capacity_tui_bench_"


@contextmanager
def mongodb_database(uri: str) -> Iterator[Database]:
    """Make a collection of a name that nobody has, for a block; in the database of the URI.

    Raises:
        MissingPartError: pymongo is not installed.
        StorageError: the database cannot be reached, or refuses.
    """
    require_pymongo("MongoDB")
    with connected(uri, "MongoDB cannot be measured") as client:
        collection = client.get_default_database(DATABASE)[f"{_PREFIX}{uuid.uuid4().hex}"]
        try:
            yield _MongoDatabase(client, collection, uri)
        finally:
            collection.drop()


class _MongoDatabase:
    """See ``Database``."""

    def __init__(self, client: Client, collection: Patterns, uri: str) -> None:
        self.place = without_password(uri)
        self.version = f"MongoDB {client.server_info()['version']}"
        self.how = HOW
        self._client, self._collection = client, collection
        collection.create_index("name", unique=True)
        collection.create_index([("level", 1), ("frequency", 1)])

    def insert(self, patterns: Sequence[Pattern]) -> None:
        self._collection.insert_many(
            {"name": pattern.name, "level": pattern.level, "frequency": pattern.frequency, "words": list(pattern.words)}
            for pattern in patterns
        )

    def frequency(self, name: str) -> int | None:
        match = self._collection.find_one({"name": name})
        return None if match is None else int(cast("int", match["frequency"]))

    def size(self) -> DatabaseSize:
        from pymongo.errors import OperationFailure  # noqa: PLC0415 - an optional extra

        with suppress(OperationFailure):  # whoever may not have all written out sees what was a minute ago
            self._client.admin.command("fsync")
        result = self._collection.database.command("collStats", self._collection.name)
        stats = cast("Mapping[str, int]", result)
        indexes = int(stats["totalIndexSize"])
        return DatabaseSize(int(stats["storageSize"]) + indexes, indexes)


SQLITE_DATABASE_HOW = "a transaction each, written ahead to a log that is flushed at checkpoints"

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
    """Open a new file in a folder, for a block; raises StorageError if it cannot be made or written."""
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
        self.how = SQLITE_DATABASE_HOW
        self._connection, self._path = connection, path
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _TABLE, *_INDEXES):
            connection.execute(statement)

    def insert(self, patterns: Sequence[Pattern]) -> None:
        rows = [(pattern.name, pattern.level, pattern.frequency, " ".join(pattern.words)) for pattern in patterns]
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
