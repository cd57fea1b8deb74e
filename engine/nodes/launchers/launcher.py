"""What every way to reach nodes has in common: their names, and one command run on each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Protocol

NODE_SECONDS = 60.0
"""Default seconds that a node has for its command."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is run on nodes.

    Attributes:
        words: the command and its arguments, found on the search path of the node.
        text: what the command reads from its standard input.
        seconds: how long each node has, from its start.
    """

    words: tuple[str, ...]
    text: str = ""
    seconds: float = NODE_SECONDS


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """How the command went on one node.

    Attributes:
        failure: why there is no answer, in words; empty where the command ended well.
        exit_code: exit code of the command; None where it did not end.
        error: what it wrote to standard error.
    """

    node: str
    output: str = ""
    failure: str = ""
    exit_code: int | None = None
    error: str = ""


class Launcher(Protocol):
    """Reaches the nodes of a cluster."""

    @property
    def name(self) -> str:
        """What reaches them: Slurm, Ray or SSH."""

    def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes.

        Raises:
            LauncherError: what knows them is not there or does not answer.
        """

    def run(self, order: Order, nodes: Sequence[str], cancelled: Event | None = None) -> Iterator[NodeAnswer]:
        """Run a command on each of some nodes, side by side; yield the answers as they come, one for each node.

        A node that hangs, dies or refuses answers with a failure, and holds up no other. When the iterator is closed
        or ``cancelled`` is set, what still runs is ended.
        """
