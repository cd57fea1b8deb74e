"""What makes a plan one for the devices that can be had now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import prod

from capacity_tui.engine.nodes.occupancy.occupancy import NodeState
from capacity_tui.engine.plan.plan import Plan

_SIZES = ("tp", "pp", "cp")


def change_to_available(
    plan: Plan, device: str, nodes: Iterable[NodeState], known: Collection[str]
) -> Mapping[str, object] | None:
    """Return the change that has a plan use what is available of some nodes; None where nothing of use is.

    The layout that the plan states stays, so that replicas take as many devices as they can; of unlike devices each
    group is as large as it can be, and the plan decides which of them it uses. Where none of the plan's own devices is
    available, it moves to those of which there are most.

    Args:
        plan: the plan as it was written.
        device: what it runs on.
        nodes: the nodes it may use.
        known: hardware of the catalogue.
    """
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node.hardware] = counts.get(node.hardware, 0) + node.available
    stated = (getattr(plan.parallelism, name) for name in _SIZES)
    replica = prod(size for size in stated if isinstance(size, int))
    if plan.hardware.groups:
        groups = tuple(
            group.model_copy(update={"devices": counts[group.name] // replica * replica}).model_dump()
            for group in plan.hardware.groups
            if counts.get(group.name, 0) >= replica
        )
        return {"hardware.name": groups[0]["name"], "hardware.groups": groups} if groups else None
    others = [kind for kind in counts if kind in known and counts[kind] >= replica]
    if counts.get(device, 0) >= replica:
        return {"hardware.devices": _held(plan, counts[device] // replica * replica, replica)}
    if not others:
        return None
    kind = max(others, key=lambda name: counts[name])
    return {"hardware.name": kind, "hardware.devices": _held(plan, counts[kind] // replica * replica, replica)}


def _held(plan: Plan, devices: int, replica: int) -> int:
    """Return as many devices as there are sequences for: each replica works on one at least."""
    batch = plan.training.global_batch
    return min(devices, int(batch) * replica) if plan.task != "infer" and isinstance(batch, int) else devices
