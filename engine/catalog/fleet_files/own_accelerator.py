"""The accelerator that a maker's name and a memory stand for."""

from __future__ import annotations

import math

from capacity_tui.engine.catalog.names import brandless_key_of
from capacity_tui.engine.catalog.rows.devices import Accelerator
from capacity_tui.engine.catalog.table import Table
from capacity_tui.engine.units import GIGA

_ALIKE = 0.1


def accelerator_of(name: str, memory_gb: float, accelerators: Table[Accelerator]) -> str | None:
    """Return the id of a device that is called so and has such a memory; None where there is none.

    Args:
        name: as ``NVIDIA H100``.
        memory_gb: its memory, by which devices of one name are told apart.
        accelerators: devices that are known.
    """
    for spelled in (f"{name} {memory_gb:g}GB", name):
        row_id = accelerators.find_id(spelled)
        if row_id is not None and _has(accelerators[row_id], memory_gb):
            return row_id
    key = brandless_key_of(name, accelerators.brands)
    alike = (row_id for row_id in accelerators if key and brandless_key_of(row_id, accelerators.brands).startswith(key))
    return next((row_id for row_id in alike if _has(accelerators[row_id], memory_gb)), None)


def nearest_accelerator(tflops: float, memory_gb: float, accelerators: Table[Accelerator]) -> Accelerator:
    """Return the known device that is nearest in its dense 16-bit peak and its memory.

    Args:
        tflops: peak.
        memory_gb: memory.
        accelerators: devices that are known.
    """
    known = [row for row in accelerators.values() if row.fp16_tflops and row.bandwidth_gbs]

    def distance(row: Accelerator) -> float:
        memory = row.memory_marketed or row.memory_bytes / GIGA
        return abs(math.log((row.fp16_tflops or tflops) / tflops)) + abs(math.log(memory / memory_gb))

    return min(known, key=distance)


def _has(row: Accelerator, memory_gb: float) -> bool:
    return abs((row.memory_marketed or row.memory_bytes / GIGA) / memory_gb - 1) <= _ALIKE
