"""What the engine tells of the patterns of a corpus, in the words of the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import SupportsFloat

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import roomiest_disk
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.present.storage import growth_rows, pattern_remarks
from capacity_tui.engine.storage import PatternLevel, PatternQuestion, PatternStorage, pattern_storage
from capacity_tui.engine.storage import growth as pattern_growth
from capacity_tui.engine.units import format_bytes, format_count, format_percent
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.corpus import LogChart, LogCurve, LogLimit, StoredLevel, StoredPatterns
from capacity_tui.tui.shown.results import TableColumn
from capacity_tui.tui.shown.tried import Tried

_COLUMNS = (
    TableColumn("level", is_number=False),
    TableColumn("holds", rank=3, is_number=False),
    TableColumn("patterns", rank=4),
    TableColumn("repeated", rank=1),
    TableColumn("unique"),
    TableColumn("by the law", rank=2),
    TableColumn("size"),
    TableColumn("range", rank=5),
)
_DISK = "The disk"
_RANKS = 40
"""Points of a curve of frequencies."""


def stored_patterns(question: PatternQuestion, machine: Machine | None, catalog: Catalog) -> StoredPatterns:
    """Return what the patterns of a corpus take to keep, and how far the disk and the memory of a machine reach.

    Args:
        question: the corpus.
        machine: where they would be kept; None for nowhere in particular.
        catalog: facts.
    """
    stored, grown = pattern_storage(question, catalog), pattern_growth(question, catalog)
    total = float(stored.total_bytes.value)
    room = dict(_room(machine))
    reach = {label: float(question.samples) * size / total for label, (size, _) in room.items()}
    levels = tuple(_level(level, total) for level in stored.levels)
    return StoredPatterns(
        _COLUMNS,
        (*levels, _everything(stored, levels[0])),
        _growth(stored, grown, tuple(LogLimit(size, text) for size, text in room.values())),
        (*(f"{label} is full at {_count(samples)} samples." for label, samples in reach.items()), *_remarks(stored)),
        reach.get(_DISK),
    )


def tried_size(question: PatternQuestion, machine: Machine | None, catalog: Catalog) -> Tried:
    """Return what the patterns of a corpus take of the disk of a machine.

    Args:
        question: the corpus.
        machine: where they would be kept; None for nowhere in particular.
        catalog: facts.
    """
    size = float(pattern_storage(question, catalog).total_bytes.value)
    disk = None if machine is None else roomiest_disk(machine)
    free = None if disk is None else disk.free_bytes.value
    share = size / free if free else None
    verdict = Verdict.UNKNOWN if share is None else Verdict.FITS if share <= 1 else Verdict.DOES_NOT_FIT
    return Tried(verdict, time=_size(size), share=share)


def _room(machine: Machine | None) -> Iterator[tuple[str, tuple[float, str]]]:
    """Yield the places where patterns may be kept: bytes, and how a picture names them."""
    if machine is None:
        return
    disk, memory = roomiest_disk(machine), machine.memory.total_bytes.value
    if disk is not None and disk.free_bytes.value:
        free = float(disk.free_bytes.value)
        yield _DISK, (free, f"disk {_size(free)} free")
    if memory:
        yield "The memory", (float(memory), f"memory {_size(memory)}")


def _level(level: PatternLevel, total: float) -> StoredLevel:
    size = level.bytes
    cells = (
        level.name,
        level.holds,
        _count(level.samples),
        format_percent(level.deduplication, 1).replace(".0 ", " "),
        _count(level.unique.value),
        _count(level.expected),
        _size(size.value),
        f"{_size(size.low)} – {_size(size.high)}",
    )
    size_of_one = format_bytes(float(level.pattern_bytes), "B")
    about = (
        f"Of {cells[2]} patterns at this level the rule keeps {cells[4]} different ones; by the law {cells[5]} of "
        f"{_count(level.kinds)} kinds are expected. One takes {size_of_one} as a document."
    )
    return StoredLevel(f"{level.name}, {level.holds}", cells, float(size.value) / total, about, _frequencies(level))


def _everything(stored: PatternStorage, first: StoredLevel) -> StoredLevel:
    """Return all levels together."""
    size = stored.total_bytes
    cells = (
        *("all", "", "", ""),
        _count(stored.unique),
        _count(stored.expected),
        _size(size.value),
        f"{_size(size.low)} – {_size(size.high)}",
    )
    about = f"All levels, with what the store adds; the documents alone take {_size(stored.raw_bytes)}."
    return StoredLevel("all levels", cells, 1.0, about, first.frequencies, is_total=True)


def _frequencies(level: PatternLevel) -> LogChart:
    kinds = max(float(level.kinds), 1.0)
    ranks = sorted({kinds ** (place / (_RANKS - 1)) for place in range(_RANKS)})
    points = tuple((rank, float(level.frequency(rank))) for rank in ranks)
    return LogChart(f"occurrences over rank, {level.name} {level.holds}", (LogCurve(points),))


def _growth(stored: PatternStorage, grown: PatternStorage, room: tuple[LogLimit, ...]) -> LogChart:
    rows = growth_rows(grown)
    curves = tuple(
        LogCurve(tuple((row["samples"], row[key]) for row in rows), key != "total_bytes")
        for key in ("low", "high", "total_bytes")
    )
    here = float(stored.question.samples), float(stored.total_bytes.value)
    return LogChart("size over samples", curves, room, here, "B")


def _remarks(stored: PatternStorage) -> Iterator[str]:
    for remark in pattern_remarks(stored):
        yield f"{remark[0].upper()}{remark[1:]}."


def _count(value: SupportsFloat) -> str:
    return format_count(float(value), decimals=2)


def _size(value: SupportsFloat) -> str:
    return format_bytes(float(value), "GB")
