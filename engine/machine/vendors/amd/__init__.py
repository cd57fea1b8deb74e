"""AMD: sysfs and the compute driver's topology, AMD's tools for the names that those lack."""

from __future__ import annotations

from capacity_tui.engine.machine.host.stacks import installed
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Stack
from capacity_tui.engine.machine.vendors.amd.probe import ROCM_VERSION, VENDOR, probe_amd
from capacity_tui.engine.machine.vendors.amd.sensors import AmdSensors
from capacity_tui.engine.machine.vendors.vendor import Sensors, Vendor


def _stacks(host: Host) -> tuple[Stack, ...]:
    return installed(("ROCm", host.text(ROCM_VERSION)))


def _sensors(host: Host, _: bool) -> Sensors:
    return AmdSensors(host)


AMD = Vendor("amd", VENDOR, probe_amd, _stacks, _sensors, packages=("amdsmi",), torch_backend="cuda")
