"""Habana, whose Gaudi cards Intel sells: hl-smi and the module of the kernel."""

from __future__ import annotations

from capacity_tui.engine.machine.host.system import installed
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Stack
from capacity_tui.engine.machine.vendors.habana.probe import MODULE, TOOL, VENDOR, probe_gaudi
from capacity_tui.engine.machine.vendors.vendor import Vendor


def _stacks(host: Host) -> tuple[Stack, ...]:
    return installed(("SynapseAI", host.text(MODULE)))


HABANA = Vendor("gaudi", VENDOR, probe_gaudi, _stacks, asked=((TOOL,),), read=(MODULE, "/dev/accel/accel[0-9]*"))
