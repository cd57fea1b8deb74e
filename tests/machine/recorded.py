"""Recorded machines: files of /proc and /sys as text, written below a directory that stands for the root."""

from __future__ import annotations

from pathlib import Path

from capacity_tui.engine.machine.host_files import Host, Space

RECORDINGS = Path(__file__).with_name("recordings")
GIB = 1 << 30


def replay(name: str, root: Path, architecture: str = "x86_64", **host: object) -> Host:
    """Write a recording below ``root`` and return the machine it stands for.

    ``=== path`` starts a file, ``$ command`` what commands that start so print, ``--> path target`` makes a symbolic
    link; what stands before is a comment.
    """
    content: dict[str, list[str]] = {}
    answers: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (RECORDINGS / f"{name}.txt").read_text().splitlines():
        if line.startswith("=== "):
            lines = content[line.removeprefix("=== ")] = []
        elif line.startswith("$ "):
            lines = answers[line.removeprefix("$ ")] = []
        elif line.startswith("--> "):
            link, target = line.split()[1:]
            place = root / link.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)
        else:
            lines.append(line)
    for path, lines in content.items():
        write(root, path, "\n".join(lines))

    def run(words: tuple[str, ...], seconds: float) -> str:
        command = " ".join(words)
        told = [answer for start, answer in answers.items() if command.startswith(start)]
        if not told:
            raise FileNotFoundError(words[0])
        return "\n".join(max(told, key=len))

    settings: dict[str, object] = {"system": "Linux", "environment": {}, "run": run, "space": roomy}
    return Host(root=root, architecture=architecture, **{**settings, **host})  # type: ignore[arg-type]


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
