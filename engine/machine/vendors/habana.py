"""Intel Gaudi cards as hl-smi prints them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.machine import topology
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.known_devices import match_accelerator
from capacity_tui.engine.machine.machine import Accelerator, unknown_accelerator
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.system import installed
from capacity_tui.engine.machine.vendors.vendor import MEBIBYTE, ProbedDevices, Vendor

VENDOR = "Intel"
TOOL = "hl-smi"
MODULE = "/sys/module/habanalabs/version"
FIRST_LINE = re.compile(r"\|\s+(\d+)\s+(HL-\S+)\s.*?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)", re.IGNORECASE)
SECOND_LINE = re.compile(r"\|\s*\S+\s+(\d+)C.*?(\d+)W\s*/\s*(\d+)W\s*\|\s*(\d+)MiB\s*/\s*(\d+)MiB")
DRIVER = re.compile(r"\| Driver Version:\s+(\S+)")


def probe_gaudi(host: Host) -> ProbedDevices:
    """Return the Gaudi cards; raises NotPresentError if there are none."""
    devices = [name for name in host.names("/dev/accel") if re.fullmatch(r"accel\d+", name)]
    if not devices and not host.exists(MODULE):
        raise NotPresentError("no Gaudi driver loaded")
    report = host.command(TOOL)
    if report.value is None:
        raise NotPresentError(f"{len(devices)} devices in /dev/accel, but {report.reason}")
    driver = DRIVER.search(report.value)
    version = detected(driver[1], TOOL) if driver else host.text(MODULE)
    lines = report.value.splitlines()
    pairs = pairwise(lines)
    rows = [(match, SECOND_LINE.match(below)) for line, below in pairs if (match := FIRST_LINE.match(line))]
    if not rows:
        raise NotPresentError("hl-smi lists no card")
    return ProbedDevices(tuple(_accelerator(host, version, *row) for row in rows))


def _accelerator(host: Host, driver: Fact[str], first: re.Match[str], second: re.Match[str] | None) -> Accelerator:
    index, name, address = int(first[1]), first[2], first[3].lower()
    bare = unknown_accelerator(index, VENDOR, TOOL, "hl-smi does not tell")
    path = f"{topology.DEVICES}/{address}"
    card = replace(
        bare,
        name=detected(name, TOOL),
        catalogue_id=match_accelerator(name, None),
        driver=driver,
        pci_path=topology.path_of(host, path),
        numa_node=topology.numa_node(host, path),
        integrated=detected(False, TOOL),
        visible=_visible(host, index),
    )
    if second is None:
        return card
    celsius, drawn, limit, used, total = (int(number) for number in second.groups())
    return replace(
        card,
        memory_total_bytes=detected(total * MEBIBYTE, TOOL),
        memory_used_bytes=detected(used * MEBIBYTE, TOOL),
        memory_free_bytes=detected((total - used) * MEBIBYTE, TOOL),
        power_watts=detected(float(drawn), TOOL),
        power_limit_watts=detected(float(limit), TOOL),
        temperature_celsius=detected(float(celsius), TOOL),
    )


def _visible(host: Host, index: int) -> Fact[bool]:
    listed = host.environment.get("HABANA_VISIBLE_DEVICES", "all")
    if listed.strip().lower() == "all":
        return detected(True, "HABANA_VISIBLE_DEVICES")
    if not listed.strip():
        return missing("HABANA_VISIBLE_DEVICES", "set to nothing")
    return detected(str(index) in listed.replace(" ", "").split(","), "environment HABANA_VISIBLE_DEVICES")


HABANA = Vendor(
    "gaudi",
    VENDOR,
    probe_gaudi,
    lambda host: installed(("SynapseAI", host.text(MODULE))),
    asked=((TOOL,),),
    read=(MODULE, "/dev/accel/accel[0-9]*"),
)
