"""Nodes as the rows of a map: a node, a rack or a kind each, several where there are many, with a cell a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from capacity_tui.engine.nodes.occupancy.occupancy import NodeState, Occupancy

MOST_ROWS = 32
"""Up to as many units each have a row; of more, as many share one."""
ALL = "all"
"""What the row of everything is called, and the level of kinds."""
State: TypeAlias = Literal["planned", "free", "busy", "down"]
STATES: tuple[State, ...] = ("planned", "free", "busy", "down")
"""What a device does."""
_Counts: TypeAlias = tuple[int, ...]
"""How many devices do what, in the order of ``STATES``."""


@dataclass(frozen=True, slots=True)
class MapRow:
    """Nodes that stand in one row.

    Attributes:
        name: what they are called: the first, and the last where there are several.
        counts: how many of their devices do what.
        cells: what each part of them does: devices of a node, nodes of a rack, or units where several share a row.
    """

    name: str
    nodes: tuple[NodeState, ...]
    counts: Mapping[State, int]
    cells: tuple[State, ...]

    @property
    def hardware(self) -> str:
        """What their devices are called."""
        return ", ".join(dict.fromkeys(node.hardware for node in self.nodes))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about any of them."""
        return tuple(f"{node.name}: {node.note}" for node in self.nodes if node.note)


@dataclass(frozen=True, slots=True)
class NodeMap:
    """The rows of a cluster, more and less finely.

    Attributes:
        rows: the rows of each level, from nodes to kinds of devices.
    """

    whole: MapRow
    rows: Mapping[str, tuple[MapRow, ...]]

    @property
    def usual(self) -> str:
        """The level that is read at a glance: the finest with few rows, else that of kinds."""
        return next((level for level, rows in self.rows.items() if len(rows) <= MOST_ROWS), ALL)


class _Unit(NamedTuple):
    """A node, or a unit of a level around it.

    Attributes:
        parts: what the units inside it do.
    """

    name: str
    nodes: tuple[NodeState, ...]
    counts: _Counts
    parts: tuple[_Counts, ...] = ()


def node_map(occupancy: Occupancy) -> NodeMap:
    """Return the map of a cluster's nodes."""
    units = [_Unit(node.name, (node,), (node.planned, node.free, node.busy, node.down)) for node in occupancy.nodes]
    whole = _joined(ALL, units)
    kinds = dict.fromkeys(node.hardware for node in occupancy.nodes)
    by_kind = [_joined(kind, [unit for unit in units if unit.nodes[0].hardware == kind]) for kind in kinds]
    rows: dict[str, tuple[MapRow, ...]] = {}
    for index, level in enumerate(occupancy.levels):
        units = list(_around(units, index)) if index else units
        rows[level] = tuple(_rows(units))
    rows[ALL] = tuple(_row(unit) for unit in by_kind)
    return NodeMap(_row(whole), rows)


def _around(units: Iterable[_Unit], index: int) -> Iterator[_Unit]:
    """Yield the units of a level around some others."""

    def holder(unit: _Unit) -> str:
        holders = unit.nodes[0].holders
        return holders[index - 1] if len(holders) >= index else "elsewhere"

    for name, held in groupby(units, key=holder):
        yield _joined(name, list(held))


def _joined(name: str, units: Sequence[_Unit]) -> _Unit:
    return _Unit(
        name,
        tuple(node for unit in units for node in unit.nodes),
        _sum([unit.counts for unit in units]),
        tuple(unit.counts for unit in units),
    )


def _rows(units: Sequence[_Unit]) -> Iterator[MapRow]:
    """Yield a row for each unit, or for as many together as there are cells in a row."""
    if len(units) <= MOST_ROWS:
        yield from map(_row, units)
        return
    for start in range(0, len(units), MOST_ROWS):
        together = units[start : start + MOST_ROWS]
        first, last = together[0].name, together[-1].name
        yield _row(_joined(first if first == last else f"{first} – {last.rpartition(' ')[2]}", together))


def _row(unit: _Unit) -> MapRow:
    devices = (state for state, count in zip(STATES, unit.counts, strict=True) for _ in range(count))
    cells = _cells(unit.parts) if unit.parts else tuple(devices)
    return MapRow(unit.name, unit.nodes, dict(zip(STATES, unit.counts, strict=True)), cells)


def _cells(parts: Sequence[_Counts]) -> tuple[State, ...]:
    """Return what each part mostly does; of many parts several share a cell."""
    share = max(-(-len(parts) // MOST_ROWS), 1)
    return tuple(_mostly(_sum(parts[start : start + share])) for start in range(0, len(parts), share))


def _mostly(counts: _Counts) -> State:
    """Return what most devices do; any that is down is shown."""
    return "down" if counts[STATES.index("down")] else STATES[counts.index(max(counts))]


def _sum(counts: Iterable[_Counts]) -> _Counts:
    return tuple(map(sum, zip(*counts, strict=True)))
