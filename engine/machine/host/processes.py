"""Who holds memory: processes in main memory, and whether those on a GPU are this user's own."""

from __future__ import annotations

import os
import re

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host, parse_pairs
from capacity_tui.engine.machine.machine import GpuProcess, Process

SHOWN = 5
WORTH_NAMING_BYTES = 1 << 30  # below this a process makes no difference to a plan


def probe_processes(host: Host) -> Fact[tuple[Process, ...]]:
    """Return the processes that hold most main memory, largest first; small ones are left out."""
    pids = [name for name in host.names("/proc") if name.isdigit()]
    if not pids:
        return missing("/proc", "this system lists its processes elsewhere")
    processes = [process for pid in pids if (process := _process(host, int(pid)))]
    large = [process for process in processes if process.memory_bytes >= WORTH_NAMING_BYTES]
    return detected(tuple(sorted(large, key=lambda process: -process.memory_bytes)[:SHOWN]), "/proc/*/status")


def gpu_process(host: Host, pid: int, memory: Fact[int]) -> GpuProcess:
    """Return a process that holds device memory, with its name and whether it is this user's."""
    return GpuProcess(pid, host.text(f"/proc/{pid}/comm"), memory, host.fact(f"/proc/{pid}/status", _is_same_user))


def _process(host: Host, pid: int) -> Process | None:
    status = host.text(f"/proc/{pid}/status").value
    resident = re.search(r"^VmRSS:\s+(\d+) kB", status or "", re.MULTILINE)
    if status is None or resident is None:
        return None
    return Process(pid, parse_pairs(status).get("Name", "?"), int(resident[1]) * 1024, _is_same_user(status))


def _is_same_user(status: str) -> bool:
    """Return whether the real user of a process is this one, from its status file."""
    user = parse_pairs(status).get("Uid", "").split()
    if not user:
        raise ValueError("no user listed")
    return int(user[0]) == os.getuid()
