"""The cluster that stands where none is reached: made up, and marked so."""

from __future__ import annotations

import json
from importlib.resources import files

from capacity_tui.engine.nodes import NodeState, Occupancy
from capacity_tui.tui.shown.results import TableRow

MADE_UP = "EXAMPLE, made up: yours appears here where Slurm is, or after capacity-tui cluster detect"


def example_cluster(device: str) -> tuple[Occupancy, tuple[TableRow, ...]]:
    """Return its nodes, as if they had devices of some kind, and its jobs."""
    text = (files("capacity_tui.profiles") / "examples" / "cluster" / "cluster.json").read_text("utf-8")
    rows = json.loads(text)
    nodes = tuple(
        NodeState(
            node["name"],
            device,
            rows["devices_per_node"],
            busy=node.get("busy", 0),
            down=node.get("down", 0),
            holders=(node["rack"],),
            note=node.get("note", ""),
        )
        for node in rows["nodes"]
    )
    jobs = tuple(TableRow(tuple(cells), cells[3] == "running") for cells in rows["jobs"])
    return Occupancy(nodes, ("node", "rack"), MADE_UP), jobs
