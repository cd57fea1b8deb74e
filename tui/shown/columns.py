"""What stands over the columns of a table, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column.

    Attributes:
        title: what stands over it.
        rank: 0 where it is never left out for want of room; of the others the highest goes first.
        is_number: whether it stands at the right.
    """

    title: str
    rank: int = 0
    is_number: bool = True
