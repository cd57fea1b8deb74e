"""Google TPUs: the chips the kernel shows and what Google Cloud sets in the environment."""

from __future__ import annotations

import re
from dataclasses import replace

from capacity_tui.engine.machine import topology
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.known_devices import match_named, match_pci
from capacity_tui.engine.machine.machine import Accelerator, unknown_accelerator
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.vendors.vendor import ProbedDevices, Vendor

VENDOR = "Google"
PCI_VENDOR = "0x1ae0"
TYPE = "TPU_ACCELERATOR_TYPE"  # such as v5litepod-8, set on TPU VMs and by GKE
NAMES = {"v5litepod": "v5e", "v5lite": "v5e", "v5": "v5p", "tpu7x": "v7", "7x": "v7"}


def probe_tpu(host: Host) -> ProbedDevices:
    """Return the TPU chips of this host; raises NotPresentError if there are none."""
    functions = host.names(topology.DEVICES)
    addresses = [name for name in functions if host.text(f"{topology.DEVICES}/{name}/vendor").value == PCI_VENDOR]
    nodes = [name for name in host.names("/dev") if re.fullmatch(r"accel\d+", name)]
    kind = host.environment.get(TYPE, "")
    if not addresses and not (nodes and kind):
        raise NotPresentError("no TPU on the PCI bus")
    chips: list[str] = addresses or [""] * len(nodes)
    return ProbedDevices(tuple(_accelerator(host, index, address, kind) for index, address in enumerate(chips)))


def _accelerator(host: Host, index: int, address: str, kind: str) -> Accelerator:
    bare = unknown_accelerator(index, VENDOR, "sysfs", "the TPU driver does not tell")
    name, path = _name(kind), f"{topology.DEVICES}/{address}"
    if not address:
        return replace(bare, name=name, catalogue_id=match_named(name), visible=detected(True, TYPE))
    device = (host.text(f"{path}/device").value or "0x0")[2:]
    revision = (host.text(f"{path}/revision").value or "0x0")[2:].zfill(2)
    return replace(
        bare,
        name=name,
        catalogue_id=match_named(name).or_else(match_pci(f"{PCI_VENDOR[2:]}:{device}:{revision}", None)),
        pci_path=topology.path_of(host, path),
        numa_node=topology.numa_node(host, path),
        integrated=detected(False, "PCI bus"),
        visible=detected(True, "PCI bus"),
    )


def _name(kind: str) -> Fact[str]:
    version = kind.lower().rpartition("-")[0] or kind.lower()
    if not version:
        return missing(TYPE, "the environment names no type")
    return detected(f"TPU {NAMES.get(version, version)}", f"environment {TYPE}")


GOOGLE = Vendor("tpu", VENDOR, probe_tpu, packages=("jax",))
