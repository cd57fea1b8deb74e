"""The GPU of Apple silicon, which shares main memory, through system_profiler."""

from __future__ import annotations

import json
from dataclasses import replace

from capacity_tui.engine.machine.device_names import match_accelerator
from capacity_tui.engine.machine.facts import Fact, assumed, detected
from capacity_tui.engine.machine.generations import unified_shares
from capacity_tui.engine.machine.host.main_memory import probe_memory
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Accelerator, unknown_accelerator
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.vendors.vendor import FoundDevices

VENDOR = "Apple"
WIRED_LIMIT = "iogpu.wired_limit_mb"
PROFILER = ("system_profiler", "SPDisplaysDataType", "-json")


def probe_apple_gpu(host: Host) -> FoundDevices:
    """Return the GPU of Apple silicon; raises NotPresentError elsewhere."""
    if host.system != "Darwin":
        raise NotPresentError("not a Mac")
    report = host.command(*PROFILER)
    if report.value is None:
        raise NotPresentError(report.reason)
    chips = [_accelerator(host, index, entry) for index, entry in enumerate(_displays(report.value))]
    if not chips:
        raise NotPresentError("no Apple GPU in this Mac")
    return FoundDevices(tuple(chips))


def _accelerator(host: Host, index: int, entry: dict[str, str]) -> Accelerator:
    source = " ".join(PROFILER)
    name = f"{entry['sppci_model']} ({entry.get('sppci_cores', '?')}-core GPU)"
    memory = probe_memory(host)
    limit = _wired_limit(host, memory.total_bytes)
    free = memory.available_bytes.map(lambda left: min(left, limit.value) if limit.value else left)
    return replace(
        unknown_accelerator(index, VENDOR, source, "macOS does not tell"),
        name=detected(name, source),
        catalogue_id=match_accelerator(name, None),
        memory_total_bytes=limit,
        memory_free_bytes=free,
        runtime=detected(entry.get("spdisplays_mtlgpufamilysupport", "Metal"), source),
        integrated=detected(True, source),
        visible=detected(True, source),
    )


def _wired_limit(host: Host, total: Fact[int]) -> Fact[int]:
    """Return the bytes of main memory that Metal may hold: what the user set, else macOS's own share."""
    given = host.command("sysctl", "-n", WIRED_LIMIT)
    if given.value and given.value.strip().isdigit() and int(given.value) > 0:
        return detected(int(given.value) << 20, f"sysctl {WIRED_LIMIT}")
    if total.value is None:
        return total
    share = next(
        row.share for row in unified_shares() if row.up_to_bytes is None or (total.value or 0) <= row.up_to_bytes
    )
    return assumed(int(total.value * share), f"macOS's share for the GPU, {share:.0%}; sysctl {WIRED_LIMIT} changes it")


def _displays(text: str) -> list[dict[str, str]]:
    try:
        entries = json.loads(text).get("SPDisplaysDataType", [])
    except (ValueError, AttributeError):
        return []
    return [entry for entry in entries if str(entry.get("sppci_model", "")).startswith("Apple")]
