"""Swap space, and how fast what lies below it can be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.machine.facts import Fact, assumed, detected, missing
from capacity_tui.engine.machine.host.disk import device_kind
from capacity_tui.engine.machine.host.main_memory import meminfo
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Swap, SwapKind
from capacity_tui.engine.units import GIGA

RATES = "storage_tiers.yaml"
SWAPS = "/proc/swaps"
SLOWEST_FIRST: tuple[SwapKind, ...] = ("HDD", "file", "SSD", "NVMe", "compressed memory")


def probe_swap(host: Host) -> Swap:
    """Return total and free swap space in bytes, and the kind of what it lies on."""
    if host.system == "Darwin":
        usage = host.command("sysctl", "-n", "vm.swapusage")
        total, free = _macos_swap(usage, "total"), _macos_swap(usage, "free")
        kind: Fact[SwapKind] = detected("file", "macOS swaps to files on its system disk")
        return Swap(total, free, kind, _bandwidth(kind))
    kind = _kind(host)
    return Swap(meminfo(host, "SwapTotal"), meminfo(host, "SwapFree"), kind, _bandwidth(kind))


def _bandwidth(kind: Fact[SwapKind]) -> Fact[float]:
    """Return what such a disk usually reads in any order, as pages come back."""
    if kind.value is None:
        return missing(kind.source, kind.reason)
    rate = _usual_rates().get(kind.value)
    if rate is None:
        return missing(f"profiles/{RATES}", f"no usual rate of {kind.value}")
    return assumed(rate, f"what {kind.value} disks usually reads in any order (profiles/{RATES})")


@lru_cache(maxsize=1)
def _usual_rates() -> Mapping[str, float]:
    """Return bytes a second by kind of disk."""
    rows: Mapping[str, Mapping[str, object]] = parse_shipped(files("capacity_tui.profiles") / RATES)
    return {
        str(row["disk_kind"]): float(str(row["any_order_gbs"])) * GIGA for row in rows.values() if "disk_kind" in row
    }


def _kind(host: Host) -> Fact[SwapKind]:
    lines = (line.split() for line in (host.text(SWAPS).value or "").splitlines()[1:])
    areas = [words for words in lines if len(words) >= 3]
    if not areas:
        return missing(SWAPS, "no swap space")
    kinds = [_area_kind(host, device, kind) for device, kind, *_ in areas]
    known = [kind for kind in kinds if kind is not None]
    if not known:
        return missing(SWAPS, "the kind of the disk below is not known")
    return detected(min(known, key=SLOWEST_FIRST.index), SWAPS)


def _area_kind(host: Host, device: str, kind: str) -> SwapKind | None:
    name = device.rpartition("/")[2]
    if name.startswith("zram"):
        return "compressed memory"
    if kind == "file":
        return "file"
    disk = device_kind(host, device).value
    return disk if disk in ("NVMe", "SSD", "HDD") else None


def _macos_swap(usage: Fact[str], key: str) -> Fact[int]:
    """Return one value of ``total = 2048.00M  used = ...  free = ...`` in bytes."""
    if usage.value is None:
        return missing(usage.source, usage.reason)
    words = usage.value.replace("=", " ").split()
    if key not in words[:-1]:
        return missing(usage.source, f"no {key} in the answer")
    return detected(int(float(words[words.index(key) + 1].rstrip("M")) * 1024 * 1024), usage.source)
