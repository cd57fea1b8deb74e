"""All probes side by side, within a time limit, whatever breaks; and the report of them for bug reports."""

from __future__ import annotations

import getpass
import platform
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import CORRUPT, data_folder, typed_path
from capacity_tui.engine.machine.benchmark.benchmark_report import FOLDER as BENCHMARKS
from capacity_tui.engine.machine.benchmark.benchmark_report import facts_of, measured_facts
from capacity_tui.engine.machine.cpu import probe_cpu
from capacity_tui.engine.machine.disk import probe_disks, probe_swap
from capacity_tui.engine.machine.facts import MEASURED, Fact, missing
from capacity_tui.engine.machine.known_devices import with_abilities
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
from capacity_tui.engine.machine.main_memory import probe_memory, probe_memory_modules
from capacity_tui.engine.machine.probing import COMMAND_SECONDS, NO_ANSWER, Host, NotPresentError, Running
from capacity_tui.engine.machine.system import (
    open_stacks,
    probe_container,
    probe_networks,
    probe_platform,
    probe_power,
    probe_processes,
)
from capacity_tui.engine.machine.topology import complete_topology
from capacity_tui.engine.machine.vendors.registry import VENDORS
from capacity_tui.engine.machine.vendors.vendor import Vendor
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
        probed = [present for device in devices if (present := self._wait(device))]
        gpus = (gpu for present in probed for gpu in present.accelerators)
        accelerators = tuple(with_abilities(replace(gpu, index=index)) for index, gpu in enumerate(gpus))
        running = (stack for present in probed for stack in present.stacks)
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
            topology=complete_topology(accelerators, cards, probed[0].links if probed else None),
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
    data = host.user_path(data_folder(host.environment))
    folder = data and data / MEASURED
    if folder is None or not folder.is_dir():
        raise NotPresentError("nothing was measured on this machine yet")
    from capacity_tui.engine.machine.measured_constants import read_constants  # noqa: PLC0415 - few machines need it

    def constants(path: Path) -> MeasuredEfficiency | Probe:
        try:
            return read_constants(path)
        except StorageError as error:
            return Probe("measured constants", 0.0, "failed", error.one_line())

    return tuple(constants(path) for path in sorted(folder.glob("*.json")) if CORRUPT not in path.name)


def _benchmarked(machine: Machine, host: Host) -> MeasuredFacts:
    data = host.user_path(data_folder(host.environment))
    return measured_facts(data / BENCHMARKS, machine) if data else facts_of((), machine, "a recorded machine")


PROGRAM = "capacity-tui"

# Which parts of the machine each probe fills; the others are named alike.
PARTS = {"memory modules": "modules", "benchmarks": "benchmarked"}

# What names people, machines, or a device among others of its kind, and what is written in its place.
HIDDEN = (
    (re.compile(r"(/(?:home|Users|media|run/media|mnt/home)/)[^/\s]+"), r"\1<user>"),
    (re.compile(r"//[^/\s]+/[^\s,'\])]+"), "//<server>/<share>"),
    (re.compile(r"(?<![\w./-])(?:\[[\da-fA-F:]+\]|[\w.-]+):/[^\s,'\])]*"), "<server>:<export>"),
    (re.compile(r"(/dev/disk/by-[\w-]+/)[^\s,'\])]+"), r"\1<serial>"),
    (re.compile(r"(/dev/mapper/)[^\s,'\])]+"), r"\1<volume>"),
    (re.compile(r"(/sys/fs/cgroup(?:/(?:memory|cpu|cpu,cpuacct))?/)[^\s\]]+/([\w.]+)"), r"\1<group>/\2"),
    (re.compile(r"\b[\w@.\\-]+\.(?:scope|slice|service)\b"), "<group>"),
    (re.compile(r"\b(?=[0-9]*[a-f])[0-9a-f]{32,64}\b"), "<id>"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One probe and what it returned, a line a fact."""

    probe: Probe
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Versions, then probes in the order they were waited for."""

    versions: Mapping[str, str]
    findings: tuple[Finding, ...]
    seconds: float


def examine(machine: Machine, seconds: float, private: bool = False) -> DoctorReport:
    """Return the report of a detection; a private one keeps serial numbers, host and user names."""
    findings = (Finding(probe, tuple(_returned(machine, probe, private))) for probe in machine.probes)
    cleaned = (finding if private else _without_names(finding) for finding in findings)
    return DoctorReport(_versions(), tuple(cleaned), seconds)


def report_lines(report: DoctorReport) -> Iterator[str]:
    """Yield the report as text for an issue."""
    yield from (f"{name}: {text}" for name, text in report.versions.items())
    yield f"detection: {report.seconds:.2f} s"
    for finding in report.findings:
        probe = finding.probe
        detail = f": {probe.detail}" if probe.detail else ""
        yield ""
        yield f"[{probe.name}] {probe.outcome} in {probe.seconds * 1000:.0f} ms{detail}"
        yield from (f"  {line}" for line in finding.lines)


def hide_names(text: str, names: Sequence[str]) -> str:
    """Return a text without names of hosts, users, servers, volumes and control groups, and without serials."""
    for pattern, instead in HIDDEN:
        text = pattern.sub(instead, text)
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "<name>", text)
    return text


def _without_names(finding: Finding) -> Finding:
    names = _names()
    probe = finding.probe
    cleaned = Probe(probe.name, probe.seconds, probe.outcome, hide_names(probe.detail, names))
    return Finding(cleaned, tuple(hide_names(line, names) for line in finding.lines))


def _names() -> tuple[str, ...]:
    """Return this host's and user's names; short and common ones would hide innocent words."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user id without an entry
        user = ""
    host = socket.gethostname()
    names = {host, host.partition(".")[0], user, typed_path("~").name}
    return tuple(name for name in names if len(name) > 2 and name not in ("root", "localhost", "user"))


def _returned(machine: Machine, probe: Probe, private: bool) -> Iterator[str]:
    vendor = next((vendor for vendor in VENDORS if vendor.id == probe.name), None)
    if vendor is not None:
        devices = [gpu for gpu in machine.accelerators if gpu.vendor == vendor.name and probe.outcome == "found"]
        for gpu in devices:
            yield from _lines(gpu, f"{gpu.index}", private)
        if machine.accelerators[:1] == tuple(devices[:1]):
            yield from _lines(machine.topology, "topology", private)
        return
    part = getattr(machine, PARTS.get(probe.name, probe.name), None)
    if part is not None:
        yield from _lines(part, "", private)


def _lines(value: object, path: str, private: bool) -> Iterator[str]:
    if isinstance(value, Fact):
        shown = value if value.value is None else _short(value.value)
        yield f"{path} = {shown}  [{value.origin}: {value.source}]"
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            if private or not part.metadata.get("private"):
                yield from _lines(getattr(value, part.name), f"{path}.{part.name}".lstrip("."), private)
    elif isinstance(value, tuple) and any(is_dataclass(entry) for entry in value):
        for number, entry in enumerate(value):
            yield from _lines(entry, f"{path}[{number}]", private)
    else:
        yield f"{path} = {_short(value)}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]} ... ({len(text)} characters)"


def _versions() -> dict[str, str]:
    versions = {"python": f"{platform.python_version()} ({platform.python_implementation()})"}
    versions["system"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    required = requires(PROGRAM) or []
    for name in (PROGRAM, *(_name(entry) for entry in required if "extra ==" not in entry)):
        versions[name] = _version(name) or "not installed"
    optional = [_name(entry) for entry in required if "extra ==" in entry]
    optional += [name for vendor in VENDORS for name in vendor.packages]
    versions |= {name: text for name in optional if (text := _version(name))}
    return versions


def _name(requirement: str) -> str:
    """Return the package of such as ``textual==8.2.8``."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine_as_dict(machine: DataclassInstance) -> dict[str, object]:
    """Return the machine, or a part of it, as nested dictionaries, lists and scalars.

    A fact becomes ``{"value", "origin", "source"}``, with ``"reason"`` where the value is missing.
    Serial numbers and the like are left out.
    """
    parts = (part for part in fields(machine) if not part.metadata.get("private"))
    return {part.name: _plain(getattr(machine, part.name)) for part in parts}


def _plain(value: object) -> object:
    if isinstance(value, Fact):
        fact = {"value": _plain(value.value), "origin": value.origin, "source": value.source}
        return {**fact, "reason": value.reason} if value.value is None else fact
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return machine_as_dict(value) if is_dataclass(value) and not isinstance(value, type) else value
