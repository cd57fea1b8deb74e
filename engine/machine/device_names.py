"""From what a driver calls a device to the catalogue's id for it; no match is None with a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.machine.facts import Fact, missing

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import DiskKind

SOURCE = "profiles/device_names.yaml"

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class AcceleratorName:
    """What a catalogue accelerator is called by its driver.

    Attributes:
        id: catalogue id.
        pattern: matches the whole name without the vendor's, in any case.
        memory_mib: memory the driver reports; a device that differs more than the tolerance is another.
        pci: PCI ids ``vendor:device`` or ``vendor:device:revision``.
    """

    id: str
    pattern: str
    memory_mib: int | None
    pci: tuple[str, ...]

    def fits(self, memory_bytes: int | None, tolerance: float) -> bool:
        """Return whether a memory size agrees; unknown sizes do not contradict."""
        if self.memory_mib is None or memory_bytes is None:
            return True
        return abs(memory_bytes / MEBIBYTE / self.memory_mib - 1) <= tolerance


@dataclass(frozen=True, slots=True)
class Simd:
    """An instruction set extension.

    Attributes:
        name: its usual name.
        bits: its vector width, 0 where it has none.
        type: the number type it multiplies besides those of the vectors, empty where none.
        flops_per_cycle: of one core in that type; None where ``times_fp32`` is given.
        times_fp32: rate in that type over the vectors' rate in fp32.
    """

    flag: str
    name: str
    bits: int
    type: str = ""
    flops_per_cycle: float | None = None
    times_fp32: float = 1.0


@dataclass(frozen=True, slots=True)
class X86Model:
    """A microarchitecture by the numbers that x86 processors carry; any stepping where none is listed."""

    name: str
    vendor: str
    family: int
    models: tuple[int, ...]
    steppings: tuple[int, ...]

    def fits(self, vendor: str, family: int, model: int, stepping: int) -> bool:
        """Return whether a processor is one of these."""
        listed = (vendor, family) == (self.vendor, self.family) and model in self.models
        return listed and (not self.steppings or stepping in self.steppings)


@dataclass(frozen=True, slots=True)
class DeviceNames:
    """The contents of device_names.yaml; ``makers`` matches a maker's name in front of a device's.

    The patterns of single devices are kept as text: there are hundreds, and most runs of the program ask for none.
    """

    makers: re.Pattern[str]
    cpu_vendors: Mapping[str, str]
    tolerance: float
    accelerators: tuple[AcceleratorName, ...]
    cpus: tuple[tuple[str, str], ...]
    disks: tuple[tuple[DiskKind, str], ...]
    arm_parts: Mapping[str, str]
    simd: tuple[Simd, ...]
    x86_models: tuple[X86Model, ...]
    server_cpus: re.Pattern[str]


def match_accelerator(name: str, memory_bytes: int | None, source: str = SOURCE) -> Fact[str]:
    """Return the catalogue id of an accelerator by its driver's name and its memory in bytes."""
    names = device_names()
    plain = plain_name(name)
    named = [row for row in names.accelerators if re.fullmatch(row.pattern, plain, re.IGNORECASE)]
    return _only(named, f"name {name!r}", memory_bytes, source)


def match_named(name: Fact[str]) -> Fact[str]:
    """Return the catalogue id of an accelerator by its name alone, missing where that is."""
    return match_accelerator(name.value, None) if name.value else missing(name.source, name.reason)


def match_pci(identifier: str, memory_bytes: int | None, source: str = SOURCE) -> Fact[str]:
    """Return the catalogue id of an accelerator by ``vendor:device:revision`` in lower-case hex."""
    device = identifier.rpartition(":")[0]
    rows = device_names().accelerators
    named = [row for row in rows if identifier in row.pci] or [row for row in rows if device in row.pci]
    return _only(named, f"PCI id {identifier}", memory_bytes, source)


def match_cpu(model: str) -> Fact[str]:
    """Return the catalogue id of a CPU by its model name."""
    plain = plain_name(model)
    for identifier, pattern in device_names().cpus:
        if re.search(pattern, plain, re.IGNORECASE):
            return Fact(identifier, "catalogue", SOURCE)
    return missing(SOURCE, f"no catalogue row for {model!r}")


def match_disk(model: str) -> DiskKind | None:
    """Return the kind of a disk known by its model name alone, such as a cloud volume."""
    disks = device_names().disks
    return next((kind for kind, pattern in disks if re.search(pattern, model, re.IGNORECASE)), None)


def plain_name(name: str) -> str:
    """Return a device's name without trade marks, the vendor's name and doubled blanks."""
    unmarked = re.sub(r"\((?:r|tm|c)\)|[®™]", " ", name, flags=re.IGNORECASE)
    return device_names().makers.sub("", " ".join(unmarked.split()))


def _only(named: Sequence[AcceleratorName], what: str, memory_bytes: int | None, source: str) -> Fact[str]:
    fitting = [row for row in named if row.fits(memory_bytes, device_names().tolerance)]
    if len(fitting) == 1:
        return Fact(fitting[0].id, "catalogue", source)
    if not named:
        return missing(source, f"no catalogue row for {what}")
    ids = ", ".join(row.id for row in fitting or named)
    if fitting:
        return missing(source, f"{what} fits {ids}; its memory is unknown")
    size = f"{(memory_bytes or 0) / (1 << 30):.1f} GiB"
    return missing(source, f"{what} is {ids} in the catalogue, but this device has {size}")


@lru_cache(maxsize=1)
def device_names() -> DeviceNames:
    """Return the bundled table of device names."""
    data: Mapping[str, list[dict[str, object]]] = parse_shipped(files("capacity_tui.profiles") / "device_names.yaml")
    makers = "|".join(re.escape(name) for name in cast("list[str]", data["makers"]))
    return DeviceNames(
        makers=re.compile(rf"^(?:{makers})\s+", re.IGNORECASE),
        cpu_vendors={str(row["id"]): str(row["name"]) for row in data["cpu_vendors"]},
        tolerance=float(cast("float", data["memory_tolerance"])),
        accelerators=tuple(_accelerator(row) for row in data["accelerators"]),
        cpus=tuple((str(row["id"]), str(row["pattern"])) for row in data["cpus"]),
        disks=tuple((cast("DiskKind", row["kind"]), str(row["pattern"])) for row in data["disks"]),
        arm_parts={str(row["part"]): str(row["name"]) for row in data["arm_parts"]},
        simd=tuple(Simd(**row) for row in data["simd"]),  # type: ignore[arg-type]  # the fields of the table
        x86_models=tuple(_x86_model(row) for row in data["x86_models"]),
        server_cpus=re.compile(str(data["server_cpus"]), re.IGNORECASE),
    )


def _x86_model(row: Mapping[str, object]) -> X86Model:
    models, steppings = (parse_cpu_list(str(row.get(key, ""))) for key in ("models", "steppings"))
    return X86Model(str(row["name"]), str(row["vendor"]), cast("int", row["family"]), models, steppings)


def _accelerator(row: Mapping[str, object]) -> AcceleratorName:
    return AcceleratorName(
        id=str(row["id"]),
        pattern=str(row["pattern"]),
        memory_mib=cast("int | None", row.get("memory_mib")),
        pci=tuple(cast("list[str]", row.get("pci", []))),
    )


MOST_CPUS = 1 << 16  # Linux is built for 8192 at most; a longer list is damaged


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Return the numbers in a kernel list such as ``0-3,8``; raises ValueError, also for a list without bounds."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first:
            listed = range(int(first), int(last or first) + 1)
            if len(numbers) + len(listed) > MOST_CPUS:
                raise ValueError(f"more than {MOST_CPUS} CPUs listed")
            numbers.extend(listed)
    return tuple(numbers)
