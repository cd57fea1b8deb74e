"""AMD: sysfs and the compute driver's topology, AMD's tools for the names that those lack."""

from __future__ import annotations

from capacity_tui.engine.machine.host.system import installed
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Stack
from capacity_tui.engine.machine.vendors.amd.probe import (
    FOLDER,
    KFD,
    ROCM_SMI,
    ROCM_VERSION,
    VENDOR,
    AmdSensors,
    probe_amd,
)
from capacity_tui.engine.machine.vendors.vendor import Sensors, Vendor


def _stacks(host: Host) -> tuple[Stack, ...]:
    return installed(("ROCm", host.text(ROCM_VERSION)))


def _sensors(host: Host, _: bool) -> Sensors:
    return AmdSensors(host)


_CARD = "/sys/class/drm/card[0-9]*/device"
_READ = (
    *(f"{_CARD}/mem_info_{name}" for name in ("vram_total", "vram_used", "gtt_total", "gtt_used")),
    *(f"{_CARD}/{name}" for name in ("product_name", "pp_dpm_sclk")),
    *(f"{KFD}/topology/nodes/*/{name}" for name in ("gpu_id", "properties", "*_links/*/properties")),
    *("/sys/module/amdgpu/version", ROCM_VERSION),
)
AMD = Vendor(
    "amd",
    VENDOR,
    probe_amd,
    _stacks,
    _sensors,
    packages=("amdsmi",),
    torch_backend="cuda",
    asked=(ROCM_SMI,),
    read=_READ,
    folders=(FOLDER,),
)
