"""Network interfaces and InfiniBand ports, read without opening a connection."""

from __future__ import annotations

import re

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import NetworkInterface, NetworkKind
from capacity_tui.engine.machine.topology.pci import numa_node, path_of

INTERFACES = "/sys/class/net"
INFINIBAND = "/sys/class/infiniband"
ARPHRD_LOOPBACK = "772"  # linux/if_arp.h
ARPHRD_INFINIBAND = "32"  # linux/if_arp.h


def probe_networks(host: Host) -> tuple[NetworkInterface, ...]:
    """Return the network interfaces but loopback, then the ports of RDMA adapters."""
    if host.system != "Linux":
        return _from_psutil()
    interfaces = (_interface(host, name) for name in host.names(INTERFACES))
    wired = tuple(interface for interface in interfaces if interface.kind != "loopback")
    return wired + _rdma_ports(host)


def _interface(host: Host, name: str) -> NetworkInterface:
    speed = host.integer(f"{INTERFACES}/{name}/speed")
    if speed.value is not None and speed.value <= 0:
        speed = missing(speed.source, "the driver reports no speed")
    state = host.text(f"{INTERFACES}/{name}/operstate")
    if state.value == "unknown":
        state = missing(state.source, "the driver does not report it")
    device = f"{INTERFACES}/{name}/device"
    location = path_of(host, device), numa_node(host, device)
    return NetworkInterface(name, _kind(host, name), speed, state.map(lambda text: text == "up"), *location)


def _kind(host: Host, name: str) -> NetworkKind:
    base = f"{INTERFACES}/{name}"
    link_type = host.text(f"{base}/type").value
    if link_type == ARPHRD_LOOPBACK:
        return "loopback"
    if link_type == ARPHRD_INFINIBAND:
        return "infiniband"
    if host.exists(f"{base}/wireless") or host.exists(f"{base}/phy80211"):
        return "wifi"
    return "ethernet" if host.exists(f"{base}/device") else "virtual"


def _rdma_ports(host: Host) -> tuple[NetworkInterface, ...]:
    ports = []
    for adapter in host.names(INFINIBAND):
        device = f"{INFINIBAND}/{adapter}/device"
        location = path_of(host, device), numa_node(host, device)
        for port in host.names(f"{INFINIBAND}/{adapter}/ports"):
            base = f"{INFINIBAND}/{adapter}/ports/{port}"
            layer = host.text(f"{base}/link_layer").value
            kind: NetworkKind = "roce" if layer == "Ethernet" else "infiniband"
            up = host.text(f"{base}/state").map(lambda text: "ACTIVE" in text)
            ports.append(NetworkInterface(f"{adapter}:{port}", kind, _rate(host, base), up, *location))
    return tuple(ports)


def _rate(host: Host, base: str) -> Fact[int]:
    """Return the speed in Mb/s from a rate such as ``400 Gb/sec (4X NDR)``."""

    def parse(text: str) -> int:
        match = re.match(r"([\d.]+) Gb/sec", text)
        if not match:
            raise ValueError(text)
        return int(float(match[1]) * 1000)

    return host.fact(f"{base}/rate", parse)


def _from_psutil() -> tuple[NetworkInterface, ...]:
    import psutil  # noqa: PLC0415 - only where sysfs is missing

    interfaces = []
    for name, status in psutil.net_if_stats().items():
        speed = detected(status.speed, "psutil") if status.speed else missing("psutil", "no speed reported")
        kind: NetworkKind = "loopback" if name.startswith("lo") else "ethernet"
        unknown = missing("psutil", "not told on this system")
        interfaces.append(NetworkInterface(name, kind, speed, detected(status.isup, "psutil"), unknown, unknown))
    return tuple(interface for interface in interfaces if interface.kind != "loopback")
