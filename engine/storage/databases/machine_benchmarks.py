"""All benchmarks of this machine, that of an embedded database among them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.machine.benchmark import (
    FIGURES,
    BenchmarkReport,
    Conditions,
    Measurement,
    Progress,
    Skipped,
    run_benchmarks,
    spread,
)
from capacity_tui.engine.storage.databases.bench import BenchQuestion, measure_database

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
        found = measure_database(question, lambda _: conditions.check())
    except StorageError as error:
        yield Skipped(DATABASE, error.one_line())
        return
    how = f"{found.version}, {question.documents} patterns of {question.chunk} words"
    yield _rate("stored_patterns", "patterns stored", found.insert.seconds, f"{how}, {found.how}")
    yield _rate("found_patterns", "patterns found by name", found.query.seconds, how)


def _rate(figure: str, name: str, seconds: Sequence[float], how: str) -> Measurement:
    return Measurement(FIGURES[figure], name, "patterns/s", spread([1 / each for each in seconds]), how)
