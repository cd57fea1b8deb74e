"""Software that programs reach accelerators through: CUDA, ROCm, oneAPI, OpenCL, Vulkan, Metal and the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Accelerator, Stack

LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib")
ICD_FOLDERS = {
    "OpenCL": ("/etc/OpenCL/vendors",),
    "Vulkan": ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"),
}
SOFTWARE_RENDERERS = ("lvp", "swrast", "pocl")  # drivers that compute on the CPU


def probe_stacks(host: Host) -> tuple[Stack, ...]:
    """Return what is installed, whether or not a device is there for it; nothing is loaded."""
    if host.system == "Darwin":
        return (Stack("Metal", detected("part of macOS", "macOS")),)
    found = [
        ("CUDA toolkit", host.fact("/usr/local/cuda/version.json", _cuda_version)),
        ("ROCm", host.text("/opt/rocm/.info/version")),
        ("oneAPI Level Zero", _library(host, "libze_loader.so.1")),
        ("OpenCL", _drivers(host, "OpenCL")),
        ("Vulkan", _drivers(host, "Vulkan")),
        ("SynapseAI", host.text("/sys/module/habanalabs/version")),
        ("Neuron", host.text("/sys/module/neuron/version")),
        ("DirectX (WSL)", _library(host, "libdxcore.so", ("/usr/lib/wsl/lib",))),
    ]
    return tuple(Stack(name, version) for name, version in found if version.value is not None)


def with_drivers(stacks: Sequence[Stack], accelerators: Sequence[Accelerator]) -> tuple[Stack, ...]:
    """Return the stacks with what drivers say they run, which no file tells."""
    versions = {gpu.runtime.value: gpu.runtime for gpu in accelerators if gpu.vendor == "NVIDIA" and gpu.runtime.value}
    return (*(Stack("CUDA driver", version) for version in versions.values()), *stacks)


def _cuda_version(text: str) -> str:
    loaded = json.loads(text)
    if not isinstance(loaded, dict) or "cuda" not in loaded:
        raise ValueError("no version of CUDA")
    return str(loaded["cuda"]["version"])


def _library(host: Host, name: str, folders: tuple[str, ...] = LIBRARIES) -> Fact[str]:
    place = next((f"{folder}/{name}" for folder in folders if host.exists(f"{folder}/{name}")), None)
    return detected("installed", place) if place else missing(folders[0], f"no {name}")


def _drivers(host: Host, kind: str) -> Fact[str]:
    """Return the names of the drivers that registered, those that compute on the CPU last."""
    names = {
        name.rpartition(".")[0].partition("_icd")[0] for folder in ICD_FOLDERS[kind] for name in host.names(folder)
    }
    ordered = sorted(names, key=lambda name: (name.startswith(SOFTWARE_RENDERERS), name))
    source = ICD_FOLDERS[kind][0]
    return detected(", ".join(ordered), source) if ordered else missing(source, "no driver registered")
