"""Main memory and swap, with a container's limit as the truth where one is set."""

from __future__ import annotations

from capacity_tui.engine.hardware import cgroup
from capacity_tui.engine.hardware.facts import Fact, detected, missing
from capacity_tui.engine.hardware.host import Host, parse_pairs
from capacity_tui.engine.hardware.machine import Memory, Swap

MEMINFO = "/proc/meminfo"


def probe_memory(host: Host) -> Memory:
    """Return what this process may use of main memory, and what the host has."""
    if host.system == "Darwin":
        return _macos_memory(host)
    host_total = _meminfo(host, "MemTotal")
    host_available = _meminfo(host, "MemAvailable").or_else(_meminfo(host, "MemFree"))
    limit = cgroup.memory_limit(host)
    if limit.value is None or (host_total.value is not None and limit.value >= host_total.value):
        return Memory(host_total, host_available, limit, host_total)
    return Memory(limit, _within(limit.value, host_available, cgroup.memory_used(host)), limit, host_total)


def probe_swap(host: Host) -> Swap:
    """Return total and free swap space in bytes."""
    if host.system == "Darwin":
        usage = host.command("sysctl", "-n", "vm.swapusage")
        return Swap(_macos_swap(usage, "total"), _macos_swap(usage, "free"))
    return Swap(_meminfo(host, "SwapTotal"), _meminfo(host, "SwapFree"))


def _within(limit: int, available: Fact[int], used: Fact[int]) -> Fact[int]:
    """Return what is left under the group's limit, and never more than the host has left."""
    if used.value is None:
        return missing(used.source, used.reason)
    left = max(0, limit - used.value)
    if available.value is not None and available.value < left:
        return available
    return detected(left, used.source)


def _meminfo(host: Host, key: str) -> Fact[int]:
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
    return Memory(total, _free_pages(statistics.value) if statistics.value else available, limit, total)


def _free_pages(text: str) -> Fact[int]:
    """Return free, inactive and speculative pages in bytes, from what ``vm_stat`` prints."""
    pairs = parse_pairs(text)
    page = next((int(word) for word in text.splitlines()[0].split() if word.isdigit()), 4096)
    names = ("Pages free", "Pages inactive", "Pages speculative")
    return detected(sum(int(pairs.get(name, "0").rstrip(".")) for name in names) * page, "vm_stat")


def _macos_swap(usage: Fact[str], key: str) -> Fact[int]:
    """Return one value of ``total = 2048.00M  used = ...  free = ...`` in bytes."""
    if usage.value is None:
        return missing(usage.source, usage.reason)
    words = usage.value.replace("=", " ").split()
    if key not in words[:-1]:
        return missing(usage.source, f"no {key} in the answer")
    return detected(int(float(words[words.index(key) + 1].rstrip("M")) * 1024 * 1024), usage.source)
