"""The system around the devices: platform, libraries, power, processes, network interfaces."""

from __future__ import annotations

import os
import platform
import re

from capacity_tui.engine.machine import main_memory
from capacity_tui.engine.machine.facts import Fact, assumed, detected, missing
from capacity_tui.engine.machine.machine import (
    Container,
    GpuProcess,
    NetworkInterface,
    NetworkKind,
    Platform,
    Power,
    Process,
    Stack,
)
from capacity_tui.engine.machine.probing import Host, parse_pairs
from capacity_tui.engine.machine.topology import numa_node, path_of

OSRELEASE = "/proc/sys/kernel/osrelease"
MARKERS = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/.singularity.d": "apptainer"}
CGROUP_WORDS = {"kubepods": "kubernetes", "docker": "docker", "containerd": "containerd", "lxc": "lxc"}


def probe_platform(host: Host) -> Platform:
    """Return what runs below this process."""
    release = host.text(OSRELEASE).or_else(detected(platform.release(), "uname"))
    return Platform(
        system=detected(host.system, "uname"),
        release=release,
        architecture=detected(host.architecture, "uname"),
        python=detected(platform.python_version(), "the running interpreter"),
        wsl=release.map(lambda text: "microsoft" in text.lower()),
        hypervisor=_hypervisor(host, release.value or ""),
    )


def probe_container(host: Host) -> Container:
    """Return the container's kind and the limits that control groups set."""
    quota, limit = main_memory.cpu_quota(host), main_memory.memory_limit(host)
    return Container(_container(host), main_memory.version(host), quota, limit)


def _container(host: Host) -> Fact[str]:
    if host.environment.get("KUBERNETES_SERVICE_HOST"):
        return detected("kubernetes", "environment KUBERNETES_SERVICE_HOST")
    for path, kind in MARKERS.items():
        if host.exists(path):
            return detected(kind, path)
    groups = host.text("/proc/self/cgroup")
    for word, kind in CGROUP_WORDS.items():
        if word in (groups.value or ""):
            return detected(kind, groups.source)
    return missing("/.dockerenv, /run/.containerenv, /proc/self/cgroup", "no sign of a container")


def _hypervisor(host: Host, release: str) -> Fact[str]:
    if "microsoft" in release.lower():
        return detected("Hyper-V (WSL)", OSRELEASE)
    if "hypervisor" not in parse_pairs(host.text("/proc/cpuinfo").value or "").get("flags", "").split():
        return missing("/proc/cpuinfo flags", "no sign of a hypervisor")
    return host.text("/sys/class/dmi/id/sys_vendor").or_else(detected("unnamed", "/proc/cpuinfo flags"))


LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib")

ICD_FOLDERS = {
    "OpenCL": ("/etc/OpenCL/vendors",),
    "Vulkan": ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"),
}

SOFTWARE_RENDERERS = ("lvp", "swrast", "pocl")  # drivers that compute on the CPU


def installed(*libraries: tuple[str, Fact[str]]) -> tuple[Stack, ...]:
    """Return those of some stacks, each by name and version, whose version is known."""
    return tuple(Stack(name, version) for name, version in libraries if version.value is not None)


def open_stacks(host: Host) -> tuple[Stack, ...]:
    """Return what is installed of the stacks that several vendors' devices share; nothing is loaded."""
    return installed(
        ("OpenCL", _drivers(host, "OpenCL")),
        ("Vulkan", _drivers(host, "Vulkan")),
        ("DirectX (WSL)", library(host, "libdxcore.so", ("/usr/lib/wsl/lib",))),
    )


def library(host: Host, name: str, folders: tuple[str, ...] = LIBRARIES) -> Fact[str]:
    """Return whether a shared library lies in one of the folders where systems keep them."""
    path = next((f"{folder}/{name}" for folder in folders if host.exists(f"{folder}/{name}")), None)
    return detected("installed", path) if path else missing(folders[0], f"no {name}")


def _drivers(host: Host, kind: str) -> Fact[str]:
    """Return the names of the drivers that registered, those that compute on the CPU last."""
    names = {
        name.rpartition(".")[0].partition("_icd")[0] for folder in ICD_FOLDERS[kind] for name in host.names(folder)
    }
    ordered = sorted(names, key=lambda name: (name.startswith(SOFTWARE_RENDERERS), name))
    source = ICD_FOLDERS[kind][0]
    return detected(", ".join(ordered), source) if ordered else missing(source, "no driver registered")


SUPPLIES = "/sys/class/power_supply"
POWERCAP = "/sys/class/powercap"
CPUS = "/sys/devices/system/cpu"
MONITORS = "/sys/class/hwmon"
PACKAGE_MONITORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "scpi_sensors")  # kernel drivers of CPU sensors


def probe_power(host: Host) -> Power:
    """Return the battery's charge, whether the machine runs on mains, and the processor's limit and temperature."""
    if host.system == "Darwin":
        return _macos_power(host)
    supplies = {name: host.text(f"{SUPPLIES}/{name}/type").value for name in host.names(SUPPLIES)}
    batteries = [name for name, kind in supplies.items() if kind == "Battery" and _powers_system(host, name)]
    mains = [name for name, kind in supplies.items() if kind in ("Mains", "USB")]
    package = _package_limit(host), _package_temperature(host), _package_throttles(host)
    if not batteries:
        none = missing(SUPPLIES, "no battery")
        return Power(none, none, assumed(True, "no battery, so it must be on mains"), *package)
    charge = host.fact(f"{SUPPLIES}/{batteries[0]}/capacity", float)
    return Power(charge, _energy_left(host, batteries), _on_mains(host, mains, batteries[0]), *package)


def _powers_system(host: Host, name: str) -> bool:
    """Return False for the batteries of mice and headsets, whose scope is a device."""
    return host.text(f"{SUPPLIES}/{name}/scope").value != "Device"


def _energy_left(host: Host, batteries: list[str]) -> Fact[float]:
    """Return what the batteries hold in watt-hours; some report energy, others charge and voltage."""
    total = 0.0
    for name in batteries:
        energy = host.integer(f"{SUPPLIES}/{name}/energy_now").value
        charge = host.integer(f"{SUPPLIES}/{name}/charge_now").value
        volts = host.integer(f"{SUPPLIES}/{name}/voltage_now").value
        if energy is not None:
            total += energy / 1e6
        elif charge is not None and volts is not None:
            total += charge / 1e6 * volts / 1e6
    return detected(total, SUPPLIES) if total else missing(SUPPLIES, "the battery reports neither energy nor charge")


def _on_mains(host: Host, mains: list[str], battery: str) -> Fact[bool]:
    online = [host.integer(f"{SUPPLIES}/{name}/online") for name in mains]
    known = [fact for fact in online if fact.value is not None]
    if known:
        return detected(any(fact.value == 1 for fact in known), known[0].source)
    return host.text(f"{SUPPLIES}/{battery}/status").map(lambda status: status != "Discharging")


def _package_limit(host: Host) -> Fact[float]:
    """Return the long-term power limit of all sockets in watts."""
    packages = [name for name in host.names(POWERCAP) if re.fullmatch(r"[a-z]+-rapl:\d+", name)]
    packages = [name for name in packages if (host.text(f"{POWERCAP}/{name}/name").value or "").startswith("package")]
    limits = [host.integer(f"{POWERCAP}/{name}/constraint_0_power_limit_uw") for name in packages]
    known = [fact.value for fact in limits if fact.value]
    if not known:
        return missing(POWERCAP, limits[0].reason or "no limit set" if limits else "the kernel lists no power limits")
    return detected(sum(known) / 1e6, f"{POWERCAP}/*-rapl:*/constraint_0_power_limit_uw")


def _package_temperature(host: Host) -> Fact[float]:
    """Return the hottest socket's temperature in degrees Celsius."""
    monitors = [name for name in host.names(MONITORS) if host.text(f"{MONITORS}/{name}/name").value in PACKAGE_MONITORS]
    readings = [host.integer(f"{MONITORS}/{name}/temp1_input") for name in monitors]
    known = [fact.value for fact in readings if fact.value is not None]
    if not known:
        return missing(MONITORS, readings[0].reason if readings else "no sensor of the processor")
    return detected(max(known) / 1000, f"{MONITORS}/*/temp1_input")


def _package_throttles(host: Host) -> Fact[int]:
    """Return how often heat has held a package's clock down since the system started; the kernel counts on Intel's."""
    names = [name for name in host.names(CPUS) if re.fullmatch(r"cpu\d+", name)]
    counts = [host.integer(f"{CPUS}/{name}/thermal_throttle/package_throttle_count") for name in names]
    known = [fact.value for fact in counts if fact.value is not None]
    source = f"{CPUS}/cpu*/thermal_throttle/package_throttle_count"
    return detected(max(known), source) if known else missing(source, "the kernel counts no heat of this processor")


def _macos_power(host: Host) -> Power:
    report = host.command("pmset", "-g", "batt")
    unread = missing(report.source, report.reason or "macOS does not tell")
    if report.value is None:
        return Power(unread, unread, unread, unread, unread, unread)
    charge = re.search(r"(\d+)%", report.value)
    battery = detected(float(charge[1]), report.source) if charge else missing(report.source, "no battery")
    return Power(battery, unread, report.map(lambda text: "AC Power" in text), unread, unread, unread)


SHOWN = 5
WORTH_NAMING_BYTES = 1 << 30  # below this a process makes no difference to a plan


def probe_processes(host: Host) -> Fact[tuple[Process, ...]]:
    """Return the processes that hold most main memory, largest first; small ones are left out."""
    pids = [name for name in host.names("/proc") if name.isdigit()]
    if not pids:
        return missing("/proc", "this system lists its processes elsewhere")
    processes = [process for pid in pids if (process := _process(host, int(pid)))]
    large = [process for process in processes if process.memory_bytes >= WORTH_NAMING_BYTES]
    return detected(tuple(sorted(large, key=lambda process: -process.memory_bytes)[:SHOWN]), "/proc/*/status")


def gpu_process(host: Host, pid: int, memory: Fact[int]) -> GpuProcess:
    """Return a process that holds device memory, with its name and whether it is this user's."""
    return GpuProcess(pid, host.text(f"/proc/{pid}/comm"), memory, host.fact(f"/proc/{pid}/status", _is_same_user))


def _process(host: Host, pid: int) -> Process | None:
    status = host.text(f"/proc/{pid}/status").value
    resident = re.search(r"^VmRSS:\s+(\d+) kB", status or "", re.MULTILINE)
    if status is None or resident is None:
        return None
    return Process(pid, parse_pairs(status).get("Name", "?"), int(resident[1]) * 1024, _is_same_user(status))


def _is_same_user(status: str) -> bool:
    """Return whether the real user of a process is this one, from its status file."""
    user = parse_pairs(status).get("Uid", "").split()
    if not user:
        raise ValueError("no user listed")
    return hasattr(os, "getuid") and int(user[0]) == os.getuid()


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
        unknown = missing("psutil", "not reported on this system")
        interfaces.append(NetworkInterface(name, kind, speed, detected(status.isup, "psutil"), unknown, unknown))
    return tuple(interface for interface in interfaces if interface.kind != "loopback")
