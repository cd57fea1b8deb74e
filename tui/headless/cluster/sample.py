"""``cluster sample``: time what lies between the nodes and what they compute with, for plans that name them."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.nodes.launchers import Launcher
from capacity_tui.tui.headless.cluster.reaching import reaching
from capacity_tui.tui.headless.output import format_option, say, tell, write

if TYPE_CHECKING:
    from capacity_tui.engine.nodes.sampling import NodeGroup, SampledKind


@click.command()
@click.option("--as", "name", metavar="NAME", default="cluster-network", show_default=True,
              help="Name of the link in the catalogue: what hardware.interconnect may say.")  # fmt: skip
@click.option("--python", metavar="PATH",
              help="A Python of the nodes with this program and torch; by default this one.")  # fmt: skip
@click.option("--kernels", "cluster", metavar="[CLUSTER]", is_flag=False, flag_value="",
              help="Time kernels too, on one node of each kind of this kept cluster, or of the only one.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Three sizes of messages, and few of kernels: less exact.")
@format_option("table", "json")
@reaching
def sample(
    launcher: Launcher, name: str, python: str | None, cluster: str | None, quick: bool, wanted: str | None
) -> int:
    """Time all-reduce, all-gather, reduce-scatter, all-to-all and send/recv over 2, 4 and 8 nodes.

    Between GPUs through NCCL, a process for each; between processors through Gloo, a process for each node. What they
    reach is kept as a link of the user's own catalogue: a plan that names it is estimated with what was measured.
    Kernels say what devices reach: a plan that names the cluster rests on that.
    """
    from capacity_tui.engine.nodes.sampling import QUICK_SIZES as QUICK_NETWORK_SIZES
    from capacity_tui.engine.nodes.sampling import SIZES as NETWORK_SIZES
    from capacity_tui.engine.nodes.sampling import keep_link, sample_network
    from capacity_tui.engine.present import to_json
    from capacity_tui.engine.units import format_bandwidth, format_seconds

    kinds = () if cluster is None else _kinds(launcher, cluster or None, python or sys.executable, quick)
    found = sample_network(launcher, python or sys.executable, QUICK_NETWORK_SIZES if quick else NETWORK_SIZES, _tell)
    path = keep_link(name, found.link) if found.link else None
    if wanted == "json":
        told = {**asdict(found), "name": name if path else None, "kinds": [asdict(kind) for kind in kinds]}
        write(to_json(told), None)
    elif found.link is not None:
        reached, hop = format_bandwidth(found.link.bandwidth), format_seconds(found.link.hop_seconds)
        say(f"{name}: {reached} between nodes, {hop} a step, off by {found.link.error:.0%} in the median")
        say(f"name it in a plan: hardware.interconnect={name}")
    else:
        say("too few collectives could be timed to say anything of the network")
    if path is not None:
        tell(f"wrote {path}")
    return 0 if found.link else 1


def _kinds(launcher: Launcher, cluster: str | None, python: str, quick: bool) -> tuple[SampledKind, ...]:
    """Time kernels on one node of each kind of a kept cluster, keep what they say, and tell it."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.nodes.inventory import kept as kept_cluster
    from capacity_tui.engine.nodes.sampling import NodeKernels, keep_measured_kind

    inventory = kept_cluster(cluster)
    found = []
    for kind in NodeKernels(launcher, inventory, python, load_catalog(), quick).each_kind():
        path = keep_measured_kind(inventory.name, kind)
        what = kind.failure or f"{kind.samples} timings of kernels"
        tell(f"{kind.device}, {kind.nodes} nodes{f', {kind.node}' if kind.node else ''}: {what}")
        if path is not None:
            tell(f"wrote {path}")
        found.append(kind)
    return tuple(found)


def _tell(group: NodeGroup) -> None:
    what = group.failure or f"{len(group.samples)} timings, {group.group.size} {group.group.backend} ranks"
    tell(f"{len(group.nodes)} nodes: {what}")
