"""Reads measured sizes from tables of other programs: a column of sizes, and one for each figure."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence

from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.engine.growth.growth_fit import FIGURES

SIZE = "n"
_SIZE_NAMES = (SIZE, "size", "samples", "num_samples", "items", "rows")
_MEANT = {
    "time": "seconds",
    "elapsed": "seconds",
    "duration": "seconds",
    "memory": "peak_memory_bytes",
    "memory_bytes": "peak_memory_bytes",
    "peak_memory": "peak_memory_bytes",
    "disk": "disk_bytes",
    "storage_bytes": "disk_bytes",
}
"""Other names of figures."""
_SEPARATORS = ",;\t "
_FORM = "write a line n,seconds and below it a line for each measurement, such as 1000,2.5"


def read_points(text: str, file: str = "") -> dict[str, tuple[tuple[float, float], ...]]:
    """Return the points of each figure of a table.

    The first line may name the columns; without, the first is of sizes and the others are the figures in their order.
    Empty cells are left out, lines that begin with ``#`` too.

    Args:
        text: comma-separated values, or with semicolons, tabs or blanks.
        file: whose text it is, for messages.

    Raises:
        CapacityError: there is no size or figure in it, or a cell is no number.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise CapacityError("nothing was measured", hint=_FORM, place=Place(file or None))
    separator = next((mark for mark in _SEPARATORS if mark in lines[0][1]), ",")
    rows = [(number, _cells(line, separator)) for number, line in lines]
    names = _names(rows[0][1], file)
    body = rows[1:] if _number(rows[0][1][0]) is None else rows
    columns: dict[str, list[tuple[float, float]]] = {}
    place = names.index(SIZE)
    for number, cells in body:
        size = _needed(cells, place, number, file)
        for name, value in _values(names, cells, number, file):
            columns.setdefault(name, []).append((size, value))
    if not columns:
        raise CapacityError("nothing was measured", hint=_FORM, place=Place(file or None))
    return {name: tuple(points) for name, points in columns.items()}


def _cells(line: str, separator: str) -> list[str]:
    (cells,) = csv.reader([line], delimiter=separator, skipinitialspace=True)
    return [cell.strip() for cell in cells]


def _names(first: Sequence[str], file: str) -> list[str]:
    """Return what each column holds, sizes as ``n``."""
    if len(first) < 2:
        raise CapacityError("one column is too few", hint=_FORM, place=Place(file or None, 1))
    if _number(first[0]) is not None:
        figures = [*FIGURES, *(f"column {place}" for place in range(len(FIGURES) + 2, len(first) + 1))]
        return [SIZE, *figures[: len(first) - 1]]
    names = [_MEANT.get(name.casefold(), name.casefold()) for name in first]
    size = next((name for name in _SIZE_NAMES if name in names), None)
    if size is None:
        detail = f"there are {', '.join(first)}"[:120]
        raise CapacityError("no column of sizes", detail, f"call it {SIZE}", Place(file or None, 1))
    return [SIZE if name == size else name for name in names]


def _values(names: Sequence[str], cells: Sequence[str], line: int, file: str) -> Iterator[tuple[str, float]]:
    """Yield the figures of a row; columns that hold words are no figures."""
    for place, name in enumerate(names):
        if name == SIZE or place >= len(cells) or not cells[place]:
            continue
        value = _number(cells[place])
        if value is None and name in FIGURES:
            value = _needed(cells, place, line, file)
        if value is not None:
            yield name, value


def _needed(cells: Sequence[str], place: int, line: int, file: str) -> float:
    value = _number(cells[place]) if place < len(cells) else None
    if value is None:
        shown = cells[place][:40] if place < len(cells) else ""
        raise CapacityError(f"{shown!r} is no number", hint=_FORM, place=Place(file or None, line))
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
