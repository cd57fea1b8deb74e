"""NVIDIA: NVML first, nvidia-smi where Python cannot load that, the device tree on Jetson boards."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.known_devices import match_accelerator
from capacity_tui.engine.machine.machine import Accelerator, LinkMatrix, MigInstance, Stack, unknown_accelerator
from capacity_tui.engine.machine.main_memory import probe_memory, shared_memory
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.system import installed
from capacity_tui.engine.machine.vendors.nvidia.nvml import NvidiaSensors, throttle_reasons
from capacity_tui.engine.machine.vendors.nvidia.probe import (
    UNIFIED_NAMES,
    VENDOR,
    probe_jetson,
    probe_nvidia,
    slice_share,
    visible,
)
from capacity_tui.engine.machine.vendors.vendor import MEBIBYTE, ProbedDevices, Vendor, csv_rows, first_value, number


def probe_nvidia_smi(host: Host) -> ProbedDevices:
    """Return the GPUs that nvidia-smi lists; raises NotPresentError if the tool is not here, or lists none."""
    report = host.command(*QUERIES[0], folder=FOLDER)
    if report.value is None and TOOL not in host.silent and not report.reason.endswith("is not installed"):
        report = host.command(*QUERIES[1], folder=FOLDER)
    rows = csv_rows(report.value or "")
    if not rows or "name" not in rows[0]:
        raise NotPresentError(report.reason or "nvidia-smi lists no GPU")
    listed = host.command(*LIST, folder=FOLDER).value or ""
    slices = mig_profiles(listed)
    gpus = tuple(_accelerator(host, index, row, slices.get(index, ())) for index, row in enumerate(rows))
    if len(gpus) == 1:
        return ProbedDevices(gpus, missing(SOURCE, "a single GPU"))
    matrix = topology_matrix(host.command(*TOPOLOGY, folder=FOLDER).value or "")
    unread = missing("nvidia-smi topo -m", "no table of links")
    return ProbedDevices(gpus, detected(matrix, "nvidia-smi topo -m") if len(matrix) == len(gpus) else unread)


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
        throttle=_throttle(row),
        clock_mhz=_whole(row, "clocks.current.sm [MHz]", "clocks.sm [MHz]"),
        clock_max_mhz=_whole(row, "clocks.max.sm [MHz]"),
        integrated=integrated,
        visible=visible(host.environment, index, uuid),
    )


def _throttle(row: Mapping[str, str]) -> Fact[tuple[str, ...]]:
    """Return why the clock is below its highest."""
    column = "clocks_throttle_reasons.active"
    mask = first_value(row, column)
    if mask is None or not re.fullmatch(r"0x[0-9a-fA-F]+", mask):
        return missing(SOURCE, "nvidia-smi does not tell")
    return detected(throttle_reasons(int(mask, 16)), f"{SOURCE} {column}")


def _profile_bytes(profile: str) -> int | None:
    """Return the memory a MIG profile's name promises; the driver keeps a little of it."""
    size = profile.partition(".")[2].removesuffix("gb")
    return int(size) * 10**9 if size.isdigit() else None


def _text(row: Mapping[str, str], column: str) -> Fact[str]:
    value = first_value(row, column)
    return missing(SOURCE, "nvidia-smi does not tell") if value is None else detected(value, f"{SOURCE} {column}")


def _real(row: Mapping[str, str], *columns: str) -> Fact[float]:
    value = number(row, *columns)
    return missing(SOURCE, "nvidia-smi does not tell") if value is None else detected(value, f"{SOURCE} {columns[0]}")


def _whole(row: Mapping[str, str], *columns: str) -> Fact[int]:
    return _real(row, *columns).map(round)


def _mebibytes(row: Mapping[str, str], column: str) -> Fact[int]:
    return _real(row, column).map(lambda size: round(size * MEBIBYTE))


def topology_matrix(text: str) -> LinkMatrix:
    """Return accelerators against accelerators as ``nvidia-smi topo -m`` prints them; empty if it holds none."""
    rows = [line.split() for line in text.splitlines() if re.match(r"GPU\d+\s", line)]
    count = len(rows)
    return tuple(tuple(row[1 : count + 1]) for row in rows) if all(len(row) > count for row in rows) else ()


def mig_profiles(text: str) -> dict[int, tuple[str, ...]]:
    """Return the MIG profiles of each GPU as ``nvidia-smi -L`` lists them, such as ``3g.40gb``."""
    profiles: dict[int, tuple[str, ...]] = {}
    current = -1
    for line in text.splitlines():
        gpu, profile = re.match(r"GPU (\d+):", line), re.match(r"\s+MIG (\S+)\s+Device", line)
        if gpu:
            current = int(gpu[1])
        elif profile and current >= 0:
            profiles[current] = (*profiles.get(current, ()), profile[1])
    return profiles


COLUMNS = (
    "name",
    "uuid",
    "driver_version",
    "compute_cap",
    "memory.total",
    "memory.free",
    "memory.used",
    "power.draw",
    "power.limit",
    "power.default_limit",
    "temperature.gpu",
    "clocks.sm",
    "clocks.max.sm",
    "mig.mode.current",
    "pcie.link.gen.current",
    "pcie.link.width.current",
    "pcie.link.gen.max",
    "pcie.link.width.max",
    "clocks_throttle_reasons.active",
)

NEWER_COLUMNS = ("compute_cap", "mig.mode.current")  # Drivers before 510 refuse a query that names one of these
TOOL = SOURCE = "nvidia-smi"
LIST = (TOOL, "-L")
TOPOLOGY = (TOOL, "topo", "-m")
_OLDER_COLUMNS = tuple(name for name in COLUMNS if name not in NEWER_COLUMNS)
QUERIES = tuple((TOOL, f"--query-gpu={','.join(columns)}", "--format=csv") for columns in (COLUMNS, _OLDER_COLUMNS))
"""The query, and the one for older drivers that refuse it."""

FOLDER = "/usr/lib/wsl/lib"  # where Windows puts the tool for its Linux
MEMORY_ERRORS = (TOOL, "--query-gpu=index,ecc.errors.uncorrected.volatile.total", "--format=csv,noheader,nounits")
"""What the driver counts of memory errors since it was loaded."""


TOOLKIT = "/usr/local/cuda/version.json"


def _probe(host: Host) -> ProbedDevices:
    devices = _devices(host)
    versions = {gpu.runtime.value: gpu.runtime for gpu in devices.accelerators if gpu.runtime.value}
    return replace(devices, stacks=tuple(Stack("CUDA driver", version) for version in versions.values()))


def _devices(host: Host) -> ProbedDevices:
    # The driver's own library speaks of this machine alone.
    probes = (probe_nvidia, probe_nvidia_smi, probe_jetson)
    first, *fallbacks = probes if host.is_here else probes[1:]
    try:
        return first(host)
    except NotPresentError as absent:
        for probe in fallbacks:
            with suppress(NotPresentError):
                return probe(host)
        raise absent from None


def _toolkit_version(text: str) -> str:
    loaded = json.loads(text)
    if not isinstance(loaded, dict) or "cuda" not in loaded:
        raise ValueError("no version of CUDA")
    return str(loaded["cuda"]["version"])


NVIDIA = Vendor(
    "nvidia",
    VENDOR,
    _probe,
    lambda host: installed(("CUDA toolkit", host.fact(TOOLKIT, _toolkit_version))),
    lambda _, detailed: NvidiaSensors(detailed),
    packages=("nvidia-ml-py",),
    torch_backend="cuda",
    asked=(LIST, TOPOLOGY, *QUERIES, MEMORY_ERRORS),
    read=(TOOLKIT,),
    folders=(FOLDER,),
)
