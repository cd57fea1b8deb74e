"""What makes a plan one for the devices that can be had now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from math import inf, lcm, prod

from capacity_tui.engine.keys import Key
from capacity_tui.engine.nodes.occupancy.occupancy import NodeState
from capacity_tui.engine.plan import Plan

_SIZES = ("tp", "pp", "cp")


def change_to_available(
    plan: Plan, device: str, nodes: Iterable[NodeState], known: Collection[str]
) -> Mapping[str, object] | None:
    """Return the change that has a plan use what is available of some nodes; None where nothing of use is.

    The layout that the plan states stays, so that replicas take as many devices as they can: those of all nodes that
    are wholly available, as jobs over several nodes get them, or where there is none those of the emptiest node. Of
    unlike devices each group is as large as it can be, and the plan decides which of them it uses. Where none of the
    plan's own devices is available, it moves to those of which there are most.

    Args:
        plan: the plan as it was written.
    """
    by_kind: dict[str, list[NodeState]] = defaultdict(list)
    for node in nodes:
        by_kind[node.hardware].append(node)
    stated = (getattr(plan.parallelism, name) for name in _SIZES)
    replica = prod(size for size in stated if isinstance(size, int))
    most = _most_devices(plan, replica)
    if plan.hardware.groups:
        counts = {name: _usable(usable_nodes, replica, inf) for name, usable_nodes in by_kind.items()}
        groups = tuple(
            group.model_copy(update={"devices": counts[group.name]}).model_dump()
            for group in plan.hardware.groups
            if counts.get(group.name)
        )
        return {Key.HARDWARE_NAME: groups[0]["name"], Key.HARDWARE_GROUPS: groups} if groups else None
    counts = {name: _usable(usable_nodes, replica, most) for name, usable_nodes in by_kind.items()}
    if counts.get(device):
        return {Key.HARDWARE_DEVICES: counts[device]}
    others = [name for name, count in counts.items() if name in known and count]
    if not others:
        return None
    kind = max(others, key=lambda name: counts[name])
    return {Key.HARDWARE_NAME: kind, Key.HARDWARE_DEVICES: counts[kind]}


def _usable(nodes: Iterable[NodeState], replica: int, most: float) -> int:
    """Return how many devices of these equal nodes whole replicas can have: whole nodes of them, or a part of one."""
    remaining = list(nodes)
    size = max(node.devices for node in remaining)
    whole = sum(size for node in remaining if node.available == size)
    filling = lcm(size, replica)
    several = int(min(whole, most)) // filling * filling
    return several or int(min(max(node.available for node in remaining), most)) // replica * replica


def _most_devices(plan: Plan, replica: int) -> float:
    """Return as many devices as there are sequences for: each replica works on one at least."""
    batch = plan.training.global_batch
    return int(batch) * replica if plan.task != "infer" and isinstance(batch, int) else inf
