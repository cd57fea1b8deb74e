"""A plan on its nodes and over device counts, and what its data takes to keep, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.results import NO_ROWS, Table, TableColumn

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Chosen, Tried
    from capacity_tui.tui.shown.results import Field, TableColumn

DeviceState: TypeAlias = Literal["planned", "free", "busy", "down"]
Unit = Literal["", "B"]


@dataclass(frozen=True, slots=True)
class NodesRow:
    """A node, a rack or a kind of device, or several of them.

    Attributes:
        name: what it is called.
        counts: how many devices do what, in words.
        cells: what each part of it does.
        hardware: what its devices are called; empty where that goes without saying.
        notes: what is odd about it.
        change: what makes the plan one for what is free here now; empty where that cannot be.
        refusal: why it cannot be.
    """

    name: str
    counts: str
    cells: tuple[DeviceState, ...]
    hardware: str = ""
    notes: tuple[str, ...] = ()
    change: Mapping[str, object] = field(default_factory=dict, hash=False)
    refusal: str = ""

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells it from other rows."""
        return (("name", self.name), *((name, str(value)) for name, value in self.change.items()))


@dataclass(frozen=True, slots=True)
class NodeMap:
    """The nodes of a cluster, more and less finely.

    Attributes:
        levels: what the rows can stand for, from the finest to the coarsest.
        rows: the rows of each level.
        usual: the level that is read at a glance.
        source: where this comes from.
        is_example: whether they are made up.
    """

    levels: tuple[str, ...]
    rows: Mapping[str, tuple[NodesRow, ...]] = field(hash=False)
    usual: str
    source: str
    is_example: bool = False


@dataclass(frozen=True, slots=True)
class Clustered:
    """A plan on its cluster.

    Attributes:
        placement: where the plan lies, from the outermost level in, and what to know of that; the hottest link stands
            out.
        nodes: the nodes; None while they are looked at.
        queue: the jobs, those that run standing out, or why there are none to show.
    """

    placement: Table
    nodes: NodeMap | None = None
    queue: Table = NO_ROWS


STRONG, WEAK = "strong", "weak"

GROWTHS = {STRONG: "the same batch for all", WEAK: "the same batch for each device"}
"""Kinds of scaling, each with what stays the same."""

WAITS = "exposed comm."
"""Title of the column with the share of a step that waits for communication."""


@dataclass(frozen=True, slots=True)
class ScaledRow:
    """The plan on some number of devices.

    Attributes:
        devices: how many.
        change: what makes it of the plan; empty where it is the plan itself.
        verdict: whether it fits.
        cells: what it has in each column.
        efficiency: speed-up over devices; None where it does not fit.
        waits: share of a step that waits for other devices.
        is_own: whether these are the plan's own devices.
        is_knee: whether the knee is here.
        is_bound: whether communication limits.
        pace: how long it takes, or how fast it is, as the table shows it; None where that is not known.
        usd: what it costs, likewise.
        price_source: whose price that is; empty where it is not known.
    """

    devices: int
    change: Mapping[str, object] = field(hash=False)
    verdict: Verdict
    cells: tuple[str, ...]
    efficiency: float | None
    waits: float
    is_own: bool = False
    is_knee: bool = False
    is_bound: bool = False
    pace: float | None = None
    usd: float | None = None
    price_source: str = ""

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells it from other rows."""
        return tuple((name, str(value)) for name, value in self.change.items())


@dataclass(frozen=True, slots=True)
class ScaledPlan:
    """The plan over device counts, as far as it is known.

    Attributes:
        growth: ``strong`` or ``weak``.
        columns: of the table.
        rows: by rising number of devices.
        remarks: where the knee is, where communication dominates, what an hour less costs.
        is_complete: whether all counts are there.
    """

    growth: str
    columns: tuple[TableColumn, ...] = ()
    rows: tuple[ScaledRow, ...] = ()
    remarks: tuple[str, ...] = ()
    is_complete: bool = False


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
