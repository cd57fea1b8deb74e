"""Main memory: what the machine and its control group have, and its modules."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from capacity_tui.engine.machine.facts import Fact, detected, difference, missing
from capacity_tui.engine.machine.machine import Memory, MemoryModule, MemoryModules
from capacity_tui.engine.machine.probing import Host, parse_pairs
from capacity_tui.engine.printable import printable
from capacity_tui.engine.record import dataclass

MEMINFO = "/proc/meminfo"


def probe_memory(host: Host) -> Memory:
    """Return what this process may use of main memory, and what the host has."""
    if host.system == "Darwin":
        return _macos_memory(host)
    host_total = meminfo(host, "MemTotal")
    host_available = meminfo(host, "MemAvailable").or_else(meminfo(host, "MemFree"))
    limit, host_used = memory_limit(host), difference(host_total, host_available)
    if limit.value is None or (host_total.value is not None and limit.value >= host_total.value):
        return Memory(host_total, host_available, limit, host_total, host_used)
    return Memory(limit, _within(limit.value, host_available, memory_used(host)), limit, host_total, host_used)


def shared_memory(memory: Memory) -> tuple[Fact[int], Fact[int], Fact[int]]:
    """Return total, free and used bytes of a device that has main memory for its own."""
    total, available = memory.total_bytes, memory.available_bytes
    return total, available, difference(total, available)


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
    return Memory(total, free, limit, total, difference(total, free))


def _free_pages(text: str) -> Fact[int]:
    """Return free, inactive and speculative pages in bytes, from what ``vm_stat`` prints."""
    pairs = parse_pairs(text)
    page = next((int(word) for word in text.splitlines()[0].split() if word.isdigit()), 4096)
    names = ("Pages free", "Pages inactive", "Pages speculative")
    return detected(sum(int(pairs.get(name, "0").rstrip(".")) for name in names) * page, "vm_stat")


NO_LIMIT_BYTES = 1 << 62  # version 1 shows "no limit" as the largest page-aligned 63-bit number
T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True)
class Group:
    """Directories of one controller, from this process's own group up to the mount's root."""

    version: int
    directories: tuple[str, ...]


def memory_limit(host: Host) -> Fact[int]:
    """Return the tightest memory limit in bytes on the way from this process's group to the root."""
    return _tightest(host, "memory", _memory_limit)


def memory_used(host: Host) -> Fact[int]:
    """Return the bytes charged to the limiting group less file cache that can be dropped at once."""
    limit = memory_limit(host)
    if limit.value is None:
        return missing(limit.source, limit.reason)
    directory, _, name = limit.source.rpartition("/")
    usage = host.integer(f"{directory}/{'memory.current' if name == 'memory.max' else 'memory.usage_in_bytes'}")
    droppable = host.fact(f"{directory}/memory.stat", _inactive_file).value or 0
    return usage.map(lambda used: max(0, used - droppable))


def cpu_quota(host: Host) -> Fact[float]:
    """Return the tightest CPU quota, in CPUs, on the way from this process's group to the root."""
    return _tightest(host, "cpu", _cpu_quota)


def version(host: Host) -> Fact[int]:
    """Return which cgroup version governs memory here."""
    group = _group(host, "memory")
    if group is None:
        return missing("/proc/self/mountinfo", "no control groups mounted")
    return detected(group.version, "/proc/self/mountinfo")


def _tightest(host: Host, controller: str, limit: Callable[[Host, int, str], Fact[T]]) -> Fact[T]:
    group = _group(host, controller)
    if group is None:
        return missing("/proc/self/mountinfo", f"no control group with the {controller} controller")
    limits = [limit(host, group.version, directory) for directory in group.directories]
    values = [(fact.value, fact) for fact in limits if fact.value is not None]
    if not values:
        return missing(limits[0].source, "no limit set")
    return min(values, key=lambda pair: pair[0])[1]


def _memory_limit(host: Host, version: int, directory: str) -> Fact[int]:
    name = "memory.max" if version == 2 else "memory.limit_in_bytes"
    return host.fact(f"{directory}/{name}", _parse_limit)


def _cpu_quota(host: Host, version: int, directory: str) -> Fact[float]:
    if version == 2:
        return host.fact(f"{directory}/cpu.max", _parse_quota)
    period = host.text(f"{directory}/cpu.cfs_period_us").value
    return host.fact(f"{directory}/cpu.cfs_quota_us", lambda quota: _parse_quota(f"{quota} {period}"))


def _parse_limit(text: str) -> int:
    """Return a limit in bytes; raises ValueError where there is none."""
    if not text.isdigit() or int(text) >= NO_LIMIT_BYTES:
        raise ValueError("no limit")
    return int(text)


def _parse_quota(text: str) -> float:
    """Return the CPUs that ``quota period`` allows; raises ValueError where there is no quota."""
    quota, _, period = text.partition(" ")
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        raise ValueError("no quota")  # "max", or -1
    return int(quota) / int(period)


def _inactive_file(text: str) -> int:
    counters = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
    return int(counters.get("total_inactive_file", counters.get("inactive_file", "0")))


def _group(host: Host, controller: str) -> Group | None:
    """Return the folder of a controller's files; version 1 wins when both know the controller."""
    paths = _group_paths(host)
    for kind, number, key in (("cgroup", 1, controller), ("cgroup2", 2, "")):
        mount = _mount(host, kind, controller)
        if mount is not None and key in paths:
            point, root = mount
            below = paths[key].removeprefix(root.rstrip("/")).strip("/")
            return Group(number, _upwards(point, below))
    return None


def _group_paths(host: Host) -> dict[str, str]:
    """Return this process's group for each version 1 controller, and for version 2 under ``""``."""
    paths: dict[str, str] = {}
    for line in (host.text("/proc/self/cgroup").value or "").splitlines():
        _, _, described = line.partition(":")
        controllers, colon, path = described.partition(":")
        if colon:  # a line without a path is damaged, and says nothing
            paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _mount(host: Host, kind: str, controller: str) -> tuple[str, str] | None:
    """Return mount point and mounted root of a control group file system that has the controller."""
    for line in (host.text("/proc/self/mountinfo").value or "").splitlines():
        before, _, after = line.partition(" - ")
        fields, described = before.split(), after.split()
        if len(fields) < 5 or len(described) < 3 or described[0] != kind:
            continue
        if kind == "cgroup2" and controller in (host.text(f"{fields[4]}/cgroup.controllers").value or "").split():
            return fields[4], fields[3]
        if kind == "cgroup" and controller in described[2].split(","):
            return fields[4], fields[3]
    return None


def _upwards(point: str, group: str) -> tuple[str, ...]:
    relative = PurePosixPath(group)
    return tuple(str(PurePosixPath(point) / part) for part in (relative, *relative.parents))


TABLES = "/sys/firmware/dmi/tables/DMI"
CONTROLLERS = "/sys/devices/system/edac/mc"
MEMORY_DEVICE, END_OF_TABLE = 17, 127  # SMBIOS structure types

# SMBIOS specification 3.7, table 77: memory types that computers of today have.
TYPES = {
    0x18: "DDR3",
    0x1A: "DDR4",
    0x1B: "LPDDR",
    0x1D: "LPDDR3",
    0x1E: "LPDDR4",
    0x20: "HBM",
    0x21: "HBM2",
    0x22: "DDR5",
    0x23: "LPDDR5",
    0x24: "HBM3",
}

MEBIBYTE, KIBIBYTE = 1 << 20, 1 << 10


def probe_memory_modules(host: Host) -> MemoryModules:
    """Return the modules, the channels they fill and the bandwidth those carry together in bytes a second."""
    modules = _from_firmware(host).or_else(_from_controllers(host))
    if modules.value is None:
        absent = missing(modules.source, modules.reason)
        return MemoryModules(absent, absent, absent)
    channels = len({module.channel for module in modules.value})
    return MemoryModules(modules, detected(channels, modules.source), _bandwidth(modules.value, modules.source))


def parse_memory_devices(table: bytes) -> tuple[MemoryModule, ...]:
    """Return the filled slots in an SMBIOS table; what the firmware leaves out is None."""
    modules = (_module(area, texts) for kind, area, texts in _structures(table) if kind == MEMORY_DEVICE)
    return tuple(module for module in modules if module is not None)


def _structures(table: bytes) -> Iterator[tuple[int, bytes, Sequence[str]]]:
    position = 0
    while position + 4 <= len(table):
        kind, length = table[position], table[position + 1]
        end = table.find(b"\0\0", position + length)
        if length < 4 or end < 0 or kind == END_OF_TABLE:
            return
        texts = table[position + length : end].split(b"\0")
        yield kind, table[position : position + length], [printable(text.decode("ascii", "replace")) for text in texts]
        position = end + 2


def _module(area: bytes, texts: Sequence[str]) -> MemoryModule | None:
    """Return one memory device; offsets as in SMBIOS specification 3.7, section 7.18."""
    size = _word(area, 0x0C)
    if not size or size == 0xFFFF:
        return None
    if size == 0x7FFF:  # too large for this field: in mebibytes, further down
        size_bytes = (struct.unpack_from("<I", area, 0x1C)[0] & 0x7FFFFFFF) * MEBIBYTE
    else:
        size_bytes = (size & 0x7FFF) * (KIBIBYTE if size & 0x8000 else MEBIBYTE)
    speed = _word(area, 0x20) or _word(area, 0x15)  # configured, else rated
    width = _word(area, 0x0A)
    slot, bank = _text(area, 0x10, texts), _text(area, 0x11, texts)
    kind = TYPES.get(area[0x12] if len(area) > 0x12 else 0, "memory")
    known_speed = speed if speed and speed != 0xFFFF else None
    return MemoryModule(
        size_bytes, kind, known_speed, width if width and width != 0xFFFF else None, _channel(slot, bank)
    )


def _channel(slot: str, bank: str) -> str:
    """Return the channel that slot names such as ``P0 CHANNEL A`` or ``ChannelA-DIMM0`` hold, else the slot itself."""
    for text in (bank, slot):
        node = re.search(r"\b(?:P|NODE|CPU|PROC)\s*_?(\d)", text, re.IGNORECASE)
        channel = re.search(r"CHANNEL\s*_?([A-Z0-9])|CH(\d)|DIMM_?([A-Z])\d", text, re.IGNORECASE)
        if channel:
            return f"{node[1] if node else 0}/{next(part for part in channel.groups() if part)}"
    return f"{slot} {bank}".strip()


def _word(area: bytes, offset: int) -> int | None:
    return int(struct.unpack_from("<H", area, offset)[0]) if len(area) >= offset + 2 else None


def _text(area: bytes, offset: int, texts: Sequence[str]) -> str:
    number = area[offset] if len(area) > offset else 0
    return texts[number - 1].strip() if 0 < number <= len(texts) else ""


def _from_firmware(host: Host) -> Fact[tuple[MemoryModule, ...]]:
    try:
        modules = parse_memory_devices(host.files.read(TABLES))
    except PermissionError:
        return missing(TABLES, "only root may read the firmware's tables")
    except (OSError, struct.error):
        return missing(TABLES, "this machine shows no firmware tables")
    return detected(modules, TABLES) if modules else missing(TABLES, "the firmware lists no modules")


def _from_controllers(host: Host) -> Fact[tuple[MemoryModule, ...]]:
    """Return the modules that memory controllers with error correction list; their speed is unknown."""
    modules = []
    for controller in host.names(CONTROLLERS):
        for name in host.names(f"{CONTROLLERS}/{controller}"):
            base = f"{CONTROLLERS}/{controller}/{name}"
            size = host.integer(f"{base}/size").value if re.fullmatch(r"(dimm|rank)\d+", name) else None
            if size:
                slot = host.text(f"{base}/dimm_location").value or name
                channel = re.search(r"channel (\d+)", slot)
                kind = (host.text(f"{base}/dimm_mem_type").value or "memory").rpartition("-")[2]
                where = f"{controller}/{channel[1] if channel else slot}"
                modules.append(MemoryModule(size * MEBIBYTE, kind, None, None, where))
    return (
        detected(tuple(modules), CONTROLLERS)
        if modules
        else missing(CONTROLLERS, "no memory controller lists its modules")
    )


def _bandwidth(modules: tuple[MemoryModule, ...], source: str) -> Fact[float]:
    """Return bytes a second of all channels: transfers a second times the width of one."""
    channels = {module.channel: module for module in modules}.values()
    if any(module.speed_mts is None or module.width_bits is None for module in channels):
        return missing(source, "speed or width of the modules is not reported")
    rates = ((module.speed_mts or 0) * 1e6 * (module.width_bits or 0) / 8 for module in channels)
    return detected(sum(rates), source)
