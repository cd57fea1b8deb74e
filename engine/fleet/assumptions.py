"""What moving a job is assumed to take, and from where on gains and risks count: ``profiles/migration.yaml``."""

from __future__ import annotations

from capacity_tui.engine.catalog import named_numbers


def assumed(key: str) -> float:
    """Return an assumed number by its key."""
    return named_numbers("migration.yaml")[key].value
