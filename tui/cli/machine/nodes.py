"""``cluster detect``, ``show`` and ``sample``: what the nodes of a cluster are, and how they are reached."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.nodes import Launcher
from capacity_tui.tui.cli.node_options import reaching, reaching_later
from capacity_tui.tui.cli.output import Output, output_options, say, tell

if TYPE_CHECKING:
    from capacity_tui.engine.nodes import Inventory, NodeGroup, SampledKind

_SECONDS = 60.0


@click.command()
@click.option("--name", help="What plans are to call the cluster; my-cluster by default.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=_SECONDS, help="How long each node has.")
@click.option("--dry-run", is_flag=True, help="Save nothing.")
@output_options("table", "json", "yaml")
@reaching
def detect(launcher: Launcher, name: str | None, seconds: float, dry_run: bool, output: Output) -> int:
    """Say what every node is, which are odd and which do not answer; keep it as hardware that plans can name."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.nodes import CLUSTER_NAME, cluster_hardware, keep_cluster

    inventory = _looked(launcher, name or CLUSTER_NAME, seconds)
    hardware = cluster_hardware(inventory, load_catalog()) if dry_run else keep_cluster(inventory)
    _write(inventory, output)
    if hardware.row and not dry_run:
        tell(f"kept: plans can name it, as in `capacity-tui plan --model llama-3.1-8b --gpu {inventory.name}`")
    return 0


@click.command()
@click.argument("name", required=False)
@click.option("--check", is_flag=True, help="Detect again and print what has changed; exit code 1 where it has.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=_SECONDS, help="How long each node has.")
@output_options("table", "json", "yaml")
@reaching_later
def show(
    choose: Callable[[], Launcher],
    name: str | None,
    check: bool,
    seconds: float,
    output: Output,
) -> int:
    """Show the cluster that was kept, and how long ago."""
    from capacity_tui.engine.nodes import kept_cluster

    kept = kept_cluster(name)
    now = _looked(choose(), kept.name, seconds) if check else None
    return _write(kept, output, now)


def _looked(launcher: Launcher, name: str, seconds: float) -> Inventory:
    """Return what the nodes are now; on a terminal it says how many have answered."""
    from capacity_tui.engine.nodes import detect_cluster

    def progress(answered: int, asked: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{answered} of {asked} nodes{chr(10) if answered == asked else ''}", nl=False, err=True)

    return detect_cluster(launcher, name, seconds, progress)


def _write(inventory: Inventory, output: Output, now: Inventory | None = None) -> int:
    """Write an inventory, and what has changed since; return whether anything has."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.nodes import cluster_changes, cluster_hardware

    hardware = cluster_hardware(inventory, load_catalog())
    changes = None if now is None else cluster_changes(inventory, now)
    form = output.form
    if form in ("json", "yaml"):
        from capacity_tui.engine.nodes import inventory_as_dict

        data = inventory_as_dict(inventory, hardware, changes)
        output.data(data)
    else:
        from capacity_tui.engine.nodes import change_parts, inventory_parts

        wide = output.takes_unicode
        parts = [*inventory_parts(inventory, hardware, ascii_only=not wide)]
        if changes is not None:
            parts += change_parts(changes)
        output.parts(parts)
    return 1 if changes else 0


@click.command()
@click.option(
    "--as",
    "name",
    metavar="NAME",
    default="cluster-network",
    show_default=True,
    help="Name of the link in the catalogue: what hardware.interconnect may say.",
)
@click.option(
    "--python", metavar="PATH", help="A Python of the nodes with this program and torch; by default this one."
)
@click.option(
    "--kernels",
    "cluster",
    metavar="[CLUSTER]",
    is_flag=False,
    flag_value="",
    help="Time kernels too, on one node of each kind of this kept cluster, or of the only one.",
)
@click.option("--quick", is_flag=True, help="Three sizes of messages, and few of kernels: less exact.")
@output_options("table", "json", to_file=False)
@reaching
def sample(launcher: Launcher, name: str, python: str | None, cluster: str | None, quick: bool, output: Output) -> int:
    """Time all-reduce, all-gather, reduce-scatter, all-to-all and send/recv over 2, 4 and 8 nodes.

    Between GPUs through NCCL, a process for each; between processors through Gloo, a process for each node. What they
    reach is kept as a link of the user's own catalogue: a plan that names it is estimated with what was measured.
    Kernels say what devices reach: a plan that names the cluster rests on that.
    """
    from capacity_tui.engine.nodes import NETWORK_SIZES, QUICK_NETWORK_SIZES, keep_link, sample_network
    from capacity_tui.engine.units import format_bandwidth, format_seconds

    kinds = () if cluster is None else _kinds(launcher, cluster or None, python or sys.executable, quick)
    network = sample_network(launcher, python or sys.executable, QUICK_NETWORK_SIZES if quick else NETWORK_SIZES, _tell)
    path = keep_link(name, network.link) if network.link else None
    if output.is_data:
        data = {**asdict(network), "name": name if path else None, "kinds": [asdict(kind) for kind in kinds]}
        output.data(data)
    elif network.link is not None:
        reached, hop = format_bandwidth(network.link.bandwidth), format_seconds(network.link.hop_seconds)
        say(f"{name}: {reached} between nodes, {hop} a step, off by {network.link.error:.0%} in the median")
        say(f"name it in a plan: hardware.interconnect={name}")
    else:
        say("too few collectives could be timed to say anything of the network")
    if path is not None:
        tell(f"wrote {path}")
    return 0 if network.link else 1


def _kinds(launcher: Launcher, cluster: str | None, python: str, quick: bool) -> tuple[SampledKind, ...]:
    """Time kernels on one node of each kind of a kept cluster, keep what they say, and tell it."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.nodes import NodeKernels, keep_measured_kind, kept_cluster

    inventory = kept_cluster(cluster)
    sampled = []
    for kind in NodeKernels(launcher, inventory, python, load_catalog(), quick).sample_kinds():
        path = keep_measured_kind(inventory.name, kind)
        what = kind.failure or f"{kind.samples} timings of kernels"
        tell(f"{kind.device}, {kind.nodes} nodes{f', {kind.node}' if kind.node else ''}: {what}")
        if path is not None:
            tell(f"wrote {path}")
        sampled.append(kind)
    return tuple(sampled)


def _tell(group: NodeGroup) -> None:
    what = group.failure or f"{len(group.samples)} timings, {group.group.size} {group.group.backend} ranks"
    tell(f"{len(group.nodes)} nodes: {what}")
