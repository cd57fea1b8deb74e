"""Graphics cards as the Linux kernel lists them, whatever their vendor."""

from __future__ import annotations

import re
from dataclasses import dataclass

from capacity_tui.engine.machine.facts import Fact, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import PcieLink

CARDS = "/sys/class/drm"
GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}  # GT/s a lane, PCIe 1 to 6


@dataclass(frozen=True, slots=True)
class Card:
    """One card: its sysfs directories and PCI ids in lower-case hex without ``0x``.

    Attributes:
        card: such as ``/sys/class/drm/card0``.
        address: PCI address, empty if it has none.
    """

    card: str
    vendor: str
    device: str
    revision: str
    address: str

    @property
    def base(self) -> str:
        """The device's directory."""
        return f"{self.card}/device"

    @property
    def pci_id(self) -> str:
        """``vendor:device:revision``."""
        return f"{self.vendor}:{self.device}:{self.revision}"


def cards(host: Host, vendor: str) -> tuple[Card, ...]:
    """Return the cards of one PCI vendor id, in the order of their PCI addresses."""
    result = []
    for name in host.names(CARDS):
        if not re.fullmatch(r"card\d+", name):
            continue
        base = f"{CARDS}/{name}/device"
        ids = [(host.text(f"{base}/{part}").value or "0x0")[2:] for part in ("vendor", "device", "revision")]
        if ids[0] == vendor:
            result.append(Card(f"{CARDS}/{name}", ids[0], ids[1], ids[2].zfill(2), _address(host, base)))
    return tuple(sorted(result, key=lambda card: card.address))


def hwmon(host: Host, card: Card, *names: str, scale: float) -> Fact[float]:
    """Return the first sensor that answers, its integer divided by ``scale``."""
    last: Fact[float] = missing(f"{card.base}/hwmon", "no sensors")
    for monitor in host.names(f"{card.base}/hwmon"):
        for name in names:
            last = host.integer(f"{card.base}/hwmon/{monitor}/{name}").map(lambda value: value / scale)
            if last.value is not None:
                return last
    return last


def pcie_link(host: Host, card: Card) -> PcieLink:
    """Return the card's PCIe link now and at its most."""
    return PcieLink(
        generation=host.fact(f"{card.base}/current_link_speed", _generation),
        lanes=host.integer(f"{card.base}/current_link_width"),
        generation_max=host.fact(f"{card.base}/max_link_speed", _generation),
        lanes_max=host.integer(f"{card.base}/max_link_width"),
    )


def _address(host: Host, base: str) -> str:
    match = re.search(r"PCI_SLOT_NAME=(\S+)", host.text(f"{base}/uevent").value or "")
    return match[1] if match else ""


def _generation(text: str) -> int:
    speed = text.split(" ", 1)[0]
    if speed not in GENERATIONS:
        raise ValueError(text)
    return GENERATIONS[speed]
