"""What moving a job is assumed to take, and from where on gains and risks count: ``profiles/migration.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from capacity_tui.engine.catalog.parsed import parse_shipped


@dataclass(frozen=True, slots=True)
class Assumption:
    """One assumed number.

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


def assumed(key: str) -> float:
    """Return an assumed number by its key."""
    return assumptions()[key].value


@cache
def assumptions() -> Mapping[str, Assumption]:
    """Return every assumed number by its key."""
    rows = parse_shipped(files("capacity_tui.profiles").joinpath("migration.yaml"))
    return {
        key: Assumption(row["name"], float(row["value"]), row["source"], row.get("unit", ""))
        for key, row in rows.items()
    }
