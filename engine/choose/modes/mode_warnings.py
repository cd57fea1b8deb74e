"""What a mode warns of where a run gives reason to."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog.rows import Mode, Warned
from capacity_tui.engine.choose.modes.shares import memory_share, power_share
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate import Estimate, Note
from capacity_tui.engine.units import format_percent, format_power


def mode_warnings(mode: Mode, estimate: Estimate, cluster: Cluster) -> tuple[Note, ...]:
    """Return what a mode warns of where a run gives reason to; nothing of memory that it does not fit into."""
    used: dict[str, tuple[float, str]] = {}
    memory, power, limit = memory_share(estimate), power_share(estimate, cluster), cluster.device.tdp_watts
    if memory is not None and estimate.fits:
        used["memory"] = memory, f"This run: {format_percent(memory)} of memory."
    if power is not None and limit is not None:
        there = float(limit)
        detail = f"This run: {format_power(power * there)} of {format_power(there)} for each device."
        used["power"] = power, detail
    return tuple(
        Note("mode", warned.text.rstrip("."), used[warned.figure][1])
        for warned in mode.warnings
        if _holds(warned, used)
    )


def _holds(warned: Warned, used: Mapping[str, tuple[float, str]]) -> bool:
    return warned.figure in used and used[warned.figure][0] >= warned.least
