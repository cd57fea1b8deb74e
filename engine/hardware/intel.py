"""Intel GPUs from sysfs; the kernel tells little more than that they are there."""

from __future__ import annotations

from dataclasses import replace

from capacity_tui.engine.hardware import drm
from capacity_tui.engine.hardware.facts import Fact, detected, missing
from capacity_tui.engine.hardware.host import Host
from capacity_tui.engine.hardware.machine import Accelerator, unknown_accelerator
from capacity_tui.engine.hardware.matching import match_pci
from capacity_tui.engine.hardware.probing import NotPresentError

VENDOR = "Intel"
PCI_VENDOR = "8086"
PROCESSOR_GRAPHICS = "0000:00:02.0"  # Intel's graphics inside the processor always sit at this address


def probe_intel(host: Host) -> tuple[Accelerator, ...]:
    """Return the Intel GPUs; raises NotPresentError if there are none."""
    found = drm.cards(host, PCI_VENDOR)
    if not found:
        raise NotPresentError(f"no Intel card in {drm.CARDS}")
    return tuple(_accelerator(host, index, card) for index, card in enumerate(found))


def _accelerator(host: Host, index: int, card: drm.Card) -> Accelerator:
    total = _memory(host, card)
    bare = unknown_accelerator(index, VENDOR, drm.CARDS, "the Intel driver does not tell")
    return replace(
        bare,
        name=missing(card.base, f"sysfs gives only the PCI id {card.vendor}:{card.device}"),
        catalogue_id=match_pci(card.pci_id, total.value),
        memory_total_bytes=total,
        driver=_driver(host, card),
        pcie=drm.pcie_link(host, card),
        numa_node=drm.numa_node(host, card),
        clock_mhz=_clock(host, card, "gt_cur_freq_mhz", "cur_freq"),
        clock_max_mhz=_clock(host, card, "gt_RP0_freq_mhz", "rp0_freq"),
        power_limit_watts=drm.hwmon(host, card, "power1_max", "power1_rated_max", scale=1e6),
        temperature_celsius=drm.hwmon(host, card, "temp2_input", "temp1_input", scale=1e3),
        integrated=detected(card.address == PROCESSOR_GRAPHICS, "PCI address"),
    )


def _memory(host: Host, card: drm.Card) -> Fact[int]:
    """Return local memory in bytes, which only the out-of-tree i915 driver tells."""
    if card.address == PROCESSOR_GRAPHICS:
        return missing(card.base, "shared with the CPU; see main memory")
    return host.integer(f"{card.card}/lmem_total_bytes")


def _driver(host: Host, card: drm.Card) -> Fact[str]:
    module = host.target(f"{card.base}/driver")
    if module is None:
        return missing(f"{card.base}/driver", "no driver bound")
    return detected(
        f"{module.name} of Linux {host.text('/proc/sys/kernel/osrelease').value}", f"{card.base}/driver"
    )


def _clock(host: Host, card: drm.Card, i915: str, xe: str) -> Fact[int]:
    return host.integer(f"{card.card}/{i915}").or_else(host.integer(f"{card.base}/tile0/gt0/freq0/{xe}"))
