"""Numbers of formulas that were counted once, for all hardware and software: ``profiles/counts.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capacity_tui.engine.catalog.named_numbers import NamedNumber, named_numbers


def counted(count: str) -> float:
    """Return a counted number by its key."""
    return counts()[count].value


def counts() -> Mapping[str, NamedNumber]:
    """Return every counted number by its key."""
    return named_numbers("counts.yaml")


def counts_told() -> Iterator[tuple[object, str]]:
    """Yield each number with how it was counted, for explanations."""
    for count in counts().values():
        yield count.value, f"counted: {count.source}"
