"""Numbers of formulas that were counted once, for all hardware and software: ``profiles/counts.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from capacity_tui.engine.catalog.parsed import parse_shipped


@dataclass(frozen=True, slots=True)
class Count:
    """One counted number.

    Attributes:
        name: what it counts.
        value: how many; every formula is handed this very object.
        source: how it was counted.
        unit: of the value, empty for a pure number.
    """

    name: str
    value: float
    source: str
    unit: str = ""


def counted(count: str) -> float:
    """Return a counted number by its key."""
    return counts()[count].value


@cache
def counts() -> Mapping[str, Count]:
    """Return every counted number by its key."""
    rows = parse_shipped(files("capacity_tui.profiles").joinpath("counts.yaml"))
    return {
        key: Count(row["name"], float(row["value"]), row["source"], row.get("unit", "")) for key, row in rows.items()
    }


def counts_told() -> Iterator[tuple[object, str]]:
    """Yield each number with how it was counted, for explanations."""
    for count in counts().values():
        yield count.value, f"counted: {count.source}"
