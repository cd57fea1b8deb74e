"""Swap space, and how fast what lies below it can be."""

from __future__ import annotations

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host.disk import device_kind
from capacity_tui.engine.machine.host.main_memory import meminfo
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Swap, SwapKind

SWAPS = "/proc/swaps"
SLOWEST_FIRST: tuple[SwapKind, ...] = ("HDD", "file", "SSD", "NVMe", "compressed memory")


def probe_swap(host: Host) -> Swap:
    """Return total and free swap space in bytes, and the kind of what it lies on."""
    if host.system == "Darwin":
        usage = host.command("sysctl", "-n", "vm.swapusage")
        total, free = _macos_swap(usage, "total"), _macos_swap(usage, "free")
        return Swap(total, free, detected("file", "macOS swaps to files on its system disk"))
    return Swap(meminfo(host, "SwapTotal"), meminfo(host, "SwapFree"), _kind(host))


def _kind(host: Host) -> Fact[SwapKind]:
    lines = (line.split() for line in (host.text(SWAPS).value or "").splitlines()[1:])
    areas = [words for words in lines if len(words) >= 3]
    if not areas:
        return missing(SWAPS, "no swap space")
    kinds = [_area_kind(host, device, kind) for device, kind, *_ in areas]
    told = [kind for kind in kinds if kind is not None]
    if not told:
        return missing(SWAPS, "the kind of the disk below is not known")
    return detected(min(told, key=SLOWEST_FIRST.index), SWAPS)


def _area_kind(host: Host, device: str, kind: str) -> SwapKind | None:
    name = device.rpartition("/")[2]
    if name.startswith("zram"):
        return "compressed memory"
    if kind == "file":
        return "file"
    found = device_kind(host, device).value
    return found if found in ("NVMe", "SSD", "HDD") else None


def _macos_swap(usage: Fact[str], key: str) -> Fact[int]:
    """Return one value of ``total = 2048.00M  used = ...  free = ...`` in bytes."""
    if usage.value is None:
        return missing(usage.source, usage.reason)
    words = usage.value.replace("=", " ").split()
    if key not in words[:-1]:
        return missing(usage.source, f"no {key} in the answer")
    return detected(int(float(words[words.index(key) + 1].rstrip("M")) * 1024 * 1024), usage.source)
