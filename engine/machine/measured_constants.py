"""What was measured on this machine, as files the user's folder keeps: constants that replace the catalogue's.

Each device has one file, ``measured/<device>.json`` in the folder of the program's data, written by ``calibrate``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from capacity_tui.engine.errors import HardwareError, Place, StorageError
from capacity_tui.engine.files import data_folder, json_table, reading_error
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from capacity_tui.engine.numeric import Curve

FOLDER = "measured"
MOST_SHARE = 40.0
"""Shares of a nominal figure, which may be an assumption: caches and boost clocks lift some above 1, none that high."""
MOST_RATIO = 100.0  # Measured over modelled rates of a curve
MOST = {"_seconds": 1.0, "_bytes": 1e12, "_length": 1e6, "_width": 1e4}
"""What constants of other kinds can be at most, by the end of their names."""


@dataclass(frozen=True, slots=True)
class FitError:
    """How well measured constants describe what they were fitted to; shares are fractions of one."""

    name: str  # what was fitted, such as ``gemm.fp32``
    count: int
    median: float  # median relative error of the fitted formula
    worst: float  # largest relative error of it
    # median error between the samples, each predicted from the others; None without a curve
    interpolated: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What one run of the user's own says of its device."""

    date: str  # its day, ISO
    # what it is like by words: kind of work, precision, family, software, method, optimizer, layout
    words: Mapping[str, str]
    # likewise by numbers: tokens of a sequence, parameters, sequences or samples at once, devices
    numbers: Mapping[str, float]
    # how many times faster the device is than its other constants say; None where no time was measured
    speed: float | None = None
    peak_bytes: float | None = None  # memory that it took; None where that was not measured
    tensor_bytes: float = 0.0  # what of it is not the device's memory outside the allocator, as estimated
    weight: float = 1.0  # how much it counts, from 0 to 1: less where others used the machine too
    # for ``step`` and ``memory``, the standard deviations of the logarithm of measured over estimated, by the part that
    # they come from
    unsure: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasuredEfficiency:
    """Constants measured on one device."""

    device: str  # name that the device's measurements go by
    date: str  # day of the newest sample or run, ISO
    software: Mapping[str, str]
    # share of the dense peak that large products reach, by type
    gemm: Mapping[str, float] = field(default_factory=dict)
    # other constants of the efficiency table, in its units
    constants: Mapping[str, float] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()  # measured over modelled rates by size
    errors: tuple[FitError, ...] = ()  # how well constants and curves describe the samples
    runs: tuple[MeasuredRun, ...] = ()  # what runs of the user's own say beyond them


def constants_file(key: str, folder: Path | None = None) -> Path:
    """Return the file that holds what was measured on a device."""
    return (folder or data_folder()) / FOLDER / f"{key}.json"


def read_constants(path: Path) -> MeasuredEfficiency:
    """Return the constants in a file; raises StorageError if it cannot be read, or holds something else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return _constants(cast("Mapping[str, object]", data))
    except OSError as error:
        raise reading_error(error, path) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "run capacity-tui calibrate again, or remove the file"
        raise StorageError("measured constants are damaged", str(error), hint, Place(str(path))) from error


def possible(measured: MeasuredEfficiency) -> MeasuredEfficiency:
    """Return constants as they are, once it is sure that their file can be read again.

    Raises:
        HardwareError: a number is beyond what a machine of today could have.
    """
    try:
        return _constants(json.loads(json.dumps(asdict(measured))))
    except (ValueError, TypeError) as error:
        hint = "sample again while nothing else runs; check plan and figures of runs of your own"
        raise HardwareError("what was measured cannot be", str(error), hint) from error


def _constants(data: Mapping[str, object]) -> MeasuredEfficiency:
    return MeasuredEfficiency(
        device=str(data["device"]),
        date=str(data["date"]),
        software={name: str(value) for name, value in json_table(data["software"]).items()},
        gemm=_bounded(data["gemm"]),
        constants=_bounded(data["constants"]),
        curves=tuple(_curve(row) for row in _rows(data["curves"])),
        errors=tuple(_error(row) for row in _rows(data["errors"])),
        runs=tuple(_run(row) for row in _rows(data.get("runs", []))),
    )


def _rows(value: object) -> list[Mapping[str, object]]:
    if not isinstance(value, list):
        raise TypeError(f"a list is expected, not {value!r:.60}")
    return [json_table(row) for row in value]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise TypeError(f"a number is expected, not {value!r:.60}")
    return float(value)


def _positive(value: object) -> dict[str, float]:
    constants = {name: _number(number) for name, number in json_table(value).items()}
    if any(number == 0 for number in constants.values()):
        raise ValueError("a constant is 0")
    return constants


def _bounded(value: object) -> dict[str, float]:
    """Return constants none of which is beyond what a machine of today could have."""
    constants = _positive(value)
    for name, number in constants.items():
        most = next((most for ending, most in MOST.items() if name.endswith(ending)), MOST_SHARE)
        if number > most:
            raise ValueError(f"{name} is {number:g}, beyond the {most:g} that can be")
    return constants


def _numbers(value: object) -> tuple[float, ...]:
    return tuple(_positive(dict(enumerate(value))).values()) if isinstance(value, list) else ()


def _curve(row: Mapping[str, object]) -> Curve:
    sizes, ratios = _numbers(row["sizes"]), _numbers(row["ratios"])
    if not sizes or len(sizes) != len(ratios) or list(sizes) != sorted(sizes):
        raise ValueError(f"curve {row['name']!r:.60} has no ascending sizes, each with its ratio")
    if max(ratios) > MOST_RATIO:
        raise ValueError(
            f"curve {row['name']!r:.60} has a ratio of {max(ratios):g}, beyond the {MOST_RATIO:g} that can be"
        )
    from capacity_tui.engine.numeric import Curve  # noqa: PLC0415 - loads numpy, which few machines need here

    return Curve(str(row["name"]), sizes, ratios)


def _error(row: Mapping[str, object]) -> FitError:
    between = row.get("interpolated")
    return FitError(
        name=str(row["name"]),
        count=int(_number(row["count"])),
        median=_number(row["median"]),
        worst=_number(row["worst"]),
        interpolated=None if between is None else _number(between),
    )


def _run(row: Mapping[str, object]) -> MeasuredRun:
    speed, peak = row["speed"], row["peak_bytes"]
    return MeasuredRun(
        date=str(row["date"]),
        words={name: str(word) for name, word in json_table(row["words"]).items()},
        numbers={name: _number(number) for name, number in json_table(row["numbers"]).items()},
        speed=None if speed is None else _bounded({"speed": speed})["speed"],
        peak_bytes=None if peak is None else _number(peak),
        tensor_bytes=_number(row["tensor_bytes"]),
        weight=min(_number(row["weight"]), 1.0),
        unsure={
            figure: {part: _number(deviation) for part, deviation in json_table(parts).items()}
            for figure, parts in json_table(row.get("unsure", {})).items()
        },
    )
