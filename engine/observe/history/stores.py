"""What a store of the history can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from capacity_tui.engine.observe.history.records import Kind, RunRecord

ESTIMATES_KEPT = 10_000
"""Of more estimates than these, every other one of the older half is dropped."""


@dataclass(frozen=True, slots=True)
class WantedRuns:
    """A query of entries: those that meet every given condition.

    Attributes:
        kinds: of these kinds; of any where empty.
        model: whose plan's model has this in its name.
        hardware: whose hardware has this in its name.
        since: started at this time or later, ISO 8601.
        device: of the device that goes by this key.
        measured: whether only those with something measured.
        most: at most so many, the newest; 0 for all.
    """

    kinds: tuple[Kind, ...] = ()
    model: str = ""
    hardware: str = ""
    since: str = ""
    device: str = ""
    measured: bool = False
    id_starts: str = ""
    most: int = 0


class Store(Protocol):
    """Keeps entries. Every method raises a StorageError where the store cannot be used.

    Attributes:
        notes: what the user should know of what happened to the store, one line each.
    """

    notes: list[str]

    def add(self, records: Sequence[RunRecord]) -> None:
        """Store entries; one whose id is there already stays as it is, so that storing them again does no harm.

        An estimate that says what the newest of the same plan says is left out.
        """

    def find(self, wanted: WantedRuns) -> tuple[RunRecord, ...]:
        """Return entries, the newest first."""

    def forget(self, ids: Sequence[str]) -> int:
        """Remove entries, and return how many were there."""
