"""Limits that control groups set on this process: version 1, version 2, and both mounted at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host

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
    """Return where a controller's files lie; version 1 wins when both know the controller."""
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
        if kind == "cgroup2" and _has_controller(host, fields[4], controller):
            return fields[4], fields[3]
        if kind == "cgroup" and controller in described[2].split(","):
            return fields[4], fields[3]
    return None


def _has_controller(host: Host, point: str, controller: str) -> bool:
    return controller in (host.text(f"{point}/cgroup.controllers").value or "").split()


def _upwards(point: str, group: str) -> tuple[str, ...]:
    relative = PurePosixPath(group)
    return tuple(str(PurePosixPath(point) / part) for part in (relative, *relative.parents))
