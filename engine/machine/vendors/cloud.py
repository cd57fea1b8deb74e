"""Accelerators that clouds make for themselves: AWS Trainium and Inferentia, and Google TPUs.

Those of AWS through neuron-ls where it is installed, else the devices the kernel shows; TPUs by the chips the kernel
shows and what Google Cloud sets in the environment.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from capacity_tui.engine.machine import topology
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.known_devices import match_named, match_pci
from capacity_tui.engine.machine.machine import Accelerator, LinkPeer, unknown_accelerator
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.system import gpu_process, installed
from capacity_tui.engine.machine.vendors.vendor import ProbedDevices, Vendor

_AWS, _GOOGLE = "AWS", "Google"
TOOL = ("neuron-ls", "--json-output")
FOLDER = "/opt/aws/neuron/bin"
DRIVER_VERSION = "/sys/module/neuron/version"
PRODUCT = "/sys/class/dmi/id/product_name"  # EC2 writes the instance type here
# EC2 instance families and the chip inside.
CHIPS = {"inf1": "Inferentia", "inf2": "Inferentia2", "trn1": "Trainium1", "trn1n": "Trainium1"}
CHIPS |= {"trn2": "Trainium2", "trn2u": "Trainium2", "trn3": "Trainium3"}

Row = Mapping[str, object]


def probe_neuron(host: Host) -> ProbedDevices:
    """Return the Neuron devices; raises NotPresentError if there are none."""
    devices = [name for name in host.names("/dev") if re.fullmatch(r"neuron\d+", name)]
    if not devices:
        raise NotPresentError("no /dev/neuron devices")
    report = host.command(*TOOL, folder=FOLDER)
    rows = _rows(report.value)
    if rows:
        return ProbedDevices(tuple(_accelerator(host, row) for row in rows))
    chip = _chip(host, {})
    nameless = (unknown_accelerator(index, _AWS, "/dev", report.reason) for index in range(len(devices)))
    return ProbedDevices(tuple(replace(bare, name=chip, catalogue_id=match_named(chip)) for bare in nameless))


def _rows(text: str | None) -> Sequence[Row]:
    try:
        loaded = json.loads(text or "")
    except ValueError:
        return []
    listed = loaded.get("neuron_devices", []) if isinstance(loaded, dict) else loaded
    return [cast("Row", row) for row in listed if isinstance(row, dict) and "neuron_device" in row]


def _accelerator(host: Host, row: Row) -> Accelerator:
    source = " ".join(TOOL)
    index = int(cast("int", row["neuron_device"]))
    chip = _chip(host, row)
    total = cast("int | None", row.get("memory_size"))
    node = str(row.get("numa_node", "-1"))
    peers = Counter(cast("Sequence[int]", row.get("connected_to") or ()))
    links = tuple(LinkPeer("NeuronLink", peer, count) for peer, count in sorted(peers.items()))
    processes = cast("Sequence[Mapping[str, object]]", row.get("neuron_processes") or ())
    unread = missing(source, "neuron-ls does not tell")
    bare = unknown_accelerator(index, _AWS, source, "neuron-ls does not tell")
    return replace(
        bare,
        name=chip,
        catalogue_id=match_named(chip),
        memory_total_bytes=detected(total, source) if total else unread,
        processes=detected(tuple(gpu_process(host, int(str(entry["pid"])), unread) for entry in processes), source),
        driver=host.text(DRIVER_VERSION),
        numa_node=detected(int(node), source) if node.isdigit() else missing(source, "the firmware names no node"),
        links=detected(links, source) if links else missing(source, "a single device"),
        integrated=detected(False, source),
        visible=detected(True, source),
    )


def _chip(host: Host, row: Row) -> Fact[str]:
    """Return the chip by the instance type that neuron-ls or the firmware names."""
    instance_type = row.get("instance_type")
    instance = detected(str(instance_type), " ".join(TOOL)) if instance_type else host.text(PRODUCT)
    chip = CHIPS.get((instance.value or "").partition(".")[0])
    return detected(chip, instance.source) if chip else missing(instance.source, "the instance type names no chip")


AWS = Vendor(
    "neuron",
    _AWS,
    probe_neuron,
    lambda host: installed(("Neuron", host.text(DRIVER_VERSION))),
    asked=(TOOL,),
    read=(DRIVER_VERSION, PRODUCT, "/dev/neuron[0-9]*"),
    folders=(FOLDER,),
)


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
    return ProbedDevices(tuple(_tpu(host, index, address, kind) for index, address in enumerate(chips)))


def _tpu(host: Host, index: int, address: str, kind: str) -> Accelerator:
    bare = unknown_accelerator(index, _GOOGLE, "sysfs", "the TPU driver does not tell")
    name, path = _tpu_name(kind), f"{topology.DEVICES}/{address}"
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


def _tpu_name(kind: str) -> Fact[str]:
    version = kind.lower().rpartition("-")[0] or kind.lower()
    if not version:
        return missing(TYPE, "the environment names no type")
    return detected(f"TPU {NAMES.get(version, version)}", f"environment {TYPE}")


GOOGLE = Vendor("tpu", _GOOGLE, probe_tpu, packages=("jax",))
