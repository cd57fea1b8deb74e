"""What data, checkpoints and patterns take to keep, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from capacity_tui.tui.shown.charted import LogChart
    from capacity_tui.tui.shown.columns import TableColumn
    from capacity_tui.tui.shown.compared import Chosen
    from capacity_tui.tui.shown.tried import Tried
    from capacity_tui.tui.view import Field


@dataclass(frozen=True, slots=True)
class StoredLevel:
    """One level of patterns, or all of them.

    Attributes:
        name: what it is called.
        cells: what it has in each column.
        share: how much it takes, 1 for all levels.
        about: what it is.
        frequencies: how often its patterns occur.
        is_total: whether it is all of them.
    """

    name: str
    cells: tuple[str, ...]
    share: float
    about: str
    frequencies: LogChart
    is_total: bool = False


@dataclass(frozen=True, slots=True)
class StoredPatterns:
    """What the patterns of a corpus take to keep.

    Attributes:
        columns: of the table.
        levels: from the lowest; last all of them.
        growth: what they take, over samples, with what there is room for.
        remarks: what to know of it, the most important first.
        most_samples: samples whose patterns the disk has room for; None where that is not known.
    """

    columns: tuple[TableColumn, ...]
    levels: tuple[StoredLevel, ...]
    growth: LogChart
    remarks: tuple[str, ...] = ()
    most_samples: float | None = None


SAMPLES = "samples"
"""The field of a corpus that says how large it is."""


class Corpus(Protocol):
    """A corpus, and how it is cut into patterns; immutable."""

    @property
    def said(self) -> Mapping[str, str]:
        """What the user said of it, by the keys of its fields."""

    def fields(self) -> tuple[Field, ...]:
        """Return what there is to say of it; quick."""

    def chosen(self) -> Mapping[str, Chosen]:
        """Return what holds for fields of which nothing is said, and why; quick."""

    def edited(self, key: str, text: str) -> Corpus:
        """Return it with one field said otherwise; an empty text takes it back.

        Raises:
            CapacityError: the text makes no sense there.
        """

    def command(self) -> str:
        """Return the command that says the same."""

    def tried(self, key: str, text: str) -> Tried:
        """Return what its patterns would take with one field said otherwise, or why that cannot be."""

    def patterns(self) -> StoredPatterns:
        """Return what its patterns take to keep.

        Raises:
            CapacityError: there is no answer for it.
        """
