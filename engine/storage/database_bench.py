"""A database of patterns measured: how fast it stores and finds them, and its size beside what was estimated."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path

from capacity_tui.engine.errors import CapacityError, StorageError
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.machine.benchmark import (
    FIGURES,
    BenchmarkReport,
    Conditions,
    Measurement,
    Progress,
    Skipped,
    quantile,
    run_benchmarks,
    spread,
)
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.storage.pattern_store import (
    Database,
    DatabaseSize,
    mongodb_database,
    name_of,
    patterns,
    sqlite_database,
)

BACKENDS = ("sqlite", "mongodb")
DOCUMENTS = 1000  # The fewest: a tenth of less fills too few pages to tell a size from
CHUNK = 15
_AT_ONCE = 100
_SINGLE = 1000
_QUERIES = 1000
_CALIBRATED_SHARE = 10
_SIZES_ASKED = 20


@dataclass(frozen=True, slots=True)
class BenchQuestion:
    """What is measured."""

    backend: str = "sqlite"  # one of BACKENDS
    documents: int = DOCUMENTS  # patterns that are stored
    chunk: int = CHUNK  # words of a pattern
    uri: str = ""  # of the MongoDB
    folder: Path | None = None  # where the file of SQLite lies; the temporary folder where None


@dataclass(frozen=True, slots=True)
class Latency:
    """How long single calls took."""

    seconds: tuple[float, ...]  # of each

    @property
    def mean_ms(self) -> float:
        """Milliseconds, the mean of all calls."""
        return 1000 * sum(self.seconds) / len(self.seconds)

    @property
    def per_second(self) -> float:
        """Calls a second, one after the other."""
        return 1000 / self.mean_ms

    def __repr__(self) -> str:
        """Return how many there were and how long they took, in place of thousands of numbers."""
        return f"Latency({len(self.seconds)} calls, mean {self.mean_ms:.3g} ms)"

    def ms(self, share: float) -> float:
        """Return the milliseconds that a share of the calls does not exceed."""
        return 1000 * quantile(sorted(self.seconds), share)


@dataclass(frozen=True, slots=True)
class DatabaseBench:
    """What came of it."""

    question: BenchQuestion  # what was measured
    place: str  # where, without a password
    version: str  # what served
    how: str  # what counted as stored
    write_per_second: float  # patterns stored a second, a hundred in one go
    insert: Latency  # how long storing one took, one after the other
    query: Latency  # how long finding one by name took, likewise
    size: DatabaseSize  # on disk, with indexes
    content_bytes: int  # what the patterns say, without what a database adds
    estimated_bytes: float  # size on disk, scaled from a tenth of the patterns
    calibrated_on: int  # how many patterns that was

    @property
    def overhead(self) -> float | None:
        """What the database adds, as a share of what the patterns say, below zero where it compresses; None untold."""
        return self.size.total_bytes / self.content_bytes - 1 if self.size.total_bytes else None

    @property
    def error(self) -> float | None:
        """How far the estimate lies above the size, as a share of it; None where the database tells none."""
        return self.estimated_bytes / self.size.total_bytes - 1 if self.size.total_bytes else None


def measure_database(question: BenchQuestion, seen: Callable[[str], None] = lambda _: None) -> DatabaseBench:
    """Store patterns, find them, and return how long that took and what it takes on disk; nothing stays.

    Args:
        seen: told what begins, and asked with an empty text between portions; raises to stop.

    Raises:
        CapacityError: the question cannot be.
        MissingPartError: MongoDB's driver is not installed.
        StorageError: the database cannot be used, or does not give back what was stored.
    """
    _check(question)
    with _opened(question) as database:
        tenth = question.documents // _CALIBRATED_SHARE
        single = min(_SINGLE, tenth)
        together = question.documents - tenth - single
        seen(f"storing {tenth} patterns, which tell the size of all")
        estimated = _estimated_bytes(database, tenth, question)
        seen(f"storing {together} patterns, {_AT_ONCE} in one go")
        taken = _stored(database, tenth, together, _AT_ONCE, question, seen)
        seen(f"storing {single} patterns one after the other")
        inserts = _stored(database, tenth + together, single, 1, question, seen)
        seen("finding patterns by name")
        queries = _lookup_seconds(database, question)
        return DatabaseBench(
            question=question,
            place=database.place,
            version=database.version,
            how=database.how,
            write_per_second=together / sum(taken),
            insert=Latency(tuple(inserts)),
            query=Latency(tuple(queries)),
            size=database.size(),
            content_bytes=sum(pattern.content_bytes for pattern in patterns(0, question.documents, question.chunk)),
            estimated_bytes=estimated,
            calibrated_on=tenth,
        )


def _check(question: BenchQuestion) -> None:
    if question.backend not in BACKENDS:
        raise CapacityError(f"no back-end is called {question.backend!r}", hint=f"there are {', '.join(BACKENDS)}")
    if question.documents < DOCUMENTS:
        detail = f"{question.documents} are too few to tell a size from a tenth of them"
        raise CapacityError("too few documents", detail, f"give at least {DOCUMENTS}")
    if question.chunk < 1:
        raise CapacityError("a pattern needs words", f"{question.chunk} were given", "give at least 1")
    if question.backend == "mongodb" and not question.uri:
        hint = "name one, such as --uri mongodb://localhost:27017"
        raise CapacityError("MongoDB is measured where a URI is given", hint=hint)


def _opened(question: BenchQuestion) -> AbstractContextManager[Database]:
    if question.backend == "mongodb":
        return mongodb_database(question.uri)
    return sqlite_database(question.folder or Path(tempfile.gettempdir()))


def _estimated_bytes(database: Database, count: int, question: BenchQuestion) -> float:
    """Store the first patterns, and return what all will take.

    Databases grow by whole pages, so that one size tells little. The size is asked for again and again, and what a
    pattern takes is the slope b of size = empty + b · stored that meets these sizes with least squares.
    """
    empty = database.size().total_bytes
    marks = [count * number // _SIZES_ASKED for number in range(_SIZES_ASKED + 1)]
    sizes = []
    for first, end in pairwise(marks):
        database.insert(tuple(patterns(first, end - first, question.chunk)))
        sizes.append(database.size().total_bytes - empty)
    slope = sum(size * stored for size, stored in zip(sizes, marks[1:], strict=True)) / sum(x * x for x in marks)
    return empty + slope * question.documents


def _stored(
    database: Database, first: int, count: int, at_once: int, question: BenchQuestion, seen: Callable[[str], None]
) -> list[float]:
    """Store patterns in portions; return the seconds of each."""
    taken = []
    for start in range(first, first + count, at_once):
        seen("")
        portion = tuple(patterns(start, min(at_once, first + count - start), question.chunk))
        started = time.perf_counter()
        database.insert(portion)
        taken.append(_since(started))
    return taken


def _lookup_seconds(database: Database, question: BenchQuestion) -> list[float]:
    """Look patterns up at random; return the seconds of each; raises StorageError if one is not there."""
    drawn = random.Random(0)  # any patterns will do
    taken = []
    for _ in range(min(question.documents, _QUERIES)):
        name = name_of(drawn.randrange(question.documents))
        started = time.perf_counter()
        frequency = database.frequency(name)
        taken.append(_since(started))
        if frequency is None:
            raise StorageError("the database lost what it had stored", f"no pattern {name}", "do not trust it")
    return taken


def _since(started: float) -> float:
    return max(time.perf_counter() - started, 1e-9)


DATABASE = "database"


def benchmark_machine(
    machine: Machine,
    folder: Path | None = None,
    url: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: threading.Event | None = None,
) -> BenchmarkReport:
    """Measure this machine and return what was found; see ``run_benchmarks``."""
    more = {DATABASE: measure_embedded}
    return run_benchmarks(machine, folder=folder, url=url, progress=progress, cancelled=cancelled, more=more)


def measure_embedded(conditions: Conditions) -> Iterator[Measurement | Skipped]:
    """Yield how many patterns an SQLite file stores and finds a second, one after the other."""
    question = BenchQuestion(folder=conditions.folder)
    try:
        result = measure_database(question, lambda _: conditions.check())
    except StorageError as error:
        yield Skipped(DATABASE, error.one_line())
        return
    how = f"{result.version}, {question.documents} patterns of {question.chunk} words"
    yield _rate("stored_patterns", "patterns stored", result.insert.seconds, f"{how}, {result.how}")
    yield _rate("found_patterns", "patterns found by name", result.query.seconds, how)


def _rate(figure: str, name: str, seconds: Sequence[float], how: str) -> Measurement:
    return Measurement(FIGURES[figure], name, "patterns/s", spread([1 / value for value in seconds]), how)
