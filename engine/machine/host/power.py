"""Battery and mains; what the processor's package may draw, its temperature, and whether heat held it back."""

from __future__ import annotations

import re

from capacity_tui.engine.machine.facts import Fact, assumed, detected, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Power

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
