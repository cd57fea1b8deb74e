"""Software that programs reach accelerators through: what is installed, and the stacks that vendors share."""

from __future__ import annotations

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Stack

LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib")
ICD_FOLDERS = {
    "OpenCL": ("/etc/OpenCL/vendors",),
    "Vulkan": ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"),
}
SOFTWARE_RENDERERS = ("lvp", "swrast", "pocl")  # drivers that compute on the CPU


def installed(*libraries: tuple[str, Fact[str]]) -> tuple[Stack, ...]:
    """Return those of some stacks, each by name and version, whose version is known."""
    return tuple(Stack(name, version) for name, version in libraries if version.value is not None)


def open_stacks(host: Host) -> tuple[Stack, ...]:
    """Return what is installed of the stacks that several vendors' devices share; nothing is loaded."""
    return installed(
        ("OpenCL", _drivers(host, "OpenCL")),
        ("Vulkan", _drivers(host, "Vulkan")),
        ("DirectX (WSL)", library(host, "libdxcore.so", ("/usr/lib/wsl/lib",))),
    )


def library(host: Host, name: str, folders: tuple[str, ...] = LIBRARIES) -> Fact[str]:
    """Return whether a shared library lies in one of the folders where systems keep them."""
    path = next((f"{folder}/{name}" for folder in folders if host.exists(f"{folder}/{name}")), None)
    return detected("installed", path) if path else missing(folders[0], f"no {name}")


def _drivers(host: Host, kind: str) -> Fact[str]:
    """Return the names of the drivers that registered, those that compute on the CPU last."""
    names = {
        name.rpartition(".")[0].partition("_icd")[0] for folder in ICD_FOLDERS[kind] for name in host.names(folder)
    }
    ordered = sorted(names, key=lambda name: (name.startswith(SOFTWARE_RENDERERS), name))
    source = ICD_FOLDERS[kind][0]
    return detected(", ".join(ordered), source) if ordered else missing(source, "no driver registered")
