"""Series of measurements: many settings of one command, kept over a stop; and points from tables of other programs."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.files import make_folder, state_folder, writing
from capacity_tui.engine.growth.growth_fit import FIGURES, Points
from capacity_tui.engine.growth.measuring import Measurement, Measuring, Setting
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history import RunRecord


@dataclass(frozen=True, slots=True)
class Series:
    """What came of a series."""

    measured: tuple[Measurement, ...]  # each run, in the order in which they were wanted
    wanted: int  # runs that it has in all
    complete: bool  # whether all of them were taken


def measure_series(
    measuring: Measuring,
    wanted: Sequence[tuple[Setting, int]],
    callback: Callable[[Measurement, RunRecord | None], None],
    kept: KeptMeasurements | None = None,
    hopeless: Callable[[Setting, Iterable[Measurement]], bool] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Series:
    """Measure settings one after another; Ctrl-C ends the series, and what was measured stays for the next time.

    Args:
        wanted: settings, each with which run of it.
        callback: gets each measurement as it comes, with an entry for the history where it was taken now.
        kept: what was measured before a stop, and takes what is measured now.
        hopeless: whether a setting need not be tried after what was measured so far.

    Raises:
        CapacityError: the command cannot be started, or what was measured cannot be kept.
    """
    before = {_key(run.set, run.repeat): run for run in (kept.measurements() if kept else ())}
    measured: list[Measurement] = []
    for setting, repeat in wanted:
        known = before.get(_key(setting, repeat))
        if known is not None:
            measured.append(known)
            callback(known, None)
            continue
        if hopeless is not None and hopeless(setting, measured):
            continue
        measurement, entry, interrupted = measuring.run(setting, repeat)
        if interrupted or stopped():
            return Series(tuple(measured), len(wanted), complete=False)
        if kept is not None:
            kept.add(measurement)
        measured.append(measurement)
        callback(measurement, entry)
    if kept is not None:
        kept.forget()
    return Series(tuple(measured), len(wanted), complete=True)


def wanted_sizes(sizes: Iterable[int], repeats: int) -> list[tuple[Setting, int]]:
    """Return the runs of a job of growing size, the smallest first, each size as often as it is repeated."""
    return [({SIZE: str(size)}, repeat) for size in sorted(set(sizes)) for repeat in range(repeats)]


def larger_than_failed(setting: Setting, measured: Iterable[Measurement]) -> bool:
    """Whether a smaller or equal size took too long or failed: a larger one would too."""
    return any(run.problem and int(run.set[SIZE]) <= int(setting[SIZE]) for run in measured)


def points_of(measured: Iterable[Measurement]) -> dict[str, Points]:
    """Return size and value of each figure that grows with the size, of the runs that ended well."""
    well = [run for run in measured if not run.problem]
    by_figure = {
        figure: [(float(run.set[SIZE]), value) for run in well if (value := getattr(run, figure)) and value > 0]
        for figure in FIGURES
    }
    return {figure: points for figure, points in by_figure.items() if points}


def _key(setting: Setting, repeat: int) -> tuple[tuple[tuple[str, str], ...], int]:
    return tuple(sorted(setting.items())), repeat


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
    column = names.index(SIZE)
    for number, cells in body:
        size = _needed(cells, column, number, file)
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
        figures = [*FIGURES, *(f"column {column}" for column in range(len(FIGURES) + 2, len(first) + 1))]
        return [SIZE, *figures[: len(first) - 1]]
    names = [_MEANT.get(name.casefold(), name.casefold()) for name in first]
    size = next((name for name in _SIZE_NAMES if name in names), None)
    if size is None:
        detail = f"there are {', '.join(first)}"[:120]
        raise CapacityError("no column of sizes", detail, f"call it {SIZE}", Place(file or None, 1))
    return [SIZE if name == size else name for name in names]


def _values(names: Sequence[str], cells: Sequence[str], line: int, file: str) -> Iterator[tuple[str, float]]:
    """Yield the figures of a row; columns that hold words are no figures."""
    for index, name in enumerate(names):
        if name == SIZE or index >= len(cells) or not cells[index]:
            continue
        value = _number(cells[index])
        if value is None and name in FIGURES:
            value = _needed(cells, index, line, file)
        if value is not None:
            yield name, value


def _needed(cells: Sequence[str], column: int, line: int, file: str) -> float:
    value = _number(cells[column]) if column < len(cells) else None
    if value is None:
        shown = cells[column][:40] if column < len(cells) else ""
        raise CapacityError(f"{shown!r} is no number", hint=_FORM, place=Place(file or None, line))
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_FOLDER = "measured"
_DIGEST_BYTES = 10


class KeptMeasurements:
    """What was measured of a command in this folder so far; of a series that was done, nothing."""

    def __init__(self, measuring: Measuring) -> None:
        metric = measuring.metric.text if measuring.metric else ""
        what = json.dumps([measuring.command, measuring.disk, metric, str(Path.cwd())])
        name = hashlib.blake2b(what.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        self._file = state_folder() / _FOLDER / f"{name}.jsonl"

    def measurements(self) -> tuple[Measurement, ...]:
        """Return what was measured before a stop; lines that were cut short are left out."""
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ()
        measurements = []
        for line in lines:
            with suppress(ValueError, TypeError):
                measurements.append(Measurement(**json.loads(line)))
        return tuple(measurements)

    def add(self, measurement: Measurement) -> None:
        """Keep one more; raises StorageError if it cannot be written."""
        make_folder(self._file.parent)
        line = json.dumps(asdict(measurement)) + "\n"
        with writing(self._file):
            handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)

    def forget(self) -> None:
        """Keep nothing of it any more: the series is done, or begins anew."""
        with suppress(OSError, StorageError):
            self._file.unlink(missing_ok=True)
