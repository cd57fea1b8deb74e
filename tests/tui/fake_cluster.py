"""The small engine's cluster: three racks of two nodes of four devices, one of them busy and one with a fault."""

from __future__ import annotations

from capacity_tui.tui.shown.cluster import Clustered, DeviceState, NodeMap, NodesRow, PlacedRow, QueueRow

FREE = 16


def clustered(own: int) -> Clustered:
    """Return a plan of so many devices on the cluster."""
    nodes = tuple(_node(number, own) for number in range(6))
    racks = tuple(
        NodesRow(f"rack {number}", "8 free", ("free",) * 2, change={"hardware.devices": 8}) for number in (1, 2, 3)
    )
    everything = NodesRow("all", f"{FREE} free", ("free",) * 6, change={"hardware.devices": FREE})
    rows = {"node": (everything, *nodes), "rack": (everything, *racks), "all": (everything,)}
    levels = (
        PlacedRow("fabric", "3 racks", "dp 3", "25 GB/s each", "12 %", True),
        PlacedRow("  rack", "2 nodes", "dp 2", "50 GB/s each", "3 %", False),
        PlacedRow("    node", "4 devices", "tp 4", "450 GB/s each", "–", False),
    )
    queue = (
        QueueRow(("41", "train", "gpu", "running", "1", "1 h", ""), True),
        QueueRow(("42", "tune", "gpu", "pending", "2", "", "Resources"), False),
    )
    found = NodeMap(tuple(rows), rows, "node", "slurm, just now")
    rows = {"node": (everything, *nodes), "rack": (everything, *racks), "all": (everything,)}
    levels = (
        PlacedRow("fabric", "3 racks", "dp 3", "25 GB/s each", "12 %", True),
        PlacedRow("  rack", "2 nodes", "dp 2", "50 GB/s each", "3 %", False),
        PlacedRow("    node", "4 devices", "tp 4", "450 GB/s each", "–", False),
    )
    queue = (
        QueueRow(("41", "train", "ada", "running", "4", "1 h", ""), True),
        QueueRow(("42", "tune", "bob", "pending", "8", "", "Resources"), False),
    )
    found = NodeMap(tuple(rows), rows, "node", "slurm, just now")
    return Clustered(levels, ("hottest link: fabric, busy 12 %",), found, queue)


def _node(number: int, own: int) -> NodesRow:
    state: DeviceState = "busy" if number == 4 else "planned" if own > 4 * number else "free"
    cells: tuple[DeviceState, ...] = (*([state] * 3), "down") if number == 5 else (state,) * 4
    notes = ("node 6: GPU 3 missing",) if number == 5 else ()
    if state == "busy":
        return NodesRow(f"node {number + 1}", "4 busy", cells, refusal="nothing here is free")
    return NodesRow(f"node {number + 1}", f"4 {state}", cells, notes=notes, change={"hardware.devices": 4})
