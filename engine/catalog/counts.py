"""Numbers of formulas that were counted once, for all hardware and software: ``profiles/counts.yaml``."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog.named_numbers import NamedNumber, named_numbers


def counted(count: str) -> float:
    """Return a counted number by its key."""
    return counts()[count].value


def counts() -> Mapping[str, NamedNumber]:
    """Return every counted number by its key."""
    return named_numbers("counts.yaml")
