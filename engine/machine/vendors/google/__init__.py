"""Google: TPU chips on the PCI bus, named by the environment of Google Cloud."""

from __future__ import annotations

from capacity_tui.engine.machine.vendors.google.probe import VENDOR, probe_tpu
from capacity_tui.engine.machine.vendors.vendor import Vendor

GOOGLE = Vendor("tpu", VENDOR, probe_tpu, packages=("jax",))
