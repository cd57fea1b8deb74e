"""The processors: model, cores by kind, clocks, and what affinity and quotas leave this process."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from capacity_tui.engine.machine import main_memory
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.known_devices import device_names, match_cpu, parse_cpu_list
from capacity_tui.engine.machine.machine import Cache, Cpu, NumaNode
from capacity_tui.engine.machine.probing import Host, parse_pairs

if TYPE_CHECKING:
    from archspec.cpu import Microarchitecture


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
    quota = main_memory.cpu_quota(host)
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


IMPLIED = frozenset({"sse3"})  # the kernel calls it pni; every x86-64 CPU since 2004 has it
SVE_LENGTH = "/proc/sys/abi/sve_default_vector_length"
FAMILIES = {"arm64": "aarch64", "AMD64": "x86_64"}  # uname's names where archspec has another


def feature_flags(pairs: dict[str, str]) -> frozenset[str]:
    """Return the flags of x86, or the features of ARM, from the pairs of /proc/cpuinfo."""
    return frozenset((pairs.get("flags") or pairs.get("Features") or "").split())


def simd_names(flags: frozenset[str]) -> Fact[tuple[str, ...]]:
    """Return the usual names of the instruction sets that matter for machine learning."""
    if not flags:
        return missing(CPUINFO, "no feature flags listed")
    return detected(tuple(entry.name for entry in device_names().simd if entry.flag in flags), CPUINFO)


def simd_bits(host: Host, flags: frozenset[str]) -> Fact[int]:
    """Return the width of the widest vectors in bits; SVE's length is the kernel's."""
    if "sve" in flags:
        length = host.integer(SVE_LENGTH).map(lambda count: count * 8)
        if length.value is not None:
            return length
    widths = [entry.bits for entry in device_names().simd if entry.flag in flags and entry.bits]
    return detected(max(widths), CPUINFO) if widths else missing(CPUINFO, "no vector instructions listed")


def microarchitecture(host: Host, pairs: dict[str, str]) -> Fact[str]:
    """Return the microarchitecture by the processor's numbers; else the newest all of whose features are here."""
    numbers = [pairs.get(key, "") for key in ("cpu family", "model", "stepping")]
    if all(number.isdigit() for number in numbers):
        family, model, stepping = map(int, numbers)
        rows = device_names().x86_models
        known = next((row for row in rows if row.fits(pairs.get("vendor_id", ""), family, model, stepping)), None)
        if known is not None:
            return detected(known.name, "family, model and stepping in /proc/cpuinfo")
    return _by_features(host, pairs)


def _by_features(host: Host, pairs: dict[str, str]) -> Fact[str]:
    from archspec.cpu import TARGETS  # noqa: PLC0415 - 20 ms, in a probe's own thread
    from archspec.cpu.schema import TARGETS_JSON  # noqa: PLC0415

    root = FAMILIES.get(host.architecture, host.architecture)
    implementer = pairs.get("CPU implementer", "")
    vendor = TARGETS_JSON["conversions"]["arm_vendors"].get(implementer) or pairs.get("vendor_id", "generic")
    flags, part = feature_flags(pairs) | IMPLIED, pairs.get("CPU part", "")
    family = [target for target in TARGETS.values() if target.family.name == root]
    fitting = [target for target in family if target.vendor in (vendor, "generic")]
    fitting = [target for target in fitting if target.features <= flags]
    named = [target for target in fitting if part and target.cpu_part == part]
    generic = [target for target in fitting if target.vendor == "generic" and not target.cpu_part]
    if not generic or flags == IMPLIED:
        return missing("archspec", f"no known microarchitecture of the {root} family fits the flags")
    level = max(generic, key=_age)
    newest = max(named or [target for target in fitting if level in target.ancestors] or [level], key=_age)
    return detected(str(newest.name), "archspec, from the flags in /proc/cpuinfo")


def _age(target: Microarchitecture) -> tuple[int, int]:
    return len(target.ancestors), len(target.features)


CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"
SAME_KIND = "the cores are all of one kind"
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def online_cpus(host: Host) -> Fact[tuple[int, ...]]:
    """Return the numbers of the logical CPUs that are switched on."""
    listed = host.fact(f"{CPUS}/online", parse_cpu_list)
    return listed.or_else(host.fact("/proc/cpuinfo", _processors))


def socket_count(host: Host) -> Fact[int]:
    """Return the number of physical packages."""
    packages = {_topology(host, cpu, "physical_package_id") for cpu in online_cpus(host).value or ()}
    source = f"{CPUS}/cpu*/topology/physical_package_id"
    known = {package for package in packages if package not in (None, "-1")}
    if known:
        return detected(len(known), source)
    return host.fact("/proc/cpuinfo", lambda text: _distinct(text, r"^physical id\s*:\s*(\d+)"))


def core_counts(host: Host) -> tuple[Fact[int], Fact[int], Fact[int]]:
    """Return physical cores in all, performance cores and efficiency cores."""
    cores = {siblings[0]: cpu for cpu in online_cpus(host).value or () if (siblings := _siblings(host, cpu))}
    if not cores:
        reason = "the kernel lists no sibling threads"
        absent = missing(f"{CPUS}/cpu*/topology", reason)
        return absent, absent, absent
    total = detected(len(cores), f"{CPUS}/cpu*/topology/thread_siblings_list")
    efficient = _efficiency_cpus(host)
    if efficient.value is None:
        return total, missing(efficient.source, efficient.reason), missing(efficient.source, efficient.reason)
    slow = sum(first in efficient.value for first in cores)
    return total, detected(len(cores) - slow, efficient.source), detected(slow, efficient.source)


def numa_nodes(host: Host) -> Fact[tuple[NumaNode, ...]]:
    """Return the NUMA nodes with their logical CPUs and memory in bytes."""
    unsorted = []
    for name in host.names(NODES):
        if re.fullmatch(r"node\d+", name):
            cpus = host.fact(f"{NODES}/{name}/cpulist", parse_cpu_list).value or ()
            memory = host.fact(f"{NODES}/{name}/meminfo", _node_memory).value
            unsorted.append(NumaNode(int(name.removeprefix("node")), cpus, memory))
    nodes = tuple(sorted(unsorted, key=lambda node: node.index))
    return detected(nodes, NODES) if nodes else missing(NODES, "the kernel lists no NUMA nodes")


def caches(host: Host) -> Fact[tuple[Cache, ...]]:
    """Return the caches, equal ones counted together, from level 1 outwards."""
    seen: set[tuple[int, str, int, str]] = set()
    for cpu in online_cpus(host).value or ():
        base = f"{CPUS}/cpu{cpu}/cache"
        for index in host.names(base):
            entry = _cache(host, f"{base}/{index}") if index.startswith("index") else None
            if entry is not None:
                seen.add(entry)
    counted = Counter((level, kind, size) for level, kind, size, _ in seen)
    result = tuple(Cache(level, kind, size, count) for (level, kind, size), count in sorted(counted.items()))
    source = f"{CPUS}/cpu*/cache"
    return detected(result, source) if result else missing(source, "the kernel lists no caches")


def _efficiency_cpus(host: Host) -> Fact[frozenset[int]]:
    """Return the CPUs of the weaker kind: Intel's atom list, else those below the largest capacity."""
    atoms = host.fact("/sys/devices/cpu_atom/cpus", parse_cpu_list)
    if atoms.value is not None:
        return atoms.map(frozenset)
    source = f"{CPUS}/cpu*/cpu_capacity"
    capacities = {cpu: host.integer(f"{CPUS}/cpu{cpu}/cpu_capacity").value for cpu in online_cpus(host).value or ()}
    known = {cpu: capacity for cpu, capacity in capacities.items() if capacity is not None}
    largest = max(known.values(), default=0)
    weaker = frozenset(cpu for cpu, capacity in known.items() if capacity < largest)
    return detected(weaker, source) if weaker else missing(source, SAME_KIND)


def _siblings(host: Host, cpu: int) -> tuple[int, ...]:
    text = _topology(host, cpu, "thread_siblings_list")
    return parse_cpu_list(text) if text else ()


def _topology(host: Host, cpu: int, name: str) -> str | None:
    return host.text(f"{CPUS}/cpu{cpu}/topology/{name}").value


def _cache(host: Host, base: str) -> tuple[int, str, int, str] | None:
    level, kind = host.integer(f"{base}/level").value, host.text(f"{base}/type").value
    size, shared = host.fact(f"{base}/size", _cache_size).value, host.text(f"{base}/shared_cpu_list").value
    if level is None or kind is None or size is None:
        return None
    return level, kind.lower(), size, shared or ""


def _cache_size(text: str) -> int:
    return int(text.rstrip("KMG")) * UNITS.get(text[-1], 1)


def _node_memory(text: str) -> int:
    match = re.search(r"MemTotal:\s+(\d+) kB", text)
    if not match:
        raise ValueError("no MemTotal")
    return int(match[1]) * 1024


def _processors(text: str) -> tuple[int, ...]:
    numbers = tuple(int(number) for number in re.findall(r"^processor\s*: (\d+)", text, re.MULTILINE))
    if not numbers:
        raise ValueError("no processors")
    return numbers


def _distinct(text: str, pattern: str) -> int:
    values = set(re.findall(pattern, text, re.MULTILINE))
    if not values:
        raise ValueError("none listed")
    return len(values)
