"""A profile as plain data and JSON, under the names that scripts rely on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict

from capacity_tui.engine.observe.profile.latency import Latency
from capacity_tui.engine.observe.profile.profile import Profile, ProfilingSummary
from capacity_tui.engine.observe.profile.snapshots import GPU_NUMBERS, ResourceSnapshot
from capacity_tui.engine.observe.profile.stages import Stage
from capacity_tui.engine.observe.profile.usage import GpuUsage

NOT_COUNTED = "nobody said how many samples were done: --samples, or done() in Python"
NOT_ASKED = "no endpoint was named: --url"


def profile_as_json(profile: Profile) -> str:
    """Return a profile as JSON."""
    return json.dumps(profile_as_dict(profile), indent=2, allow_nan=False) + "\n"


def profile_as_dict(profile: Profile) -> dict[str, object]:
    """Return a profile as plain data; a number that could not be had is None, and ``missing`` says why."""
    summary, ended = profile.summary, profile.ended
    return {
        "command": list(profile.command),
        "exit_code": ended.exit_code if ended else None,
        "signal": ended.signal if ended else None,
        "seconds": summary.duration_seconds,
        "interval": summary.interval,
        "samples": summary.usage.snapshots,
        "summary": summary_as_dict(summary),
        "stages": [_stage(stage) for stage in summary.stages],
        "bottleneck": asdict(summary.bottleneck),
        "missing": missing_of(summary),
        "problems": list(profile.problems),
        "timeline": [snapshot_as_dict(snapshot) for snapshot in profile.timeline],
    }


def summary_as_dict(summary: ProfilingSummary) -> dict[str, object]:
    """Return what a run came to as plain data."""
    usage = summary.usage
    return {
        "peak_memory_bytes": _whole(usage.peak_memory_bytes),
        "average_memory_bytes": _whole(usage.mean("memory_bytes")),
        "memory_bytes_per_sample": summary.memory_bytes_per_sample,
        "memory_growth_bytes_per_sample": summary.memory_growth_bytes_per_sample,
        "work_samples": summary.samples,
        "work_samples_per_second": summary.samples_per_second,
        "processes_peak": _whole(usage.peak("processes")),
        "threads_peak": _whole(usage.peak("threads")),
        "cpu_seconds": usage.totals["cpu_seconds"],
        "cpu_average_percent": summary.cpu_avg_percent,
        "cpu_peak_percent": summary.cpu_peak_percent,
        "cpu_per_core": list(usage.cores or ()),
        "disk": {
            "read_bytes": _whole(usage.totals["read_bytes"]),
            "written_bytes": _whole(usage.totals["written_bytes"]),
            "read_operations": _whole(usage.totals["read_operations"]),
            "write_operations": _whole(usage.totals["write_operations"]),
            "read_bytes_per_second": usage.mean("read_bytes_per_second"),
            "write_bytes_per_second": usage.mean("write_bytes_per_second"),
            "peak_read_bytes_per_second": usage.peak("read_bytes_per_second"),
            "peak_write_bytes_per_second": usage.peak("write_bytes_per_second"),
            "system": {
                "read_bytes": _whole(usage.system_totals["disk_read"]),
                "written_bytes": _whole(usage.system_totals["disk_written"]),
                "read_operations": _whole(usage.system_totals["disk_reads"]),
                "write_operations": _whole(usage.system_totals["disk_writes"]),
                "read_bytes_per_second": usage.mean("disk_read_bytes_per_second"),
                "write_bytes_per_second": usage.mean("disk_write_bytes_per_second"),
            },
        },
        "network": {
            "received_bytes": _whole(usage.system_totals["received"]),
            "sent_bytes": _whole(usage.system_totals["sent"]),
            "packets_received": _whole(usage.system_totals["packets_received"]),
            "packets_sent": _whole(usage.system_totals["packets_sent"]),
            "receive_bytes_per_second": usage.mean("network_receive_bytes_per_second"),
            "send_bytes_per_second": usage.mean("network_send_bytes_per_second"),
            "peak_receive_bytes_per_second": usage.peak("network_receive_bytes_per_second"),
            "peak_send_bytes_per_second": usage.peak("network_send_bytes_per_second"),
        },
        "system": {
            "cpu_average_percent": usage.mean("system_cpu_percent"),
            "cpu_peak_percent": usage.peak("system_cpu_percent"),
            "memory_total_bytes": _whole(usage.mean("system_memory_total_bytes")),
            "memory_used_peak_bytes": _whole(usage.peak("system_memory_used_bytes")),
        },
        "latency_ms": summary.network_latency_ms,
        "latency": _latency(summary.latency) if summary.latency else None,
        "gpus": [_gpu(gpu) for gpu in usage.gpus],
    }


def snapshot_as_dict(snapshot: ResourceSnapshot) -> dict[str, object]:
    """Return one moment of a run as plain data."""
    return {name: _finite(value) for name, value in asdict(snapshot).items()}


def missing_of(summary: ProfilingSummary) -> dict[str, str]:
    """Return why anything of a profile could not be had, by name."""
    missing = dict(summary.usage.reasons)
    if summary.samples is None:
        missing["memory_bytes_per_sample"] = NOT_COUNTED
    if summary.latency is None:
        missing["latency_ms"] = NOT_ASKED
    elif summary.latency.mean_ms is None:
        missing["latency_ms"] = summary.latency.last_failure or "not answered yet"
    return missing


def _stage(stage: Stage) -> dict[str, object]:
    return {**asdict(stage), "samples_per_second": stage.samples_per_second}


def _latency(latency: Latency) -> dict[str, object]:
    connect, trip = latency.connect_ms, latency.round_trip_ms
    return {
        "url": latency.url,
        "asked": latency.asked,
        "failed": latency.failed,
        "status": latency.status,
        "connect_ms": {"p50": connect[0], "p95": connect[1]} if connect else None,
        "round_trip_ms": {"p50": trip[0], "p95": trip[1]} if trip else None,
        "last_failure": latency.last_failure,
    }


def _gpu(gpu: GpuUsage) -> dict[str, object]:
    numbers: Mapping[str, object] = {
        name: {"average": gpu.numbers[name].mean, "peak": gpu.numbers[name].peak} for name in GPU_NUMBERS
    }
    return {"index": gpu.index, **numbers, "throttled": dict(gpu.throttled)}


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
