"""How a load varies over a day: a named shape, or rates from a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path

import numpy as np

from capacity_tui.engine.catalog import Plain, nearest, parse_shipped, read_text, read_yaml
from capacity_tui.engine.errors import DocumentError, Place, PlanError
from capacity_tui.engine.solve.space import Floats

DAY_SECONDS = 86400.0
# Rates a file may have: one for each minute.
MOST_RATES = 1440


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """Rates in even parts of a day, of which each is the middle; between them they change evenly.

    Attributes:
        name: shape or file.
        rates: requests a second, or any unit that ``scaled`` makes requests a second of.
        source: where the curve comes from.
    """

    name: str
    rates: tuple[float, ...]
    source: str = ""

    @property
    def peak(self) -> float:
        """The highest rate."""
        return max(self.rates)

    def scaled(self, peak: float) -> LoadCurve:
        """Return the curve with another peak."""
        return LoadCurve(self.name, tuple(rate / self.peak * peak for rate in self.rates), self.source)

    def over_day(self, steps: int) -> Floats:
        """Return the rate in each of so many even steps of a day."""
        middles = (np.arange(len(self.rates)) + 0.5) / len(self.rates)
        wanted = (np.arange(steps) + 0.5) / steps
        return np.asarray(np.interp(wanted, middles, self.rates, period=1.0))


def load_curve(name: str) -> LoadCurve:
    """Return a named shape, or the curve of a file.

    A file holds rates as a YAML list, or one a line, the last number of each; what stands before it is a time of day.

    Raises:
        PlanError: it is neither a shape nor a file.
        DocumentError: the file holds no rates.
        StorageError: the file cannot be read.
    """
    if name in _shapes():
        return _shapes()[name]
    path = Path(name)
    if not path.exists():
        near = nearest(name, tuple(_shapes())) or tuple(_shapes())
        raise PlanError("no load is called", repr(name)[:80], f"name a file, or a shape: {', '.join(near)}")
    text = read_text(path)
    if text.lstrip().startswith(("[", "- ", "rates")):
        document = read_yaml(text, str(path))
        found = document.data.get("rates") if isinstance(document.data, dict) else document.data
        rates = [_rate(value, document.place(place)) for place, value in enumerate(found or ())] if isinstance(
            found, list
        ) else []  # fmt: skip
    else:
        rates = list(_lines(text, str(path)))
    if not rates or max(rates) <= 0 or len(rates) > MOST_RATES:
        detail = f"{len(rates)} rates" if rates else "none was found"
        raise DocumentError("not a day's load", detail, f"give 1 to {MOST_RATES} rates, one above 0", Place(str(path)))
    return LoadCurve(path.name, tuple(rates), str(path))


def _lines(text: str, file: str) -> list[float]:
    """Return the last number of each line; a first line of words is a head."""
    found: list[float] = []
    for number, line in enumerate(text.splitlines(), start=1):
        cells = [cell for cell in re.split(r"[,;\s]+", line.partition("#")[0].strip()) if cell]
        if not cells:
            continue
        if not found and not re.match(r"[-+.\d]", cells[-1]):
            continue
        found.append(_rate(cells[-1], Place(file, number)))
    return found


def _rate(value: Plain, place: Place) -> float:
    try:
        rate = float(str(value))
    except ValueError:
        rate = -1.0
    if rate < 0 or not isfinite(rate):
        raise DocumentError("not a rate", repr(value)[:60], "give requests a second, from 0", place)
    return rate


@cache
def _shapes() -> Mapping[str, LoadCurve]:
    rows = parse_shipped(files("capacity_tui.profiles").joinpath("load_shapes.yaml"))
    return {key: LoadCurve(row["name"], tuple(map(float, row["shares"])), row["source"]) for key, row in rows.items()}
