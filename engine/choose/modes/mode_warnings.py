"""What a mode warns of where a run gives reason to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from capacity_tui.engine.catalog.rows.modes import Mode, Warned
from capacity_tui.engine.cluster.cluster import Cluster
from capacity_tui.engine.estimate.note import Note
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import format_percent, format_power


def mode_warnings(mode: Mode, estimate: Estimate, cluster: Cluster) -> tuple[Note, ...]:
    """Return what a mode warns of where a run gives reason to; nothing of memory that it does not fit into."""
    used: dict[str, tuple[float, str]] = {}
    memory, power, limit = estimate.memory, estimate.energy.watts_average, cluster.device.tdp_watts
    if memory.capacity_bytes is not None and estimate.held:
        share = _number(memory.reserved_bytes.value / memory.capacity_bytes)
        used["memory"] = share, f"This run: {format_percent(share)} of memory."
    if power is not None and limit is not None:
        each = _number(power / cluster.devices)
        detail = f"This run: {format_power(each)} of {format_power(_number(limit))} for each device."
        used["power"] = each / _number(limit), detail
    return tuple(_warning(warned, used[warned.figure][1]) for warned in mode.warnings if _holds(warned, used))


def _holds(warned: Warned, used: Mapping[str, tuple[float, str]]) -> bool:
    return warned.figure in used and used[warned.figure][0] >= warned.least


def _warning(warned: Warned, beside: str) -> Note:
    return Note("mode", warned.text.rstrip("."), beside)


def _number(value: Number) -> float:
    return float(np.max(np.asarray(value)))
