"""Operating system, hypervisor and container around this process."""

from __future__ import annotations

import platform

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host import cgroup
from capacity_tui.engine.machine.host_files import Host, parse_pairs
from capacity_tui.engine.machine.machine import Container, Platform

OSRELEASE = "/proc/sys/kernel/osrelease"
MARKERS = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/.singularity.d": "apptainer"}
CGROUP_WORDS = {"kubepods": "kubernetes", "docker": "docker", "containerd": "containerd", "lxc": "lxc"}


def probe_platform(host: Host) -> Platform:
    """Return what runs below this process."""
    release = host.text(OSRELEASE).or_else(detected(platform.release(), "uname"))
    return Platform(
        system=detected(host.system, "uname"),
        release=release,
        architecture=detected(host.architecture, "uname"),
        python=detected(platform.python_version(), "the running interpreter"),
        wsl=release.map(lambda text: "microsoft" in text.lower()),
        hypervisor=_hypervisor(host, release.value or ""),
    )


def probe_container(host: Host) -> Container:
    """Return the container's kind and the limits that control groups set."""
    quota, limit = cgroup.cpu_quota(host), cgroup.memory_limit(host)
    return Container(_container(host), cgroup.version(host), quota, limit)


def _container(host: Host) -> Fact[str]:
    if host.environment.get("KUBERNETES_SERVICE_HOST"):
        return detected("kubernetes", "environment KUBERNETES_SERVICE_HOST")
    for path, kind in MARKERS.items():
        if host.exists(path):
            return detected(kind, path)
    groups = host.text("/proc/self/cgroup")
    for word, kind in CGROUP_WORDS.items():
        if word in (groups.value or ""):
            return detected(kind, groups.source)
    return missing("/.dockerenv, /run/.containerenv, /proc/self/cgroup", "no sign of a container")


def _hypervisor(host: Host, release: str) -> Fact[str]:
    if "microsoft" in release.lower():
        return detected("Hyper-V (WSL)", OSRELEASE)
    if "hypervisor" not in parse_pairs(host.text("/proc/cpuinfo").value or "").get("flags", "").split():
        return missing("/proc/cpuinfo flags", "no sign of a hypervisor")
    return host.text("/sys/class/dmi/id/sys_vendor").or_else(detected("unnamed", "/proc/cpuinfo flags"))
