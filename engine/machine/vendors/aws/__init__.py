"""AWS: Trainium and Inferentia through neuron-ls, or as the devices the kernel shows."""

from __future__ import annotations

from capacity_tui.engine.machine.host.system import installed
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Stack
from capacity_tui.engine.machine.vendors.aws.probe import DRIVER_VERSION, FOLDER, PRODUCT, TOOL, VENDOR, probe_neuron
from capacity_tui.engine.machine.vendors.vendor import Vendor


def _stacks(host: Host) -> tuple[Stack, ...]:
    return installed(("Neuron", host.text(DRIVER_VERSION)))


AWS = Vendor(
    "neuron",
    VENDOR,
    probe_neuron,
    _stacks,
    asked=(TOOL,),
    read=(DRIVER_VERSION, PRODUCT, "/dev/neuron[0-9]*"),
    folders=(FOLDER,),
)
