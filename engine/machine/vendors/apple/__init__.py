"""Apple: processor and GPU of Macs through sysctl and system_profiler."""

from __future__ import annotations

from capacity_tui.engine.machine.facts import detected
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Stack
from capacity_tui.engine.machine.vendors.apple.probe import VENDOR, probe_apple_cpu, probe_apple_gpu
from capacity_tui.engine.machine.vendors.vendor import Vendor


def _stacks(host: Host) -> tuple[Stack, ...]:
    return (Stack("Metal", detected("part of macOS", "macOS")),) if host.system == "Darwin" else ()


APPLE = Vendor(
    "apple", VENDOR, probe_apple_gpu, _stacks, processor=probe_apple_cpu, packages=("mlx",), torch_backend="mps"
)
