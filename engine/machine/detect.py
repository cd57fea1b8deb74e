"""All probes side by side: what the machine is, within a time limit, whatever breaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import CORRUPT, data_folder
from capacity_tui.engine.machine.benchmark.benchmark_report import FOLDER as BENCHMARKS
from capacity_tui.engine.machine.benchmark.benchmark_report import facts_of, measured_facts
from capacity_tui.engine.machine.facts import missing
from capacity_tui.engine.machine.generations import with_abilities
from capacity_tui.engine.machine.host.cpu import probe_cpu
from capacity_tui.engine.machine.host.disk import probe_disks, probe_swap
from capacity_tui.engine.machine.host.main_memory import probe_memory, probe_memory_modules
from capacity_tui.engine.machine.host.system import (
    open_stacks,
    probe_container,
    probe_networks,
    probe_platform,
    probe_power,
    probe_processes,
)
from capacity_tui.engine.machine.machine import (
    Container,
    Cpu,
    Machine,
    MeasuredFacts,
    Memory,
    MemoryModules,
    Platform,
    Power,
    Probe,
    Stack,
    Swap,
    unknown,
)
from capacity_tui.engine.machine.probing import COMMAND_SECONDS, NO_ANSWER, Host, NotPresentError, Running
from capacity_tui.engine.machine.topology import complete_topology
from capacity_tui.engine.machine.vendors.registry import VENDORS
from capacity_tui.engine.machine.vendors.vendor import Vendor

if TYPE_CHECKING:
    from capacity_tui.engine.machine.measured_constants import MeasuredEfficiency

DETECT_SECONDS = 10.0  # a driver without persistence mode wakes eight GPUs in several seconds
FILE_SECONDS = 2.0  # probes that only read the kernel's files take milliseconds

T = TypeVar("T")


def detect(
    timeout_seconds: float = DETECT_SECONDS,
    host: Host | None = None,
    cancelled: threading.Event | None = None,
    vendors: Sequence[Vendor] = VENDORS,
) -> Machine:
    """Return what this machine is; nothing is measured and no connection is opened.

    Args:
        timeout_seconds: how long the slowest probe (a driver waking its GPUs) may take; others have less.
        host: the machine to look at; this one by default.
        cancelled: when set, probes still running are given up at once.
    """
    return _Detection(host or Host(), timeout_seconds, cancelled, vendors).machine()


class _Detection:
    """One run of all probes: started together, then waited for one by one."""

    def __init__(
        self, host: Host, seconds: float, cancelled: threading.Event | None, vendors: Sequence[Vendor]
    ) -> None:
        self._host = host
        self._vendors = vendors
        self._seconds = seconds
        self._cancelled = cancelled
        self._probes: list[Probe] = []

    def machine(self) -> Machine:
        devices = [self._start(vendor.id, vendor.probe, self._seconds) for vendor in self._vendors]
        cpu, power = self._start("cpu", self._processor), self._start("power", probe_power)
        memory, swap = self._start("memory", probe_memory), self._start("swap", probe_swap)
        modules = self._start("memory modules", probe_memory_modules)
        processes = self._start("processes", probe_processes)
        disks, networks = self._start("disks", probe_disks), self._start("networks", probe_networks)
        container = self._start("container", probe_container)
        platform = self._start("platform", probe_platform)
        stacks = self._start("stacks", self._stacks)
        measured = self._start("measured", _measured)
        devices_found = [present for device in devices if (present := self._wait(device))]
        gpus = (gpu for present in devices_found for gpu in present.accelerators)
        accelerators = tuple(with_abilities(replace(gpu, index=index)) for index, gpu in enumerate(gpus))
        running = (stack for present in devices_found for stack in present.stacks)
        cards, installed = self._wait(networks) or (), self._wait(stacks) or ()
        machine = Machine(
            cpu=self._wait(cpu) or unknown(Cpu, "cpu probe", self._detail()),
            memory=self._wait(memory) or unknown(Memory, "memory probe", self._detail()),
            modules=self._wait(modules) or unknown(MemoryModules, "memory modules probe", self._detail()),
            processes=self._wait(processes) or missing("processes probe", self._detail()),
            swap=self._wait(swap) or unknown(Swap, "swap probe", self._detail()),
            disks=self._wait(disks) or (),
            networks=cards,
            power=self._wait(power) or unknown(Power, "power probe", self._detail()),
            accelerators=accelerators,
            topology=complete_topology(accelerators, cards, devices_found[0].links if devices_found else None),
            stacks=(*running, *installed),
            container=self._wait(container) or unknown(Container, "container probe", self._detail()),
            platform=self._wait(platform) or unknown(Platform, "platform probe", self._detail()),
            measured=self._constants(self._wait(measured) or ()),
            probes=(),
        )
        benchmarked = self._wait(self._start("benchmarks", partial(_benchmarked, machine)))
        silent = (Probe(tool, COMMAND_SECONDS, "timed out", NO_ANSWER) for tool in sorted(self._host.silent))
        return replace(machine, benchmarked=benchmarked, probes=(*self._probes, *silent))

    def _start(self, name: str, probe: Callable[[Host], T], seconds: float = FILE_SECONDS) -> Running[T]:
        return Running(name, partial(probe, self._host), min(seconds, self._seconds))

    def _wait(self, running: Running[T]) -> T | None:
        devices, probe = running.wait(self._cancelled)
        self._probes.append(probe)
        return devices

    def _constants(self, files: tuple[MeasuredEfficiency | Probe, ...]) -> tuple[MeasuredEfficiency, ...]:
        """Return the sound files of measured constants; each damaged one is named among the probes."""
        self._probes += [entry for entry in files if isinstance(entry, Probe)]
        return tuple(entry for entry in files if not isinstance(entry, Probe))

    def _processor(self, host: Host) -> Cpu:
        for vendor in self._vendors:
            if vendor.processor is not None:
                with suppress(NotPresentError):
                    return vendor.processor(host)
        return probe_cpu(host)

    def _stacks(self, host: Host) -> tuple[Stack, ...]:
        return (*(stack for vendor in self._vendors for stack in vendor.stacks(host)), *open_stacks(host))

    def _detail(self) -> str:
        """Return how the probe waited for last went."""
        return f"{self._probes[-1].outcome}: {self._probes[-1].detail}"


def _measured(host: Host) -> tuple[MeasuredEfficiency | Probe, ...]:
    """Return the measured constants of each file, or what is wrong with it."""
    from capacity_tui.engine.machine.measured_constants import FOLDER, read_constants  # noqa: PLC0415 - few machines need it

    data = host.own_path(data_folder(host.environment))
    folder = data and data / FOLDER
    if folder is None or not folder.is_dir():
        raise NotPresentError("nothing was measured on this machine yet")

    def constants(path: Path) -> MeasuredEfficiency | Probe:
        try:
            return read_constants(path)
        except StorageError as error:
            return Probe("measured constants", 0.0, "failed", error.one_line())

    return tuple(constants(path) for path in sorted(folder.glob("*.json")) if CORRUPT not in path.name)


def _benchmarked(machine: Machine, host: Host) -> MeasuredFacts:
    data = host.own_path(data_folder(host.environment))
    return measured_facts(data / BENCHMARKS, machine) if data else facts_of((), machine, "a recorded machine")
