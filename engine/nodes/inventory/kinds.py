"""Kinds of nodes: equal ones are one kind; nodes that differ from most of their kind are listed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from capacity_tui.engine.nodes.inventory.node_facts import MEMORY, PARTITIONED, NodeFacts

FEW = 8
"""Nodes that are alike but fewer than this part of their family are odd ones, not a kind of their own."""
_SAME_MEMORY = 1.03
"""Equal nodes report sizes of memory that differ by what their firmware keeps."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a node has otherwise than most of its kind.

    Attributes:
        here: as it is on this node.
        usual: as most have it.
    """

    what: str
    here: str
    usual: str

    def __str__(self) -> str:
        return f"{self.what} {self.here}, others {self.usual}"


@dataclass(frozen=True, slots=True)
class Kind:
    """Equal nodes, and those that should be but are not quite.

    Attributes:
        usual: what most have, as words by what it is.
        odd: how nodes differ from that, by name.
        typical: one that has what most have.
    """

    nodes: tuple[NodeFacts, ...]
    usual: Mapping[str, str]
    odd: Mapping[str, tuple[Difference, ...]]
    typical: NodeFacts

    @property
    def whole(self) -> tuple[NodeFacts, ...]:
        """The nodes that have all their devices, whole as those of most."""
        cut = self.typical.traits.get(PARTITIONED)
        return tuple(
            node
            for node in self.nodes
            if node.devices == self.typical.devices and node.traits.get(PARTITIONED, cut) == cut
        )


def kinds_of(nodes: Sequence[NodeFacts]) -> tuple[Kind, ...]:
    """Return the kinds of nodes, the largest first."""
    families: dict[str, list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        families[node.family].append(node)
    kinds = (kind for family in families.values() for kind in _kinds(family))
    return tuple(sorted(kinds, key=lambda kind: -len(kind.nodes)))


def _kinds(family: Sequence[NodeFacts]) -> Iterator[Kind]:
    """Yield the kinds of nodes that compute with the same."""
    sizes = _sizes(node.memory_bytes for node in family)
    groups: dict[tuple[object, ...], list[NodeFacts]] = defaultdict(list)
    for node in family:
        groups[node.devices, str(node.ports), sizes[node.memory_bytes]].append(node)
    many = max(2, math.ceil(len(family) / FEW))
    keys = [key for key, group in groups.items() if len(group) >= many] or [
        max(groups, key=lambda key: len(groups[key]))
    ]
    members: dict[tuple[object, ...], list[NodeFacts]] = {key: [] for key in keys}
    for key, group in groups.items():
        nearest = max(keys, key=lambda kept: (_shared(key, kept), len(groups[kept])))
        members[nearest] += group
    for key, group in members.items():
        names = {node.node for node in group}
        yield _kind([node for node in family if node.node in names], groups[key], sizes)


def _kind(nodes: Sequence[NodeFacts], equal: Sequence[NodeFacts], sizes: Mapping[int, int]) -> Kind:
    usual = _usual(equal)
    size = sizes[equal[0].memory_bytes]
    odd = {node.node: tuple(_differences(node, usual, sizes[node.memory_bytes] == size)) for node in nodes}
    typical = next((node for node in equal if not odd[node.node]), equal[0])
    return Kind(tuple(nodes), usual, {name: values for name, values in odd.items() if values}, typical)


def _usual(equal: Sequence[NodeFacts]) -> dict[str, str]:
    """Return what most have of each trait."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for node in equal:
        for what, words in node.traits.items():
            counted[what][words] += 1
    return {what: max(counts, key=lambda words: counts[words]) for what, counts in counted.items()}


def _differences(node: NodeFacts, usual: Mapping[str, str], has_usual_memory: bool) -> Iterator[Difference]:
    for what, words in usual.items():
        here = node.traits.get(what, "none")
        if here != words and not (what == MEMORY and has_usual_memory):
            yield Difference(what, here, words)


def _sizes(values: Iterable[int]) -> dict[int, int]:
    """Return the smallest of the sizes that are as good as equal to each."""
    sizes: dict[int, int] = {}
    least = 0
    for value in sorted(set(values)):
        least = value if value > least * _SAME_MEMORY else least
        sizes[value] = least
    return sizes


def _shared(one: tuple[object, ...], other: tuple[object, ...]) -> int:
    return sum(first == second for first, second in zip(one, other, strict=True))
