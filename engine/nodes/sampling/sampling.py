"""Sampling the network of a cluster: collectives over 2, 4 and 8 of its nodes, and the link they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.nodes.launchers.launcher import Launcher
from capacity_tui.engine.nodes.sampling.link_facts import LinkFacts, link_facts
from capacity_tui.engine.nodes.sampling.node_collectives import NodeGroup, node_counts, sample_group

# From what latency rules to what bandwidth rules (bytes, the whole buffer).
SIZES = tuple(2**power for power in range(12, 30, 2))
QUICK_SIZES = (2**13, 2**20, 2**24)


@dataclass(frozen=True, slots=True)
class SampledNetwork:
    """Timings of collectives over nodes of a cluster.

    Attributes:
        groups: the groups of nodes that were tried, the smallest first.
        link: what they say of the network; None where they say too little.
    """

    groups: tuple[NodeGroup, ...]
    link: LinkFacts | None


def sample_network(
    launcher: Launcher,
    python: str,
    sizes: Sequence[int] = SIZES,
    started: Callable[[NodeGroup], None] = lambda _: None,
    cancelled: Event | None = None,
) -> SampledNetwork:
    """Time collectives over 2, 4 and 8 nodes, as far as there are so many.

    Args:
        python: a Python of the nodes that has this program and torch.
        sizes: bytes of the whole buffer.
        started: gets each group when it is done.

    Raises:
        LauncherError: the launcher cannot be used, or reaches one node alone.
    """
    nodes = launcher.nodes()
    counts = node_counts(len(nodes))
    if not counts:
        raise LauncherError("one node alone has no network to others", hint="`sample collectives` times its own links")
    groups = []
    for count in counts:
        groups.append(sample_group(launcher, nodes[:count], sizes, python, cancelled))
        started(groups[-1])
    samples = [sample for group in groups for sample in group.samples]
    backend = next((group.group.backend for group in groups if group.samples), "")
    return SampledNetwork(tuple(groups), link_facts(samples, backend))
