"""The interface to a vendor of accelerators; each module or package beside this one makes one such record."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from typing import Protocol

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.machine import Accelerator, Cpu, LinkMatrix, Stack
from capacity_tui.engine.machine.probing import Host
from capacity_tui.engine.record import dataclass

NOT_READ = missing("driver", "graphs do without it")  # What a reading that serves graphs alone does not ask for


@dataclass(frozen=True, slots=True)
class ProbedDevices:
    """What a vendor's probe found."""

    accelerators: tuple[Accelerator, ...]
    links: Fact[LinkMatrix] | None = None  # how the driver says they reach each other; None where it says nothing of it
    stacks: tuple[Stack, ...] = ()  # software that only the driver reports


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One device now."""

    index: int  # its place in the order of detection
    utilization_percent: Fact[float]  # share of the last moments in which a kernel ran
    memory_used_bytes: Fact[int]  # held by all processes
    memory_total_bytes: Fact[int]
    power_watts: Fact[float]
    temperature_celsius: Fact[float]
    throttle: Fact[tuple[str, ...]]  # what throttles its clock; empty for nothing
    memory_activity_percent: Fact[float] = NOT_READ  # share of the last moments in which its memory was read or written
    power_limit_watts: Fact[float] = NOT_READ  # what its driver lets it draw
    # processes that hold its memory: process id, and bytes where the driver knows them
    holders: Fact[tuple[tuple[int, int | None], ...]] = NOT_READ


class Sensors(Protocol):
    """A vendor's devices with their sensors open."""

    def read(self, first: int) -> tuple[GpuSample, ...]:
        """Return one reading of every device, numbered from ``first`` in the order of detection."""

    def close(self) -> None:
        """Release the driver's handles."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor, or one family of devices with a separate driver.

    Every function takes the machine to look at; ``probe``, ``sensors`` and ``processor`` raise NotPresentError where
    the vendor has nothing in it.
    """

    id: str  # what its probe is called in reports
    name: str  # the vendor, as accelerators and catalogue rows carry it
    probe: Callable[[Host], ProbedDevices]
    # lists its software that is installed, whether or not a device is there for it
    stacks: Callable[[Host], tuple[Stack, ...]] = lambda _: ()
    # opens its devices for live readings, with details that no graph shows if the second argument says so; None where
    # nothing can be read
    sensors: Callable[[Host, bool], Sensors] | None = None
    # describes the processor of its machines where the kernel has no files for that
    processor: Callable[[Host], Cpu] | None = None
    packages: tuple[str, ...] = ()  # Python packages that reach its devices, named in reports where they are installed
    torch_backend: str = ""
    # commands of its probe, for recordings of machines that the program does not run on
    asked: tuple[tuple[str, ...], ...] = ()
    read: tuple[str, ...] = ()  # files that it reads, or whose names it looks for, as patterns of a shell, for the same
    folders: tuple[str, ...] = ()  # where those commands lie besides the search path


NO_ANSWERS = frozenset({"", "n/a", "[n/a]", "[not supported]", "[unknown error]", "not supported", "unknown", "none"})
MEBIBYTE = 1 << 20


def listed_in(host: Host, index: int, *variables: str) -> Fact[bool]:
    """Return whether the first of some variables that is set names a device; all are visible where none is."""
    for variable in variables:
        if variable in host.environment:
            entries = (entry.strip().partition(".")[0] for entry in host.environment[variable].split(","))
            return detected(str(index) in entries, f"environment {variable}")
    return detected(True, f"{' and '.join(variables)} {'are' if len(variables) > 1 else 'is'} not set")


def csv_rows(text: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a comma-separated table with a header; units in brackets stay in the names."""
    reader = csv.DictReader(text.strip().splitlines(), skipinitialspace=True)
    return tuple({str(key).strip(): str(value or "").strip() for key, value in row.items()} for row in reader)


def first_value(row: Mapping[str, str], *names: str) -> str | None:
    """Return the first of several columns that holds an answer."""
    values = (row[name] for name in names if name in row)
    return next((text for text in values if text.strip().lower() not in NO_ANSWERS), None)


def number(row: Mapping[str, str], *names: str) -> float | None:
    """Return the first of several columns as a number, whatever unit stands behind it."""
    text = first_value(row, *names)
    match = re.match(r"\(?([\d.]+)", text) if text else None
    return float(match[1]) if match else None
