"""All vendors, in the order in which their devices are numbered; a new one is a module and a line here."""

from __future__ import annotations

from capacity_tui.engine.machine.vendors.amd import AMD
from capacity_tui.engine.machine.vendors.apple import APPLE
from capacity_tui.engine.machine.vendors.cloud import AWS, GOOGLE
from capacity_tui.engine.machine.vendors.intel import GAUDI, INTEL
from capacity_tui.engine.machine.vendors.nvidia import NVIDIA
from capacity_tui.engine.machine.vendors.vendor import Vendor

VENDORS: tuple[Vendor, ...] = (NVIDIA, AMD, INTEL, GAUDI, APPLE, GOOGLE, AWS)
