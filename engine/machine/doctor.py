"""A report for bug reports: every probe, what it returned and how long it took, without names of people or hosts."""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from capacity_tui.engine.machine.facts import Fact
from capacity_tui.engine.machine.machine import Machine, Probe
from capacity_tui.engine.machine.vendors.registry import VENDORS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
    """Return the report of a detection.

    Args:
        seconds: how long detection took in all.
        private: keep serial numbers, host and user names.
    """
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
    names = {host, host.partition(".")[0], user, Path(os.path.expanduser("~")).name}  # noqa: PTH111 - never raises
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


def machine_as_dict(machine: Machine) -> dict[str, object]:
    """Return the machine as nested dictionaries, lists and scalars.

    A fact becomes ``{"value", "origin", "source"}``, with ``"reason"`` where the value is missing.
    Serial numbers and the like are left out.
    """
    return _record(machine)


def _record(record: DataclassInstance) -> dict[str, object]:
    parts = (part for part in fields(record) if not part.metadata.get("private"))
    return {part.name: _plain(getattr(record, part.name)) for part in parts}


def _plain(value: object) -> object:
    if isinstance(value, Fact):
        fact = {"value": _plain(value.value), "origin": value.origin, "source": value.source}
        return {**fact, "reason": value.reason} if value.value is None else fact
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return _record(value) if is_dataclass(value) and not isinstance(value, type) else value
