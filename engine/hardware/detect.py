"""All probes side by side: what the machine is, within a time limit, whatever breaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from capacity_tui.engine.hardware.amd import probe_amd
from capacity_tui.engine.hardware.apple import probe_apple_cpu, probe_apple_gpu
from capacity_tui.engine.hardware.cpu import probe_cpu
from capacity_tui.engine.hardware.disk import probe_disks
from capacity_tui.engine.hardware.facts import detected, missing
from capacity_tui.engine.hardware.host import Host
from capacity_tui.engine.hardware.intel import probe_intel
from capacity_tui.engine.hardware.machine import (
    Accelerator,
    Container,
    Cpu,
    Machine,
    Memory,
    Platform,
    Power,
    Probe,
    Swap,
    Topology,
    unknown,
)
from capacity_tui.engine.hardware.memory import probe_memory, probe_swap
from capacity_tui.engine.hardware.network import probe_networks
from capacity_tui.engine.hardware.platform_probe import probe_container, probe_platform
from capacity_tui.engine.hardware.power import probe_power
from capacity_tui.engine.hardware.probing import Running

DETECT_SECONDS = 10.0  # a driver without persistence mode wakes eight GPUs in several seconds
FILE_SECONDS = 2.0  # probes that only read the kernel's files take milliseconds

T = TypeVar("T")


def detect(
    timeout_seconds: float = DETECT_SECONDS,
    host: Host | None = None,
    cancelled: threading.Event | None = None,
) -> Machine:
    """Return what this machine is; nothing is measured and no connection is opened.

    Args:
        timeout_seconds: how long the slowest probe (a driver waking its GPUs) may take; others have less.
        host: the machine to look at; this one by default.
        cancelled: when set, probes still running are given up at once.
    """
    return _Detection(host or Host(), timeout_seconds, cancelled).machine()


class _Detection:
    """One run of all probes: started together, then waited for one by one."""

    def __init__(self, host: Host, seconds: float, cancelled: threading.Event | None) -> None:
        self._host = host
        self._seconds = seconds
        self._cancelled = cancelled
        self._probes: list[Probe] = []

    def machine(self) -> Machine:
        nvidia = self._start("nvidia", _nvidia, self._seconds)
        others = [
            self._start("amd", probe_amd, self._seconds),
            self._start("intel", probe_intel, self._seconds),
            self._start("apple", probe_apple_gpu, self._seconds),
        ]
        cpu, power = self._start("cpu", _cpu), self._start("power", probe_power)
        memory, swap = self._start("memory", probe_memory), self._start("swap", probe_swap)
        disks, networks = self._start("disks", probe_disks), self._start("networks", probe_networks)
        container = self._start("container", probe_container)
        platform = self._start("platform", probe_platform)
        gpus, topology = self._wait(nvidia) or ((), None)
        accelerators = [*gpus, *(gpu for other in others for gpu in self._wait(other) or ())]
        return Machine(
            cpu=self._wait(cpu) or unknown(Cpu, "cpu probe", self._detail()),
            memory=self._wait(memory) or unknown(Memory, "memory probe", self._detail()),
            swap=self._wait(swap) or unknown(Swap, "swap probe", self._detail()),
            disks=self._wait(disks) or (),
            networks=self._wait(networks) or (),
            power=self._wait(power) or unknown(Power, "power probe", self._detail()),
            accelerators=tuple(replace(gpu, index=index) for index, gpu in enumerate(accelerators)),
            topology=topology or _topology_by_links(accelerators),
            container=self._wait(container) or unknown(Container, "container probe", self._detail()),
            platform=self._wait(platform) or unknown(Platform, "platform probe", self._detail()),
            probes=tuple(self._probes),
        )

    def _start(self, name: str, probe: Callable[[Host], T], seconds: float = FILE_SECONDS) -> Running[T]:
        return Running(name, partial(probe, self._host), min(seconds, self._seconds))

    def _wait(self, running: Running[T]) -> T | None:
        found, probe = running.wait(self._cancelled)
        self._probes.append(probe)
        return found

    def _detail(self) -> str:
        """Return how the probe waited for last went."""
        return f"{self._probes[-1].outcome}: {self._probes[-1].detail}"


def _topology_by_links(accelerators: Sequence[Accelerator]) -> Topology:
    """Return the matrix that the accelerators' own links tell."""
    if len(accelerators) < 2:
        return Topology(missing("links", "fewer than two accelerators"))
    if not any(gpu.links.value for gpu in accelerators):
        return Topology(missing("links", "no direct links between the accelerators"))
    peers = [{link.peer: link.kind for link in gpu.links.value or ()} for gpu in accelerators]
    size = range(len(accelerators))
    rows = (tuple("X" if row == column else peers[row].get(column, "?") for column in size) for row in size)
    return Topology(detected(tuple(rows), "the accelerators' own links"))


def _cpu(host: Host) -> Cpu:
    return probe_apple_cpu(host) if host.system == "Darwin" else probe_cpu(host)


def _nvidia(host: Host) -> tuple[tuple[Accelerator, ...], Topology]:
    from capacity_tui.engine.hardware.nvidia import probe_nvidia  # noqa: PLC0415 - loads NVML's bindings

    return probe_nvidia(host)
