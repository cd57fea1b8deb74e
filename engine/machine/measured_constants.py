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
MOST_RATIO = 100.0
"""Measured over modelled rates of a curve."""
MOST = {"_seconds": 1.0, "_bytes": 1e12, "_length": 1e6, "_width": 1e4}
"""What constants of other kinds can be at most, by the end of their names."""


@dataclass(frozen=True, slots=True)
class FitError:
    """How well measured constants describe what they were fitted to; shares are fractions of one.

    Attributes:
        name: what was fitted, such as ``gemm.fp32``.
        median: median relative error of the fitted formula.
        worst: largest relative error of it.
        interpolated: median error between the samples, each predicted from the others; None without a curve.
    """

    name: str
    count: int
    median: float
    worst: float
    interpolated: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredEfficiency:
    """Constants measured on one device.

    Attributes:
        device: name that the device's measurements go by.
        date: day of the newest sample or run, ISO.
        gemm: share of the dense peak that large products reach, by type.
        constants: other constants of the efficiency table, in its units.
        curves: measured over modelled rates by size.
    """

    device: str
    date: str
    software: Mapping[str, str]
    gemm: Mapping[str, float] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()
    errors: tuple[FitError, ...] = ()


def constants_file(key: str, folder: Path | None = None) -> Path:
    """Return the file that holds what was measured on a device."""
    return (folder or data_folder()) / FOLDER / f"{key}.json"


def read_constants(path: Path) -> MeasuredEfficiency:
    """Return the constants in a file.

    Raises:
        StorageError: it cannot be read, or holds something else.
    """
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
