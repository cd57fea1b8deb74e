"""Which kernels a device has, and which it lacks: attention, and packed formats of weights."""

from __future__ import annotations

import re

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows.numerics import Quantization
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.machine.generations import Setting, find_generation

FLASH = "flash"


def attention_setting(device: Device, catalog: Catalog) -> Setting | None:
    """Return the attention kernels that suit a device's generation, with the reason; None where nothing is known."""
    row = catalog.accelerators.get(device.id)
    generation = None if row is None else find_generation(row.vendor, row.name, row.compute_capability)
    found = () if generation is None else generation.settings
    return next((setting for setting in found if setting.name == "attention"), None)


def attention_in_place_of(wanted: str, device: Device, catalog: Catalog) -> Setting | None:
    """Return what runs in place of flash attention on a device that has none; None where a plan's choice runs."""
    setting = attention_setting(device, catalog)
    return setting if wanted == FLASH and setting is not None and setting.value != FLASH else None


def why_not_read(weights: Quantization, engine: str, device: Device, catalog: Catalog) -> str:
    """Return why an engine cannot read a format of weights on a device; empty where it can, or nothing is known."""
    if weights.engines and engine not in weights.engines:
        return f"{engine} does not read it; these do: {', '.join(weights.engines)}"
    row = catalog.accelerators.get(device.id)
    least, capability = weights.min_compute_capability, "" if row is None else row.compute_capability or ""
    # Only versions can be compared: the names of other vendors' targets have no order.
    if least is None or not re.fullmatch(r"\d+\.\d+", capability) or float(capability) >= least:
        return ""
    return f"its kernels need compute capability {least}, {device.name} has {capability}"
