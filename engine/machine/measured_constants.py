"""What was measured on this machine, as files the user's folder keeps: constants that replace the catalogue's.

Each device has one file, ``measured/<device>.json`` in the folder of the program's data, written by ``calibrate``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from capacity_tui.engine.errors import HardwareError, Place, StorageError
from capacity_tui.engine.files import data_folder, reading_error
from capacity_tui.engine.machine.facts import MEASURED
from capacity_tui.engine.numeric import Curve
from capacity_tui.engine.record import dataclass, record_of_data

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Constant = Annotated[float, Field(gt=0, allow_inf_nan=False)]
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
    median: Amount  # median relative error of the fitted formula
    worst: Amount  # largest relative error of it
    # median error between the samples, each predicted from the others; None without a curve
    interpolated: Amount | None = None


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What one run of the user's own says of its device."""

    date: str  # its day, ISO
    # what it is like by words: kind of work, precision, family, software, method, optimizer, layout
    words: Mapping[str, str]
    # likewise by numbers: tokens of a sequence, parameters, sequences or samples at once, devices
    numbers: Mapping[str, Amount]
    # how many times faster the device is than its other constants say; None where no time was measured
    speed: Constant | None = None
    peak_bytes: Amount | None = None  # memory that it took; None where that was not measured
    tensor_bytes: Amount = 0.0  # what of it is not the device's memory outside the allocator, as estimated
    # how much it counts, from 0 to 1: less where others used the machine too
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0
    # for ``step`` and ``memory``, the standard deviations of the logarithm of measured over estimated, by the part that
    # they come from
    unsure: Mapping[str, Mapping[str, Amount]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasuredEfficiency:
    """Constants measured on one device."""

    device: str  # name that the device's measurements go by
    date: str  # day of the newest sample or run, ISO
    software: Mapping[str, str]
    # share of the dense peak that large products reach, by type
    gemm: Mapping[str, Constant] = field(default_factory=dict)
    # other constants of the efficiency table, in its units
    constants: Mapping[str, Constant] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()  # measured over modelled rates by size
    errors: tuple[FitError, ...] = ()  # how well constants and curves describe the samples
    runs: tuple[MeasuredRun, ...] = ()  # what runs of the user's own say beyond them


def constants_file(key: str, folder: Path | None = None) -> Path:
    """Return the file that holds what was measured on a device."""
    return (folder or data_folder()) / MEASURED / f"{key}.json"


def read_constants(path: Path) -> MeasuredEfficiency:
    """Return the constants in a file; raises StorageError if it cannot be read, or holds something else."""
    try:
        return _constants(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise reading_error(error, path) from error
    except ValueError as error:
        hint = "run capacity-tui calibrate again, or remove the file"
        raise StorageError("measured constants are damaged", str(error), hint, Place(str(path))) from error


def possible(measured: MeasuredEfficiency) -> MeasuredEfficiency:
    """Return constants as they are, once it is sure that their file can be read again.

    Raises:
        HardwareError: a number is beyond what a machine of today could have.
    """
    try:
        return _constants(json.loads(json.dumps(asdict(measured))))
    except ValueError as error:
        hint = "sample again while nothing else runs; check plan and figures of runs of your own"
        raise HardwareError("what was measured cannot be", str(error), hint) from error


def _constants(data: object) -> MeasuredEfficiency:
    """Return constants none of which is beyond what a machine of today could have."""
    measured = record_of_data(MeasuredEfficiency, data)
    speeds = ({"speed": run.speed} for run in measured.runs if run.speed is not None)
    for constants in (measured.gemm, measured.constants, *speeds):
        for name, number in constants.items():
            most = next((most for ending, most in MOST.items() if name.endswith(ending)), MOST_SHARE)
            if number > most:
                raise ValueError(f"{name} is {number:g}, beyond the {most:g} that can be")
    for curve in measured.curves:
        are_sizes = bool(curve.sizes) and all(0 < size < math.inf for size in curve.sizes)
        if not are_sizes or len(curve.sizes) != len(curve.ratios) or list(curve.sizes) != sorted(curve.sizes):
            raise ValueError(f"curve {curve.name!r:.60} has no ascending sizes, each with its ratio")
        for ratio in curve.ratios:
            if not 0 < ratio <= MOST_RATIO:
                what = f"a ratio of {ratio:g}, beyond the {MOST_RATIO:g} that can be"
                raise ValueError(f"curve {curve.name!r:.60} has {what}")
    return measured
