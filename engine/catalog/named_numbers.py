"""Numbers of formulas that stand in a file of their own, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from capacity_tui.engine.catalog.reading import parse_shipped


@dataclass(frozen=True, slots=True)
class NamedNumber:
    """One number.

    Attributes:
        name: what it says.
        value: the number; every formula is handed this very object.
        source: what it rests on.
        unit: of the value, empty for a pure number.
    """

    name: str
    value: float
    source: str
    unit: str = ""


@cache
def named_numbers(file: str) -> Mapping[str, NamedNumber]:
    """Return every number of a file in ``profiles/`` by its key."""
    rows = parse_shipped(files("capacity_tui.profiles").joinpath(file))
    return {
        key: NamedNumber(row["name"], float(row["value"]), row["source"], row.get("unit", ""))
        for key, row in rows.items()
    }


def counted(count: str) -> float:
    """Return a counted number by its key."""
    return counts()[count].value


def counts() -> Mapping[str, NamedNumber]:
    """Return every counted number by its key."""
    return named_numbers("counts.yaml")
