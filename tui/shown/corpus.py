"""What data, checkpoints and patterns take to keep, and charts of it, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Chosen
    from capacity_tui.tui.shown.fields import Field
    from capacity_tui.tui.shown.results import TableColumn
    from capacity_tui.tui.shown.tried import Tried

Unit = Literal["", "B"]
"""What an axis counts: things, or bytes."""


@dataclass(frozen=True, slots=True)
class LogCurve:
    """One curve.

    Attributes:
        points: across and up, by rising place across; all above nothing.
        is_bound: whether it bounds another one, and is drawn in the background.
    """

    points: tuple[tuple[float, float], ...]
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class LogLimit:
    """A line across that says how far one may go up."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class LogChart:
    """A picture of curves over two logarithmic axes.

    Attributes:
        title: what it shows.
        curves: those that bound others first.
        limits: lines across.
        here: a point that stands out; None for none.
        up: what the axis at the left counts.
        about: the picture in words.
    """

    title: str
    curves: tuple[LogCurve, ...]
    limits: tuple[LogLimit, ...] = ()
    here: tuple[float, float] | None = None
    up: Unit = ""
    about: str = ""


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
    def given(self) -> Mapping[str, str]:
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
