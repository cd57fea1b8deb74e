"""From where on laws of growth count as decided, and what else was chosen once: ``profiles/growth.yaml``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from capacity_tui.engine.catalog.parsed import parse_shipped


@cache
def chosen_number(key: str) -> float:
    """Return a number of the file by its key."""
    return float(parse_shipped(files("capacity_tui.profiles").joinpath("growth.yaml"))[key]["value"])
