"""NVIDIA: NVML first, nvidia-smi where Python cannot load that, the device tree on Jetson boards."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from capacity_tui.engine.machine.machine import Stack
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.system import installed
from capacity_tui.engine.machine.vendors.nvidia.nvidia_smi import FOLDER, LIST, MEMORY_ERRORS, QUERIES, TOPOLOGY
from capacity_tui.engine.machine.vendors.nvidia.probe import VENDOR, probe_jetson
from capacity_tui.engine.machine.vendors.vendor import ProbedDevices, Sensors, Vendor

TOOLKIT = "/usr/local/cuda/version.json"


def _probe(host: Host) -> ProbedDevices:
    devices = _devices(host)
    versions = {gpu.runtime.value: gpu.runtime for gpu in devices.accelerators if gpu.runtime.value}
    return replace(devices, stacks=tuple(Stack("CUDA driver", version) for version in versions.values()))


def _devices(host: Host) -> ProbedDevices:
    from capacity_tui.engine.machine.vendors.nvidia.nvidia_smi import probe_nvidia_smi  # noqa: PLC0415 - loads NVML
    from capacity_tui.engine.machine.vendors.nvidia.probe import probe_nvidia  # noqa: PLC0415 - loads NVML

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


def _sensors(_: Host, detailed: bool) -> Sensors:
    from capacity_tui.engine.machine.vendors.nvidia.nvml import NvidiaSensors  # noqa: PLC0415 - loads NVML

    return NvidiaSensors(detailed)


NVIDIA = Vendor(
    "nvidia",
    VENDOR,
    _probe,
    lambda host: installed(("CUDA toolkit", host.fact(TOOLKIT, _toolkit_version))),
    _sensors,
    packages=("nvidia-ml-py",),
    torch_backend="cuda",
    asked=(LIST, TOPOLOGY, *QUERIES, MEMORY_ERRORS),
    read=(TOOLKIT,),
    folders=(FOLDER,),
)
