"""A plan on its nodes and over device counts, and what its data takes to keep, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.results import NO_ROWS, Field, Table, TableColumn

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Chosen, Trial
DeviceState: TypeAlias = Literal["planned", "free", "busy", "down"]
Unit = Literal["", "B"]  # What an axis counts: things, or bytes


@dataclass(frozen=True, slots=True)
class NodesRow:
    """A node, a rack or a kind of device, or several of them."""

    name: str  # what it is called
    counts: str  # how many devices do what, in words
    cells: tuple[DeviceState, ...]  # what each part of it does
    hardware: str = ""  # what its devices are called; empty where that goes without saying
    notes: tuple[str, ...] = ()  # what is odd about it
    # what makes the plan one for what is free here now; empty where that cannot be
    change: Mapping[str, object] = field(default_factory=dict, hash=False)
    refusal: str = ""  # why it cannot be

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        return (("name", self.name), *((name, str(value)) for name, value in self.change.items()))


@dataclass(frozen=True, slots=True)
class NodeMap:
    """The nodes of a cluster, more and less finely."""

    levels: tuple[str, ...]  # what the rows can stand for, from the finest to the coarsest
    rows: Mapping[str, tuple[NodesRow, ...]] = field(hash=False)  # the rows of each level
    usual: str  # the level that is read at a glance
    source: str  # where this comes from
    is_example: bool = False  # whether they are made up


@dataclass(frozen=True, slots=True)
class Clustered:
    """A plan on its cluster."""

    # where the plan lies, from the outermost level in, and what to know of that; the hottest link stands out
    placement: Table
    nodes: NodeMap | None = None  # the nodes; None while they are looked at
    queue: Table = NO_ROWS  # the jobs, those that run standing out, or why there are none to show


STRONG, WEAK = "strong", "weak"
GROWTHS = {STRONG: "the same batch for all", WEAK: "the same batch for each device"}
"""Kinds of scaling, each with what stays the same."""

WAITS = "exposed comm."  # Title of the column with the share of a step that waits for communication


@dataclass(frozen=True, slots=True)
class ScaledRow:
    """The plan on some number of devices."""

    devices: int  # how many
    change: Mapping[str, object] = field(hash=False)  # what makes it of the plan; empty where it is the plan itself
    verdict: Verdict  # whether it fits
    cells: tuple[str, ...]  # what it has in each column
    efficiency: float | None  # speed-up over devices; None where it does not fit
    waits: float  # share of a step that waits for other devices
    is_own: bool = False  # whether these are the plan's own devices
    is_knee: bool = False  # whether the knee is here
    is_bound: bool = False  # whether communication limits
    # how long it takes, or how fast it is, as the table shows it; None where that is not known
    pace: float | None = None
    usd: float | None = None  # what it costs, likewise
    price_source: str = ""  # whose price that is; empty where it is not known

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, str(value)) for name, value in self.change.items())


@dataclass(frozen=True, slots=True)
class ScaledPlan:
    """The plan over device counts, as far as it is known."""

    growth: str  # ``strong`` or ``weak``
    columns: tuple[TableColumn, ...] = ()  # of the table
    rows: tuple[ScaledRow, ...] = ()  # by rising number of devices
    remarks: tuple[str, ...] = ()  # where the knee is, where communication dominates, what an hour less costs
    is_complete: bool = False  # whether all counts are there


@dataclass(frozen=True, slots=True)
class LogCurve:
    """One curve."""

    points: tuple[tuple[float, float], ...]  # across and up, by rising place across; all above nothing
    is_bound: bool = False  # whether it bounds another one, and is drawn in the background


@dataclass(frozen=True, slots=True)
class LogLimit:
    """A line across that says how far one may go up."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class LogChart:
    """A picture of curves over two logarithmic axes."""

    title: str  # what it shows
    curves: tuple[LogCurve, ...]  # those that bound others first
    limits: tuple[LogLimit, ...] = ()  # lines across
    here: tuple[float, float] | None = None  # a point that stands out; None for none
    up: Unit = ""  # what the axis at the left counts
    about: str = ""  # the picture in words


@dataclass(frozen=True, slots=True)
class StoredLevel:
    """One level of patterns, or all of them."""

    name: str  # what it is called
    cells: tuple[str, ...]  # what it has in each column
    share: float  # how much it takes, 1 for all levels
    about: str  # what it is
    frequencies: LogChart  # how often its patterns occur
    is_total: bool = False  # whether it is all of them


@dataclass(frozen=True, slots=True)
class StoredPatterns:
    """What the patterns of a corpus take to keep."""

    columns: tuple[TableColumn, ...]  # of the table
    levels: tuple[StoredLevel, ...]  # from the lowest; last all of them
    growth: LogChart  # what they take, over samples, with what there is room for
    remarks: tuple[str, ...] = ()  # what to know of it, the most important first
    most_samples: float | None = None  # samples whose patterns the disk has room for; None where that is not known


SAMPLES = "samples"  # The field of a corpus that says how large it is


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
        """Return it with one field said otherwise; an empty text takes it back."""

    def command(self) -> str:
        """Return the command that says the same."""

    def trial(self, key: str, text: str) -> Trial:
        """Return what its patterns would take with one field said otherwise, or why that cannot be."""

    def patterns(self) -> StoredPatterns:
        """Return what its patterns take to keep; raises CapacityError where there is no answer."""
