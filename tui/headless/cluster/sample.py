"""``cluster sample``: time what lies between the nodes, and keep it as a link that plans can name."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.api import Launcher
from capacity_tui.tui.headless.cluster.reaching import reaching
from capacity_tui.tui.headless.output import format_option, say, tell, write

if TYPE_CHECKING:
    from capacity_tui.engine.api import NodeGroup


@click.command()
@click.option("--as", "name", metavar="NAME", default="cluster-network", show_default=True,
              help="Name of the link in the catalogue: what hardware.interconnect may say.")  # fmt: skip
@click.option("--python", metavar="PATH",
              help="A Python of the nodes with this program and torch; by default this one.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Three sizes of messages: some seconds, less exact.")
@format_option("table", "json")
@reaching
def sample(launcher: Launcher, name: str, python: str | None, quick: bool, wanted: str | None) -> int:
    """Time all-reduce, all-gather, reduce-scatter, all-to-all and send/recv over 2, 4 and 8 nodes.

    Between GPUs through NCCL, a process for each; between processors through Gloo, a process for each node. What they
    reach is kept as a link of the user's own catalogue: a plan that names it is estimated with what was measured.
    """
    from capacity_tui.engine.api import (
        NETWORK_SIZES,
        QUICK_NETWORK_SIZES,
        format_bandwidth,
        format_seconds,
        keep_link,
        sample_network,
        to_json,
    )

    found = sample_network(launcher, python or sys.executable, QUICK_NETWORK_SIZES if quick else NETWORK_SIZES, _tell)
    path = keep_link(name, found.link) if found.link else None
    if wanted == "json":
        write(to_json({**asdict(found), "name": name if path else None}), None)
    elif found.link is not None:
        reached, hop = format_bandwidth(found.link.bandwidth), format_seconds(found.link.hop_seconds)
        say(f"{name}: {reached} between nodes, {hop} a step, off by {found.link.error:.0%} in the median")
        say(f"name it in a plan: hardware.interconnect={name}")
    else:
        say("too few collectives could be timed to say anything of the network")
    if path is not None:
        tell(f"wrote {path}")
    return 0 if found.link else 1


def _tell(group: NodeGroup) -> None:
    what = group.failure or f"{len(group.samples)} timings, {group.group.size} {group.group.backend} ranks"
    tell(f"{len(group.nodes)} nodes: {what}")
