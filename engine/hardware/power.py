"""Battery and mains."""

from __future__ import annotations

import re

from capacity_tui.engine.hardware.facts import Fact, assumed, detected, missing
from capacity_tui.engine.hardware.host import Host
from capacity_tui.engine.hardware.machine import Power

SUPPLIES = "/sys/class/power_supply"


def probe_power(host: Host) -> Power:
    """Return the battery's charge in percent and whether the machine runs on mains."""
    if host.system == "Darwin":
        return _macos_power(host)
    supplies = {name: host.text(f"{SUPPLIES}/{name}/type").value for name in host.names(SUPPLIES)}
    batteries = [name for name, kind in supplies.items() if kind == "Battery" and _powers_system(host, name)]
    mains = [name for name, kind in supplies.items() if kind in ("Mains", "USB")]
    if not batteries:
        return Power(missing(SUPPLIES, "no battery"), assumed(True, "no battery, so it must be on mains"))
    charge = host.fact(f"{SUPPLIES}/{batteries[0]}/capacity", float)
    return Power(charge, _on_mains(host, mains, batteries[0]))


def _powers_system(host: Host, name: str) -> bool:
    """Return False for the batteries of mice and headsets, whose scope is a device."""
    return host.text(f"{SUPPLIES}/{name}/scope").value != "Device"


def _on_mains(host: Host, mains: list[str], battery: str) -> Fact[bool]:
    online = [host.integer(f"{SUPPLIES}/{name}/online") for name in mains]
    known = [fact for fact in online if fact.value is not None]
    if known:
        return detected(any(fact.value == 1 for fact in known), known[0].source)
    return host.text(f"{SUPPLIES}/{battery}/status").map(lambda status: status != "Discharging")


def _macos_power(host: Host) -> Power:
    report = host.command("pmset", "-g", "batt")
    if report.value is None:
        return Power(missing(report.source, report.reason), missing(report.source, report.reason))
    charge = re.search(r"(\d+)%", report.value)
    battery = detected(float(charge[1]), report.source) if charge else missing(report.source, "no battery")
    return Power(battery, report.map(lambda text: "AC Power" in text))
