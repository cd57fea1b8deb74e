"""Intel GPUs: sysfs, and xpu-smi for names and memory."""

from __future__ import annotations

from capacity_tui.engine.machine.host.system import installed, library
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Stack
from capacity_tui.engine.machine.vendors.intel.probe import VENDOR, XPU_SMI, probe_intel
from capacity_tui.engine.machine.vendors.vendor import Vendor


def _stacks(host: Host) -> tuple[Stack, ...]:
    return installed(("oneAPI Level Zero", library(host, "libze_loader.so.1")))


INTEL = Vendor("intel", VENDOR, probe_intel, _stacks, torch_backend="xpu", asked=(XPU_SMI,))
