"""Where a plan does not fit: the smallest devices of the catalogue that would hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from capacity_tui.engine.catalog import Accelerator
from capacity_tui.engine.choose.whatif.deltas import change_text, plain_change
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan, Trial, has_room, re_estimate
from capacity_tui.engine.estimate.note import Note

# What a row says of its release before the device can be had.
_ANNOUNCED = "announced"
TITLE = "Smallest devices that would hold it"


def larger_devices(case: EstimatedPlan) -> tuple[Trial, ...]:
    """Return the plan on as many of the smallest devices that hold it: of the same maker, and of another if smaller.

    Devices that can be had come before those that are only announced.

    Args:
        case: a plan that does not fit.
    """
    rows = case.catalog.accelerators
    device = case.resolved.cluster.device
    found = _smallest(case, rows.values())
    if found is None:
        return ()
    vendor = rows[device.id].vendor if device.id in rows else None
    if vendor in (None, rows[found.resolved.cluster.device.id].vendor):
        return (found,)
    same = _smallest(case, (row for row in rows.values() if row.vendor == vendor))
    return (found,) if same is None else (same, found)


def larger_devices_text(found: Iterable[Trial]) -> str:
    """Return which devices would hold a plan, with what to set; empty where none was found."""
    named = (f"{trial.resolved.cluster.device.name} ({change_text(trial.change)})" for trial in found)
    return " or ".join(named)


def larger_devices_note(case: EstimatedPlan) -> Note | None:
    """Return what is missing and which devices have it; None where the plan fits or none has."""
    if case.estimate.held is not False:
        return None
    found = larger_devices(case)
    if not found:
        return None
    return Note("larger_devices", TITLE, larger_devices_text(found), None, plain_change(found[0].change))


def _smallest(case: EstimatedPlan, rows: Iterable[Accelerator]) -> Trial | None:
    memory = case.estimate.memory
    needed = float(np.max(memory.reserved_bytes.value))
    larger = (row for row in rows if row.memory_bytes >= needed)
    for row in sorted(larger, key=_order):
        trial = re_estimate(case, _change(case, row))
        if trial is not None and has_room(trial.estimate):
            return trial
    return None


def _order(row: Accelerator) -> tuple[bool, int, float]:
    return _ANNOUNCED in (row.released or ""), row.memory_bytes, row.tdp_w or np.inf


def _change(case: EstimatedPlan, row: Accelerator) -> Mapping[str, object]:
    return {"hardware.name": row.id, "hardware.devices": int(case.resolved.cluster.devices)}
