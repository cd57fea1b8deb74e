"""What a run uses of memory and power, beside what its mode allows."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate import Estimate, UsedShare
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import format_power

# What is used beyond a share by less than this is inside.
_ROUNDING = 0.0005


def memory_budget(mode: Mode, cluster: Cluster) -> float | None:
    """Return the device memory a mode allows itself: its share of what is usable."""
    capacity = cluster.device.memory_bytes
    if capacity is None:
        return None
    system = mode.reserve.system_gb * 1e9 if cluster.device.kind == "cpu" else 0.0
    return max(0.0, (float(np.max(capacity)) - system) * mode.utilization)


def memory_share(estimate: Estimate) -> float | None:
    """Return the share of a device's memory that a run takes; None where that is not known."""
    memory = estimate.memory
    if memory.capacity_bytes is None:
        return None
    return _number(memory.reserved_bytes.value / memory.capacity_bytes)


def power_share(estimate: Estimate, cluster: Cluster) -> float | None:
    """Return the share of a device's power limit that a run draws on average; None where that is not known."""
    watts, limit = estimate.energy.watts_average, cluster.device.tdp_watts
    known = cluster.device.known.get("tdp_watts")
    if known is not None and known.origin == "assumed":
        return None
    return None if watts is None or limit is None else _number(watts / cluster.devices) / _number(limit)


def used_shares(mode: Mode, estimate: Estimate, cluster: Cluster) -> tuple[UsedShare, ...]:
    """Return what a run uses of memory and power beside what its mode allows, as far as both are known."""
    shares = []
    memory, budget = memory_share(estimate), memory_budget(mode, cluster)
    if memory is not None and budget is not None:
        allowed = budget / _number(estimate.memory.capacity_bytes or 1.0)
        why = "nothing of what the plan leaves open keeps it inside"
        shares.append(UsedShare("memory", memory, allowed, why if memory > allowed + _ROUNDING else ""))
    power, most = power_share(estimate, cluster), mode.power_share_range[1]
    if power is not None and most is not None:
        limit = format_power(_number(cluster.device.tdp_watts or 0.0) * most)
        why = f"settings are chosen for speed; a power limit of {limit} for each device keeps it inside, and slows it"
        shares.append(UsedShare("power", power, most, why if power > most + _ROUNDING else ""))
    return tuple(shares)


def _number(value: Number) -> float:
    return float(np.max(np.asarray(value)))
