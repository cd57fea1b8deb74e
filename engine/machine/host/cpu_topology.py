"""Sockets, cores by kind, NUMA nodes and caches, as the kernel lays them out in sysfs."""

from __future__ import annotations

import re
from collections import Counter

from capacity_tui.engine.machine.cpu_list import parse_cpu_list
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Cache, NumaNode

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
