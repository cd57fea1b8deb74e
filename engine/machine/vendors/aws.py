"""AWS Trainium and Inferentia: neuron-ls where it is installed, else the devices the kernel shows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.known_devices import match_named
from capacity_tui.engine.machine.machine import Accelerator, LinkPeer, unknown_accelerator
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.system import gpu_process, installed
from capacity_tui.engine.machine.vendors.vendor import ProbedDevices, Vendor

VENDOR = "AWS"
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
    nameless = (unknown_accelerator(index, VENDOR, "/dev", report.reason) for index in range(len(devices)))
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
    bare = unknown_accelerator(index, VENDOR, source, "neuron-ls does not tell")
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
    VENDOR,
    probe_neuron,
    lambda host: installed(("Neuron", host.text(DRIVER_VERSION))),
    asked=(TOOL,),
    read=(DRIVER_VERSION, PRODUCT, "/dev/neuron[0-9]*"),
    folders=(FOLDER,),
)
