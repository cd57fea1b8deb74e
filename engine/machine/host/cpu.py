"""The processors: model, cores by kind, clocks, and what affinity and quotas leave this process."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from capacity_tui.engine.machine.cpu_list import parse_cpu_list
from capacity_tui.engine.machine.device_names import device_names, match_cpu
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host import cgroup
from capacity_tui.engine.machine.host.cpu_features import feature_flags, microarchitecture, simd_bits, simd_names
from capacity_tui.engine.machine.host.cpu_topology import (
    CPUS,
    caches,
    core_counts,
    numa_nodes,
    online_cpus,
    socket_count,
)
from capacity_tui.engine.machine.host_files import Host, parse_pairs
from capacity_tui.engine.machine.machine import Cpu

CPUINFO = "/proc/cpuinfo"
STATUS = "/proc/self/status"
DEVICE_TREE = "/proc/device-tree/model"


def probe_cpu(host: Host) -> Cpu:
    """Return the processors of a Linux machine."""
    cpuinfo = host.fact(CPUINFO, parse_pairs)
    pairs = cpuinfo.value or {}
    model = _model(host, pairs)
    cores, performance, efficiency = core_counts(host)
    online = online_cpus(host)
    flags = feature_flags(pairs)
    return Cpu(
        model=model,
        vendor=_vendor(pairs),
        microarchitecture=microarchitecture(host, pairs),
        sockets=socket_count(host),
        physical_cores=cores,
        performance_cores=performance,
        efficiency_cores=efficiency,
        threads=online.map(len),
        usable_threads=_usable_threads(host, online),
        base_mhz=_base_clock(host, model),
        boost_mhz=_kilohertz(host, "cpufreq/cpuinfo_max_freq", max),
        current_mhz=_current_clock(host),
        simd=simd_names(flags),
        simd_bits=simd_bits(host, flags),
        numa_nodes=numa_nodes(host),
        caches=caches(host),
        catalogue_id=match_cpu(model.value) if model.value else missing(model.source, model.reason),
    )


def _model(host: Host, pairs: dict[str, str]) -> Fact[str]:
    """Return the model name; on ARM the board's or cloud's name with the core's."""
    if pairs.get("model name"):
        return detected(" ".join(pairs["model name"].split()), CPUINFO)
    board = host.text(DEVICE_TREE)
    part = device_names().arm_parts.get(f"{pairs.get('CPU implementer')}:{pairs.get('CPU part')}")
    if part is None:
        return board.or_else(missing(CPUINFO, "no model name, and a CPU part that is not known"))
    maker = board.or_else(host.text("/sys/class/dmi/id/sys_vendor"))
    return detected(f"{maker.value} {part}" if maker.value else part, CPUINFO)


def _vendor(pairs: dict[str, str]) -> Fact[str]:
    vendor = pairs.get("vendor_id")
    if vendor:
        return detected(device_names().cpu_vendors.get(vendor, vendor), CPUINFO)
    implementer = pairs.get("CPU implementer")
    if implementer is None:
        return missing(CPUINFO, "no vendor given")
    from archspec.cpu.schema import TARGETS_JSON  # noqa: PLC0415 - 20 ms, in a probe's own thread

    return detected(str(TARGETS_JSON["conversions"]["arm_vendors"].get(implementer, implementer)), CPUINFO)


def _usable_threads(host: Host, online: Fact[tuple[int, ...]]) -> Fact[int]:
    """Return how many threads can run at once: the affinity mask's, cut to whole CPUs of the quota."""
    allowed = host.fact(STATUS, lambda text: parse_cpu_list(parse_pairs(text).get("Cpus_allowed_list", "")))
    if allowed.value and online.value:
        allowed = allowed.map(lambda cpus: tuple(sorted(set(cpus) & set(online.value or ()))))
    count = allowed.map(len) if allowed.value else online.map(len)
    quota = cgroup.cpu_quota(host)
    if quota.value is None or (count.value is not None and quota.value >= count.value):
        return count
    return quota.map(lambda cpus: max(1, math.floor(cpus)))


def _base_clock(host: Host, model: Fact[str]) -> Fact[float]:
    """Return the guaranteed clock in MHz: the frequency driver's, else ACPI CPPC's, else the model name's."""
    pstate = _kilohertz(host, "cpufreq/base_frequency", max)
    nominal = host.fact(f"{CPUS}/cpu0/acpi_cppc/nominal_freq", float)
    if nominal.value == 0:
        nominal = missing(nominal.source, "the firmware leaves it out")
    named = re.search(r"@ ([\d.]+)GHz", model.value or "")
    by_name = detected(float(named[1]) * 1000, "model name") if named else missing(CPUINFO, "not in the name")
    return pstate.or_else(nominal).or_else(by_name)


def _current_clock(host: Host) -> Fact[float]:
    """Return the mean of the cores' present clocks in MHz.

    /proc/cpuinfo comes first: the frequency files of a large server take milliseconds each.
    """

    def mean(text: str) -> float:
        clocks = [float(value) for value in re.findall(r"^cpu MHz\s*: ([\d.]+)", text, re.MULTILINE)]
        if not clocks:
            raise ValueError("no clocks")
        return sum(clocks) / len(clocks)

    listed = host.fact(CPUINFO, mean)
    if listed.value is not None:
        return listed
    return _kilohertz(host, "cpufreq/scaling_cur_freq", lambda clocks: sum(clocks) / len(clocks))


def _kilohertz(host: Host, name: str, combine: Callable[[list[float]], float]) -> Fact[float]:
    """Return one clock of every online CPU, combined, in MHz."""
    source = f"{CPUS}/cpu*/{name}"
    clocks = [host.integer(f"{CPUS}/cpu{cpu}/{name}") for cpu in online_cpus(host).value or ()]
    known = [clock.value / 1000 for clock in clocks if clock.value is not None]
    if known:
        return detected(combine(known), source)
    return missing(source, clocks[0].reason if clocks else "no CPUs listed")
