"""An inventory as plain data, and as parts of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from capacity_tui.engine.nodes.inventory.drawing import drawn_levels, folded_names
from capacity_tui.engine.nodes.inventory.hardware import Described
from capacity_tui.engine.nodes.inventory.inventory import Change, Inventory
from capacity_tui.engine.nodes.inventory.kinds import Kind
from capacity_tui.engine.present import Part, TextPart, table_part
from capacity_tui.engine.units import format_seconds


def inventory_as_dict(
    inventory: Inventory, hardware: Described, changes: Sequence[Change] | None = None
) -> dict[str, object]:
    """Return an inventory as nested dictionaries, lists and scalars; ``changes`` where it was compared."""
    kinds = inventory.kinds
    data: dict[str, object] = {
        "name": inventory.name,
        "reached_by": inventory.reached_by,
        "seen": inventory.seen.isoformat(),
        "kinds": [_kind(kind) for kind in kinds],
        "odd": [entry for kind in kinds for entry in _odd(kind)],
        "silent": [{"node": node, "reason": reason} for node, reason in inventory.silent.items()],
        "hardware": hardware.row or None,
        "left_out": list(hardware.left_out),
        "racks": {node.node: list(node.holders) for node in inventory.nodes if node.holders},
    }
    return data if changes is None else {**data, "changes": [asdict(change) for change in changes]}


def inventory_parts(inventory: Inventory, hardware: Described, ascii_only: bool = False) -> Iterator[Part]:
    """Yield an inventory for people: kinds of nodes, odd ones, silent ones, levels, and what plans can name."""
    age = (datetime.now(UTC) - inventory.seen).total_seconds()
    when = "now" if age < 60 else f"{format_seconds(age)} ago"
    yield TextPart(f"{inventory.name}, seen {when} through {inventory.reached_by}", "strong")
    heads = ("kind", "nodes", "devices", "processor", "memory", "network", "driver")
    yield table_part(heads, [_row(number, kind) for number, kind in enumerate(inventory.kinds, 1)], (1,))
    for kind in inventory.kinds:
        for node in kind.nodes:
            remarks = [str(difference) for difference in kind.odd.get(node.node, ())]
            if words := [*remarks, *node.troubles]:
                yield TextPart(f"odd: {node.node}: {'; '.join(words)}", "strong")
    for name, reason in inventory.silent.items():
        yield TextPart(f"no answer: {name}: {reason}", "strong")
    yield TextPart()
    for line in drawn_levels(inventory, ascii_only):
        yield TextPart(line)
    for left_out in hardware.left_out:
        yield TextPart(f"not in the hardware of plans: {left_out}", "quiet")


def change_parts(changes: Sequence[Change]) -> Iterator[Part]:
    """Yield what has changed since a cluster was kept."""
    if not changes:
        yield TextPart("Nothing has changed since it was kept.")
        return
    rows = [(change.node, change.what, change.kept, change.now) for change in changes]
    yield table_part(("node", "what", "kept", "now"), rows)


def _row(number: int, kind: Kind) -> tuple[str, ...]:
    columns = [kind.usual.get(what, "n/a") for what in ("processor", "memory", "network", "driver")]
    return (str(number), str(len(kind.nodes)), kind.usual.get("devices", "none"), *columns)


def _kind(kind: Kind) -> dict[str, object]:
    typical = kind.typical
    return {
        "nodes": len(kind.nodes),
        "names": folded_names(node.node for node in kind.nodes),
        "device": typical.device or None,
        "devices_per_node": typical.devices,
        "processor": typical.processor or None,
        "memory_bytes": typical.memory_bytes or None,
        "usual": dict(kind.usual),
    }


def _odd(kind: Kind) -> Iterator[dict[str, object]]:
    for node in kind.nodes:
        differences = kind.odd.get(node.node, ())
        if differences or node.troubles:
            yield {
                "node": node.node,
                "differences": [asdict(difference) for difference in differences],
                "troubles": list(node.troubles),
            }
