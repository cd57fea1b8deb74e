"""Intel GPUs from sysfs, with names and memory from xpu-smi; Gaudi cards as hl-smi prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.machine import topology
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.known_devices import match_accelerator, match_pci
from capacity_tui.engine.machine.machine import Accelerator, unknown_accelerator
from capacity_tui.engine.machine.main_memory import probe_memory, shared_memory
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.system import installed, library
from capacity_tui.engine.machine.vendors.vendor import MEBIBYTE, ProbedDevices, Vendor, first_value, listed_in, number

VENDOR = "Intel"
PCI_VENDOR = "8086"
PROCESSOR_GRAPHICS = "0000:00:02.0"  # Intel's graphics inside the processor always sit at this address
XPU_SMI = ("xpu-smi", "discovery", "-j")


def probe_intel(host: Host) -> ProbedDevices:
    """Return the Intel GPUs; raises NotPresentError if there are none."""
    cards = topology.cards(host, PCI_VENDOR)
    if not cards:
        raise NotPresentError(f"no Intel card in {topology.CARDS}")
    listed = discovered(host) if any(card.address != PROCESSOR_GRAPHICS for card in cards) else {}
    devices = (_accelerator(host, index, card, listed.get(card.address, {})) for index, card in enumerate(cards))
    return ProbedDevices(tuple(devices))


def discovered(host: Host) -> dict[str, Mapping[str, str]]:
    """Return what xpu-smi says about each card, by PCI address; empty where it is not installed."""
    rows = _devices(host.command(*XPU_SMI).value)
    by_address: dict[str, Mapping[str, str]] = {}
    for row in rows:
        number_of = row.get("device_id", "")
        detail = {}
        if "memory_physical_size_byte" not in row and number_of.isdigit():
            detail = next(iter(_devices(host.command("xpu-smi", "discovery", "-d", number_of, "-j").value)), {})
        by_address[row.get("pci_bdf_address", "").lower()] = {**row, **detail}
    return by_address


def _devices(text: str | None) -> list[dict[str, str]]:
    try:
        loaded = json.loads(text or "")
        rows = loaded.get("device_list", [loaded])
        return [{str(key): str(value) for key, value in row.items()} for row in rows]
    except (ValueError, AttributeError):
        return []


def _accelerator(host: Host, index: int, card: topology.Card, row: Mapping[str, str]) -> Accelerator:
    bare = unknown_accelerator(index, VENDOR, topology.CARDS, "the Intel driver does not tell")
    name, integrated = first_value(row, "device_name"), card.address == PROCESSOR_GRAPHICS
    total, free, used = shared_memory(probe_memory(host)) if integrated else _memory(host, card, row)
    by_id = match_pci(card.pci_id, None if integrated else total.value)
    unnamed = missing(card.base, f"sysfs gives only the PCI id {card.vendor}:{card.device}")
    inside = detected("Intel graphics inside the processor", "PCI address") if integrated else unnamed
    driver = _driver(host, card)
    return replace(
        bare,
        name=detected(name, " ".join(XPU_SMI)) if name else inside,
        catalogue_id=match_accelerator(name, total.value).or_else(by_id) if name else by_id,
        memory_total_bytes=total,
        memory_free_bytes=free,
        memory_used_bytes=used,
        driver=driver if "driver_version" not in row else detected(row["driver_version"], " ".join(XPU_SMI)),
        pci_path=topology.path_of(host, card.base),
        pcie=topology.pcie_link(host, card),
        numa_node=topology.numa_node(host, card.base),
        clock_mhz=_clock(host, card, "gt_cur_freq_mhz", "cur_freq"),
        clock_max_mhz=_clock(host, card, "gt_RP0_freq_mhz", "rp0_freq"),
        power_default_watts=topology.hwmon(host, card, "power1_rated_max", scale=1e6),
        power_limit_watts=topology.hwmon(host, card, "power1_max", "power1_rated_max", scale=1e6),
        temperature_celsius=topology.hwmon(host, card, "temp2_input", "temp1_input", scale=1e3),
        throttle=_throttle(host, card),
        integrated=detected(integrated, "PCI address"),
        visible=listed_in(host, index, "ZE_AFFINITY_MASK"),
    )


def _memory(host: Host, card: topology.Card, row: Mapping[str, str]) -> tuple[Fact[int], Fact[int], Fact[int]]:
    """Return total, free and used local memory in bytes: the kernel's where known, else xpu-smi's."""
    source = " ".join(XPU_SMI)
    size, left = number(row, "memory_physical_size_byte"), number(row, "memory_free_size_byte")
    listed = missing(source, "not in its answer") if size is None else detected(round(size), source)
    total = host.integer(f"{card.card}/lmem_total_bytes").or_else(listed)
    if left is None or total.value is None:
        unread = missing(source, "not in its answer" if row else "xpu-smi is not installed")
        return total, unread, unread
    return total, detected(round(left), source), detected(max(0, total.value - round(left)), source)


def _throttle(host: Host, card: topology.Card) -> Fact[tuple[str, ...]]:
    """Return why the clock is held down, from the reason files of i915 or xe."""
    for folder in (f"{card.card}/gt/gt0", f"{card.base}/tile0/gt0/freq0/throttle"):
        names = [name for name in host.names(folder) if name.startswith(("throttle_reason_", "reason_"))]
        if names:
            active = [name for name in names if host.text(f"{folder}/{name}").value == "1"]
            words = (name.removeprefix("throttle_").removeprefix("reason_") for name in active)
            return detected(tuple(word for word in words if word != "status"), folder)
    return missing(card.card, "the driver lists no reasons")


def _driver(host: Host, card: topology.Card) -> Fact[str]:
    module = host.target(f"{card.base}/driver")
    if module is None:
        return missing(f"{card.base}/driver", "no driver bound")
    return detected(f"{module.name} of Linux {host.text('/proc/sys/kernel/osrelease').value}", f"{card.base}/driver")


def _clock(host: Host, card: topology.Card, i915: str, xe: str) -> Fact[int]:
    return host.integer(f"{card.card}/{i915}").or_else(host.integer(f"{card.base}/tile0/gt0/freq0/{xe}"))


INTEL = Vendor(
    "intel",
    VENDOR,
    probe_intel,
    lambda host: installed(("oneAPI Level Zero", library(host, "libze_loader.so.1"))),
    torch_backend="xpu",
    asked=(XPU_SMI,),
)


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
    return ProbedDevices(tuple(_gaudi(host, version, *row) for row in rows))


def _gaudi(host: Host, driver: Fact[str], first: re.Match[str], second: re.Match[str] | None) -> Accelerator:
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
        visible=_gaudi_visible(host, index),
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


def _gaudi_visible(host: Host, index: int) -> Fact[bool]:
    listed = host.environment.get("HABANA_VISIBLE_DEVICES", "all")
    if listed.strip().lower() == "all":
        return detected(True, "HABANA_VISIBLE_DEVICES")
    if not listed.strip():
        return missing("HABANA_VISIBLE_DEVICES", "set to nothing")
    return detected(str(index) in listed.replace(" ", "").split(","), "environment HABANA_VISIBLE_DEVICES")


GAUDI = Vendor(
    "gaudi",
    VENDOR,
    probe_gaudi,
    lambda host: installed(("SynapseAI", host.text(MODULE))),
    asked=((TOOL,),),
    read=(MODULE, "/dev/accel/accel[0-9]*"),
)
