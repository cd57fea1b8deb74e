"""NVIDIA Jetson boards whose driver has no NVML: the GPU inside the chip, which shares its memory."""

from __future__ import annotations

import re
from dataclasses import replace

from capacity_tui.engine.machine.facts import detected, missing
from capacity_tui.engine.machine.host.main_memory import probe_memory, shared_memory
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import unknown_accelerator
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.vendors.nvidia.product_names import VENDOR
from capacity_tui.engine.machine.vendors.vendor import FoundDevices

MODEL = "/proc/device-tree/model"
RELEASE = "/etc/nv_tegra_release"
# NVIDIA's CUDA GPU list: compute capability by chip.
CAPABILITIES = {"Orin": "8.7", "Xavier": "7.2", "Thor": "11.0", "TX2": "6.2", "Nano": "5.3"}


def probe_jetson(host: Host) -> FoundDevices:
    """Return the GPU of a Jetson; raises NotPresentError elsewhere."""
    model = host.text(MODEL)
    if "Jetson" not in (model.value or ""):
        raise NotPresentError("not a Jetson board")
    chip = next((name for name in CAPABILITIES if name in str(model.value)), None)
    total, free, used = shared_memory(probe_memory(host))
    bare = unknown_accelerator(0, VENDOR, MODEL, "the board's driver does not tell")
    named = detected(CAPABILITIES[chip], MODEL) if chip else missing(MODEL, "a chip that is not known")
    board = replace(
        bare,
        name=model,
        memory_total_bytes=total,
        memory_free_bytes=free,
        memory_used_bytes=used,
        compute_capability=named,
        driver=host.fact(RELEASE, _release),
        integrated=detected(True, MODEL),
        visible=detected(True, MODEL),
    )
    return FoundDevices((board,), missing("device tree", "a single GPU"))


def _release(text: str) -> str:
    """Return such as ``R36.4.3`` from ``# R36 (release), REVISION: 4.3, ...``."""
    match = re.search(r"# (R\d+) \(release\), REVISION: ([\d.]+)", text)
    if match is None:
        raise ValueError(text)
    return f"{match[1]}.{match[2]}"
