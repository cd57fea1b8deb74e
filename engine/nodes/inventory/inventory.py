"""The inventory of a cluster: its nodes as they were seen, those that gave no answer, and what has changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from capacity_tui.engine.nodes.inventory.kinds import Kind, kinds_of
from capacity_tui.engine.nodes.inventory.node_facts import NodeFacts


class Inventory(BaseModel):
    """A cluster as it was seen.

    Attributes:
        silent: why others gave no answer, by name.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    reached_by: str
    seen: datetime
    nodes: tuple[NodeFacts, ...] = ()
    silent: Mapping[str, str] = Field(default_factory=dict)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Its kinds of nodes, the largest first."""
        return kinds_of(self.nodes)


@dataclass(frozen=True, slots=True)
class Change:
    """What is otherwise than it was kept.

    Attributes:
        what: the trait, or what happened to the node.
    """

    node: str
    what: str
    kept: str
    now: str

    def __str__(self) -> str:
        return f"{self.node}: {self.what} {self.kept} -> {self.now}"


def changes_of(kept: Inventory, now: Inventory) -> tuple[Change, ...]:
    """Return what differs between a cluster as it was kept and as it is."""
    before = {node.node: node for node in kept.nodes}
    after = {node.node: node for node in now.nodes}
    return tuple(_changes(before, after, kept.silent, now.silent))


def _changes(
    before: Mapping[str, NodeFacts],
    after: Mapping[str, NodeFacts],
    was_silent: Mapping[str, str],
    is_silent: Mapping[str, str],
) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *was_silent, *after, *is_silent)):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            one, other = (
                "answers" if facts else f"no answer ({silent[name]})" if name in silent else "not there"
                for facts, silent in ((old, was_silent), (new, is_silent))
            )
            if old is not None or new is not None or (name in was_silent) != (name in is_silent):
                yield Change(name, "node", one, other)
            continue
        for what in dict.fromkeys((*old.traits, *new.traits)):
            one, other = old.traits.get(what, "none"), new.traits.get(what, "none")
            if one != other:
                yield Change(name, what, one, other)
        if set(old.troubles) != set(new.troubles):
            yield Change(name, "trouble", _listed(old.troubles), _listed(new.troubles))


def _listed(troubles: Sequence[str]) -> str:
    return "; ".join(troubles) or "none"
