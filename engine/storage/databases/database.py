"""What a database of patterns can do, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from capacity_tui.engine.storage.databases.patterns import Pattern


@dataclass(frozen=True, slots=True)
class DatabaseSize:
    """What a database takes on disk.

    Attributes:
        total_bytes: all of it.
        index_bytes: of that, what its indexes take; None where it does not tell.
    """

    total_bytes: int
    index_bytes: int | None


class Database(Protocol):
    """Holds patterns, found by their names and by level and frequency. Every method raises a StorageError.

    Attributes:
        place: where it is, without a password.
        version: what serves it.
        how: what counts as stored.
    """

    place: str
    version: str
    how: str

    def insert(self, patterns: Sequence[Pattern]) -> None:
        """Store patterns, all of them in one go."""

    def frequency(self, name: str) -> int | None:
        """Return how often the pattern of a name occurred; None where there is none."""

    def size(self) -> DatabaseSize:
        """Return what it takes once all is written out."""
