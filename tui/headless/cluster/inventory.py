"""``cluster detect`` and ``cluster show``: what the nodes are, kept as hardware that plans can name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.cluster.reaching import reaching, reaching_later
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, tell, write

if TYPE_CHECKING:
    from capacity_tui.engine.nodes.inventory import Inventory
    from capacity_tui.engine.nodes.launchers import Launcher

_SECONDS = 60.0


@click.command()
@click.option("--name", help="What plans are to call the cluster; my-cluster by default.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=_SECONDS, help="How long each node has.")
@click.option("--dry-run", is_flag=True, help="Keep nothing.")
@format_option("table", "json", "yaml")
@output_option
@reaching
def detect(
    launcher: Launcher, name: str | None, seconds: float, dry_run: bool, wanted: str | None, output: Path | None
) -> int:
    """Say what every node is, which are odd and which do not answer; keep it as hardware that plans can name."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.nodes.inventory import DEFAULT_NAME as CLUSTER_NAME
    from capacity_tui.engine.nodes.inventory import described as cluster_hardware
    from capacity_tui.engine.nodes.inventory import keep as keep_cluster

    found = _looked(launcher, name or CLUSTER_NAME, seconds)
    hardware = cluster_hardware(found, load_catalog()) if dry_run else keep_cluster(found)
    _write(found, wanted, output)
    if hardware.row and not dry_run:
        tell(f"kept: plans can name it, as in `capacity-tui plan --model llama-3.1-8b --gpu {found.name}`")
    return 0


@click.command()
@click.argument("name", required=False)
@click.option("--check", is_flag=True, help="Look again and say what has changed; exit code 1 where it has.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=_SECONDS, help="How long each node has.")
@format_option("table", "json", "yaml")
@output_option
@reaching_later
def show(
    choose: Callable[[], Launcher],
    name: str | None,
    check: bool,
    seconds: float,
    wanted: str | None,
    output: Path | None,
) -> int:
    """Show the cluster that was kept, and how long ago."""
    from capacity_tui.engine.nodes.inventory import kept as kept_cluster

    kept = kept_cluster(name)
    now = _looked(choose(), kept.name, seconds) if check else None
    return _write(kept, wanted, output, now)


def _looked(launcher: Launcher, name: str, seconds: float) -> Inventory:
    """Return what the nodes are now; on a terminal it says how many have answered."""
    from capacity_tui.engine.nodes.inventory import detect_cluster

    def told(answered: int, asked: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{answered} of {asked} nodes{chr(10) if answered == asked else ''}", nl=False, err=True)

    return detect_cluster(launcher, name, seconds, told)


def _write(inventory: Inventory, wanted: str | None, output: Path | None, now: Inventory | None = None) -> int:
    """Write an inventory, and what has changed since; return whether anything has."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.nodes.inventory import changes_of as cluster_changes
    from capacity_tui.engine.nodes.inventory import described as cluster_hardware

    hardware = cluster_hardware(inventory, load_catalog())
    changes = None if now is None else cluster_changes(inventory, now)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        from capacity_tui.engine.nodes.inventory import inventory_as_dict
        from capacity_tui.engine.present import to_json, to_yaml

        data = inventory_as_dict(inventory, hardware, changes)
        write(to_json(data) if form == "json" else to_yaml(data), output)
    else:
        from capacity_tui.engine.nodes.inventory import change_parts, inventory_parts
        from capacity_tui.tui.headless.tables.layout import rich_parts

        wide = output is not None or "utf" in (sys.stdout.encoding or "").lower()
        parts = [*inventory_parts(inventory, hardware, ascii_only=not wide)]
        if changes is not None:
            parts += change_parts(changes)
        write(as_text(rich_parts(parts), output is not None), output)
    return 1 if changes else 0
