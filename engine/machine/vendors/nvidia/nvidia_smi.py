"""NVIDIA GPUs as nvidia-smi tells them, for Pythons that cannot load NVML: WSL's path unset, other C libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from capacity_tui.engine.machine.device_names import match_accelerator
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host.memory import probe_memory, shared_memory
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Accelerator, MigInstance, Topology, unknown_accelerator
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.vendors.nvidia.probe import UNIFIED_NAMES, VENDOR, slice_share, visible
from capacity_tui.engine.machine.vendors.tool_tables import (
    MEBIBYTE,
    csv_rows,
    mig_profiles,
    number,
    told,
    topology_matrix,
)

COLUMNS = (
    "name", "uuid", "driver_version", "compute_cap", "memory.total", "memory.free", "memory.used", "power.draw",
    "power.limit", "power.default_limit", "temperature.gpu", "clocks.sm", "clocks.max.sm", "mig.mode.current",
    "pcie.link.gen.current", "pcie.link.width.current", "pcie.link.gen.max", "pcie.link.width.max",
)  # fmt: skip
# Drivers before 510 refuse a query that names one of these.
NEWER_COLUMNS = ("compute_cap", "mig.mode.current")
SOURCE = "nvidia-smi"


def probe_nvidia_smi(host: Host) -> tuple[tuple[Accelerator, ...], Topology]:
    """Return the GPUs that nvidia-smi lists.

    Raises:
        NotPresentError: the tool is not here, or lists none.
    """
    report = _query(host, COLUMNS)
    if report.value is None and "nvidia-smi" not in host.silent and not report.reason.endswith("is not installed"):
        report = _query(host, tuple(name for name in COLUMNS if name not in NEWER_COLUMNS))
    rows = csv_rows(report.value or "")
    if not rows or "name" not in rows[0]:
        raise NotPresentError(report.reason or "nvidia-smi lists no GPU")
    listed = host.command("nvidia-smi", "-L").value or ""
    slices = mig_profiles(listed)
    gpus = tuple(_accelerator(host, index, row, slices.get(index, ())) for index, row in enumerate(rows))
    if len(gpus) == 1:
        return gpus, Topology(missing(SOURCE, "a single GPU"))
    matrix = topology_matrix(host.command("nvidia-smi", "topo", "-m").value or "")
    unread = missing("nvidia-smi topo -m", "no table of links")
    return gpus, Topology(detected(matrix, "nvidia-smi topo -m") if len(matrix) == len(gpus) else unread)


def _query(host: Host, columns: tuple[str, ...]) -> Fact[str]:
    return host.command("nvidia-smi", f"--query-gpu={','.join(columns)}", "--format=csv")


def _accelerator(host: Host, index: int, row: Mapping[str, str], profiles: tuple[str, ...]) -> Accelerator:
    name, uuid = _text(row, "name"), _text(row, "uuid")
    integrated = name.map(lambda text: bool(UNIFIED_NAMES.search(text)))
    total = _mebibytes(row, "memory.total [MiB]")
    free, used = _mebibytes(row, "memory.free [MiB]"), _mebibytes(row, "memory.used [MiB]")
    matched = match_accelerator(name.value, total.value) if name.value else missing(SOURCE, "no name")
    if integrated.value:
        total, free, used = shared_memory(probe_memory(host))
    bare = unknown_accelerator(index, VENDOR, SOURCE, "nvidia-smi does not tell")
    instances = tuple(MigInstance(profile, _profile_bytes(profile), slice_share(profile)) for profile in profiles)
    return replace(
        bare,
        name=name,
        uuid=uuid,
        catalogue_id=matched,
        memory_total_bytes=total,
        memory_free_bytes=free,
        memory_used_bytes=used,
        driver=_text(row, "driver_version"),
        compute_capability=_text(row, "compute_cap"),
        pcie=replace(
            bare.pcie,
            generation=_whole(row, "pcie.link.gen.current"),
            lanes=_whole(row, "pcie.link.width.current"),
            generation_max=_whole(row, "pcie.link.gen.max"),
            lanes_max=_whole(row, "pcie.link.width.max"),
        ),
        mig_enabled=_text(row, "mig.mode.current").map(lambda text: text == "Enabled"),
        mig_instances=detected(instances, "nvidia-smi -L") if instances else bare.mig_instances,
        power_watts=_real(row, "power.draw [W]"),
        power_limit_watts=_real(row, "power.limit [W]"),
        power_default_watts=_real(row, "power.default_limit [W]"),
        temperature_celsius=_real(row, "temperature.gpu"),
        clock_mhz=_whole(row, "clocks.current.sm [MHz]", "clocks.sm [MHz]"),
        clock_max_mhz=_whole(row, "clocks.max.sm [MHz]"),
        integrated=integrated,
        visible=visible(host.environment, index, uuid),
    )


def _profile_bytes(profile: str) -> int | None:
    """Return the memory a MIG profile's name promises; the driver keeps a little of it."""
    size = profile.partition(".")[2].removesuffix("gb")
    return int(size) * 10**9 if size.isdigit() else None


def _text(row: Mapping[str, str], column: str) -> Fact[str]:
    found = told(row, column)
    return missing(SOURCE, "nvidia-smi does not tell") if found is None else detected(found, f"{SOURCE} {column}")


def _real(row: Mapping[str, str], *columns: str) -> Fact[float]:
    found = number(row, *columns)
    return missing(SOURCE, "nvidia-smi does not tell") if found is None else detected(found, f"{SOURCE} {columns[0]}")


def _whole(row: Mapping[str, str], *columns: str) -> Fact[int]:
    return _real(row, *columns).map(round)


def _mebibytes(row: Mapping[str, str], column: str) -> Fact[int]:
    return _real(row, column).map(lambda size: round(size * MEBIBYTE))
