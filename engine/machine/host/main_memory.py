"""Main memory, with a container's limit as the truth where one is set."""

from __future__ import annotations

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host import cgroup
from capacity_tui.engine.machine.host_files import Host, parse_pairs
from capacity_tui.engine.machine.machine import Memory

MEMINFO = "/proc/meminfo"


def probe_memory(host: Host) -> Memory:
    """Return what this process may use of main memory, and what the host has."""
    if host.system == "Darwin":
        return _macos_memory(host)
    host_total = meminfo(host, "MemTotal")
    host_available = meminfo(host, "MemAvailable").or_else(meminfo(host, "MemFree"))
    limit, held = cgroup.memory_limit(host), _held(host_total, host_available)
    if limit.value is None or (host_total.value is not None and limit.value >= host_total.value):
        return Memory(host_total, host_available, limit, host_total, held)
    return Memory(limit, _within(limit.value, host_available, cgroup.memory_used(host)), limit, host_total, held)


def shared_memory(memory: Memory) -> tuple[Fact[int], Fact[int], Fact[int]]:
    """Return total, free and used bytes of a device that has main memory for its own."""
    available = memory.available_bytes
    if available.value is None:
        return memory.total_bytes, available, available
    left = available.value
    return memory.total_bytes, available, memory.total_bytes.map(lambda total: total - left)


def _held(total: Fact[int], available: Fact[int]) -> Fact[int]:
    """Return what is not there for a new program."""
    left = available.value
    return missing(available.source, available.reason) if left is None else total.map(lambda size: size - left)


def _within(limit: int, available: Fact[int], used: Fact[int]) -> Fact[int]:
    """Return what is left under the group's limit, and never more than the host has left."""
    if used.value is None:
        return missing(used.source, used.reason)
    left = max(0, limit - used.value)
    if available.value is not None and available.value < left:
        return available
    return detected(left, used.source)


def meminfo(host: Host, key: str) -> Fact[int]:
    """Return one entry of /proc/meminfo in bytes."""

    def parse(text: str) -> int:
        pairs = parse_pairs(text)
        if key not in pairs:
            raise ValueError(key)
        return int(pairs[key].removesuffix("kB")) * 1024

    return host.fact(MEMINFO, parse)


def _macos_memory(host: Host) -> Memory:
    total = host.command("sysctl", "-n", "hw.memsize").map(int)
    statistics = host.command("vm_stat")
    available = missing(statistics.source, statistics.reason or "no page counts")
    limit = missing("macOS", "macOS sets no memory limits on groups of processes")
    free = _free_pages(statistics.value) if statistics.value else available
    return Memory(total, free, limit, total, _held(total, free))


def _free_pages(text: str) -> Fact[int]:
    """Return free, inactive and speculative pages in bytes, from what ``vm_stat`` prints."""
    pairs = parse_pairs(text)
    page = next((int(word) for word in text.splitlines()[0].split() if word.isdigit()), 4096)
    names = ("Pages free", "Pages inactive", "Pages speculative")
    return detected(sum(int(pairs.get(name, "0").rstrip(".")) for name in names) * page, "vm_stat")
