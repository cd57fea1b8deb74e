"""The small engine's cluster: three racks of two nodes of four devices, one of them busy and one with a fault."""

from __future__ import annotations

from capacity_tui.tui.shown.results import Table, TableColumn, TableRow
from capacity_tui.tui.shown.scale import Clustered, DeviceState, NodeMap, NodesRow

FREE = 16
LEVELS = (
    *(TableColumn("level", is_number=False), TableColumn("divides", is_number=False), TableColumn("busy")),
    *(TableColumn("of", rank=2, is_number=False), TableColumn("link", rank=1, is_number=False)),
)
JOBS = (
    *(TableColumn("job"), TableColumn("name", rank=2, is_number=False)),
    *(TableColumn("partition", rank=4, is_number=False), TableColumn("state", is_number=False)),
    *(TableColumn("nodes", rank=1), TableColumn("time", rank=3), TableColumn("reason", rank=5, is_number=False)),
)


def clustered(own: int) -> Clustered:
    """Return a plan of so many devices on the cluster."""
    nodes = tuple(_node(number, own) for number in range(6))
    racks = tuple(
        NodesRow(f"rack {number}", "8 free", ("free",) * 2, change={"hardware.devices": 8}) for number in (1, 2, 3)
    )
    everything = NodesRow("all", f"{FREE} free", ("free",) * 6, change={"hardware.devices": FREE})
    rows = {"node": (everything, *nodes), "rack": (everything, *racks), "all": (everything,)}
    levels = (
        TableRow(("fabric", "dp 3", "12 %", "3 racks", "25 GB/s each"), stands_out=True),
        TableRow(("  rack", "dp 2", "3 %", "2 nodes", "50 GB/s each")),
        TableRow(("    node", "tp 4", "–", "4 devices", "450 GB/s each")),
    )
    jobs = (
        TableRow(("41", "train", "ada", "running", "4", "1 h", ""), stands_out=True),
        TableRow(("42", "tune", "bob", "pending", "8", "", "Resources")),
    )
    shown = NodeMap(tuple(rows), rows, "node", "slurm, just now")
    return Clustered(Table(LEVELS, levels, ("hottest link: fabric, busy 12 %",)), shown, Table(JOBS, jobs))


def _node(number: int, own: int) -> NodesRow:
    state: DeviceState = "busy" if number == 4 else "planned" if own > 4 * number else "free"
    cells: tuple[DeviceState, ...] = (*([state] * 3), "down") if number == 5 else (state,) * 4
    notes = ("node 6: GPU 3 missing",) if number == 5 else ()
    if state == "busy":
        return NodesRow(f"node {number + 1}", "4 busy", cells, refusal="nothing here is free")
    return NodesRow(f"node {number + 1}", f"4 {state}", cells, notes=notes, change={"hardware.devices": 4})
