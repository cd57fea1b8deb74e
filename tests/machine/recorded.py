"""Recorded machines, whose files of /proc and /sys are written below a directory that stands for the root."""

from __future__ import annotations

from dataclasses import replace
from os.path import normpath
from pathlib import Path

from capacity_tui.engine.machine import Host, recorded_host
from capacity_tui.engine.machine.probing import Space
from capacity_tui.engine.machine.recording import recorded_parts

RECORDINGS = Path(__file__).with_name("recordings")
GIB = 1 << 30


def replay(name: str, root: Path, architecture: str = "x86_64", **host: object) -> Host:
    """Write a recording below ``root`` and return the machine it stands for, with much room on every disk."""
    text = (RECORDINGS / f"{name}.txt").read_text()
    files, _, links = recorded_parts(text)
    for link, target in links.items():
        place = root / link.lstrip("/")
        led = root / target.lstrip("/") if target.startswith("/") else Path(normpath(place.parent / target))
        led.mkdir(parents=True, exist_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(led)
    for path, content in files.items():
        write(root, path, content.removesuffix("\n"))
    return replace(recorded_host(text), root=root, recorded=None, architecture=architecture, **{"space": roomy, **host})


def write(root: Path, path: str, text: str) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + "\n")


def write_cpus(root: Path, *, sockets: int, cores: int, nodes: int) -> None:
    """Write the per-CPU files of a machine with two threads a core and ``cores`` a socket."""
    total = sockets * cores
    for thread in range(2 * total):
        core = thread % total
        base = f"/sys/devices/system/cpu/cpu{thread}"
        write(root, f"{base}/topology/physical_package_id", str(core // cores))
        write(root, f"{base}/topology/thread_siblings_list", f"{core},{core + total}")
        write(root, f"{base}/cpufreq/cpuinfo_max_freq", "3500000")
        write(root, f"{base}/cache/index3/level", "3")
        write(root, f"{base}/cache/index3/type", "Unified")
        write(root, f"{base}/cache/index3/size", "32768K")
        write(root, f"{base}/cache/index3/shared_cpu_list", str(core // 8))
    width = total // nodes
    for node in range(nodes):
        first = node * width
        listed = f"{first}-{first + width - 1},{first + total}-{first + total + width - 1}"
        write(root, f"/sys/devices/system/node/node{node}/cpulist", listed)
        write(root, f"/sys/devices/system/node/node{node}/meminfo", f"Node {node} MemTotal: 264175625 kB")


def roomy(mount: str) -> Space:
    return Space(1000 * GIB, 400 * GIB)
