"""The PCI tree: where a device sits on it, and how far two devices are apart."""

from __future__ import annotations

import re
from pathlib import PurePath

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import PciPath

DEVICES = "/sys/bus/pci/devices"
LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS", "?")  # nearest first; any other cell of a matrix is a direct link
ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def path_of(host: Host, link: str) -> Fact[PciPath]:
    """Return the PCI path of the device a sysfs link leads to, such as a card's ``device``."""
    target = host.target(link)
    if target is None:
        return missing(link, "this machine does not tell")
    path = parse_path(target)
    return detected(path, link) if path else missing(link, "not on the PCI bus")


def parse_path(target: PurePath) -> PciPath:
    """Return host bridge and addresses of a path below ``/sys/devices``; empty if it is not on the PCI bus."""
    parts = target.parts
    start = next((index for index, part in enumerate(parts) if ROOT.fullmatch(part)), None)
    if start is None:
        return ()
    return (parts[start], *(part for part in parts[start + 1 :] if ADDRESS.fullmatch(part)))


def numa_node(host: Host, device: str) -> Fact[int]:
    """Return the NUMA node next to a device, given its sysfs directory."""
    node = host.integer(f"{device}/numa_node")
    return missing(node.source, "the firmware names no node") if node.value == -1 else node


def level(first: PciPath, second: PciPath, same_node: bool | None) -> str:
    """Return how two devices reach each other, in the terms of ``nvidia-smi topo``.

    Args:
        second: path of the other.
        same_node: whether both lie next to the same NUMA node; None where unknown.
    """
    if not first or not second:
        return "?"
    shared = next((depth for depth, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    shared = min(len(first), len(second)) if shared is None else shared
    if shared == 0:
        return "?" if same_node is None else "NODE" if same_node else "SYS"
    if shared == 1:
        return "PHB"
    # Below a switch's upstream port each device has its own downstream port, and no more.
    return "PIX" if max(len(first), len(second)) - shared <= 2 else "PXB"
