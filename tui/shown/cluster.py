"""A plan on the nodes of its cluster and over device counts, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.results import NO_ROWS, Table, TableColumn

DeviceState: TypeAlias = Literal["planned", "free", "busy", "down"]


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
    """

    levels: tuple[str, ...]
    rows: Mapping[str, tuple[NodesRow, ...]] = field(hash=False)
    usual: str
    source: str


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
