"""From where on laws of growth count as decided, and what else was chosen once: ``profiles/growth.yaml``."""

from __future__ import annotations

from capacity_tui.engine.catalog import named_numbers


def chosen_number(key: str) -> float:
    """Return a number of the file by its key."""
    return named_numbers("growth.yaml")[key].value
