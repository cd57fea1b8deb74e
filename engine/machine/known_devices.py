"""What is known of devices: their ids in the catalogue by the names that drivers give, and what each generation has."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.machine.facts import Fact, missing
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Accelerator, DiskKind


SOURCE = "profiles/device_names.yaml"
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class AcceleratorName:
    """What a catalogue accelerator is called by its driver."""

    id: str
    pattern: str  # matches the whole name without the vendor's, in any case
    memory_mib: int | None = None  # memory the driver reports; one that differs by more than the tolerance is another
    pci: Sequence[str] = ()  # PCI ids ``vendor:device`` or ``vendor:device:revision``

    def fits(self, memory_bytes: int | None, tolerance: float) -> bool:
        """Return whether a memory size agrees; unknown sizes do not contradict."""
        if self.memory_mib is None or memory_bytes is None:
            return True
        return abs(memory_bytes / MEBIBYTE / self.memory_mib - 1) <= tolerance


@dataclass(frozen=True, slots=True)
class Simd:
    """An instruction set extension."""

    flag: str
    name: str
    bits: int  # its vector width, 0 where it has none
    type: str = ""  # the number type it multiplies besides those of the vectors, empty where none
    flops_per_cycle: float | None = None  # of one core in that type; None where ``times_fp32`` is given
    times_fp32: float = 1.0  # rate in that type over the vectors' rate in fp32


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


def match_accelerator(name: str, memory_bytes: int | None) -> Fact[str]:
    """Return the catalogue id of an accelerator by its driver's name and its memory in bytes."""
    names = device_names()
    plain = plain_name(name)
    named = [row for row in names.accelerators if re.fullmatch(row.pattern, plain, re.IGNORECASE)]
    return _only(named, f"name {name!r}", memory_bytes)


def match_named(name: Fact[str], memory_bytes: int | None = None) -> Fact[str]:
    """Return the catalogue id of an accelerator by its name, if any, and its memory where that is its own."""
    return name.then(lambda text: match_accelerator(text, memory_bytes))


def match_pci(identifier: str, memory_bytes: int | None) -> Fact[str]:
    """Return the catalogue id of an accelerator by ``vendor:device:revision`` in lower-case hex."""
    device = identifier.rpartition(":")[0]
    rows = device_names().accelerators
    named = [row for row in rows if identifier in row.pci] or [row for row in rows if device in row.pci]
    return _only(named, f"PCI id {identifier}", memory_bytes)


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


def _only(named: Sequence[AcceleratorName], what: str, memory_bytes: int | None) -> Fact[str]:
    fitting = [row for row in named if row.fits(memory_bytes, device_names().tolerance)]
    if len(fitting) == 1:
        return Fact(fitting[0].id, "catalogue", SOURCE)
    if not named:
        return missing(SOURCE, f"no catalogue row for {what}")
    ids = ", ".join(row.id for row in fitting or named)
    if fitting:
        return missing(SOURCE, f"{what} fits {ids}; its memory is unknown")
    size = f"{(memory_bytes or 0) / (1 << 30):.1f} GiB"
    return missing(SOURCE, f"{what} is {ids} in the catalogue, but this device has {size}")


@lru_cache(maxsize=1)
def device_names() -> DeviceNames:
    """Return the bundled table of device names."""
    data = parse_shipped("device_names.yaml")
    makers = "|".join(map(re.escape, data["makers"]))
    return DeviceNames(
        makers=re.compile(rf"^(?:{makers})\s+", re.IGNORECASE),
        cpu_vendors={row["id"]: row["name"] for row in data["cpu_vendors"]},
        tolerance=data["memory_tolerance"],
        accelerators=tuple(AcceleratorName(**row) for row in data["accelerators"]),
        cpus=tuple((row["id"], row["pattern"]) for row in data["cpus"]),
        disks=tuple((row["kind"], row["pattern"]) for row in data["disks"]),
        arm_parts={row["part"]: row["name"] for row in data["arm_parts"]},
        simd=tuple(Simd(**row) for row in data["simd"]),
        x86_models=tuple(_x86_model(row) for row in data["x86_models"]),
        server_cpus=re.compile(data["server_cpus"], re.IGNORECASE),
    )


def _x86_model(row: Mapping[str, Any]) -> X86Model:
    models, steppings = (parse_cpu_list(str(row.get(key, ""))) for key in ("models", "steppings"))
    return X86Model(row["name"], row["vendor"], row["family"], models, steppings)


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


SETTINGS_SOURCE = "profiles/hardware_settings.yaml"
BY_GENERATION = missing(SETTINGS_SOURCE, "no row for this generation")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a framework or of the system, and why it has that value."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Generation:
    """What all devices of a generation share; patterns are kept as text, since a plan asks for few of them."""

    id: str
    name: str
    vendor: str
    precisions: tuple[str, ...]  # types with units of their own
    settings: tuple[Setting, ...]
    target: str | None = None  # matches the whole compute capability or compiler target; None where only names do
    device: str | None = None  # matches the whole device name without its vendor; None where the target identifies it
    matrix_units: str = ""  # what multiplies matrices; empty if nothing special does
    # matches the names of devices that cannot read each other's memory over PCIe; None for no device
    no_peer_access: str | None = None
    collectives: str | None = None  # row of the section of that name; None where it is the vendor's

    def covers(self, vendor: str, name: str, target: str | None) -> bool:
        """Return whether a device belongs here, by its vendor, name and compute capability or compiler target."""
        if vendor != self.vendor:
            return False
        if is_called(self.device, plain_name(name)):
            return True
        return target is not None and is_called(self.target, target)


def is_called(pattern: str | None, name: str) -> bool:
    """Return whether a pattern matches the whole of a name, in any case; none matches nothing."""
    return pattern is not None and re.fullmatch(pattern, name, re.IGNORECASE) is not None


@lru_cache(maxsize=256)
def find_generation(vendor: str, name: str, target: str | None) -> Generation | None:
    """Return the first generation that covers a device, None if no row does."""
    return next((row for row in generations() if row.covers(vendor, name, target)), None)


def generation_of(gpu: Accelerator) -> Generation | None:
    """Return the generation of a detected device, None if no row covers it."""
    return find_generation(gpu.vendor, gpu.name.value or "", gpu.compute_capability.value)


def with_abilities(gpu: Accelerator) -> Accelerator:
    """Return a device with the matrix units and number types of its generation."""
    row = generation_of(gpu)
    if row is None:
        return replace(gpu, matrix_units=BY_GENERATION, precisions=BY_GENERATION)
    units = (
        Fact(row.matrix_units, "catalogue", SETTINGS_SOURCE)
        if row.matrix_units
        else missing(SETTINGS_SOURCE, f"{row.name} has none")
    )
    return replace(gpu, matrix_units=units, precisions=Fact(row.precisions, "catalogue", SETTINGS_SOURCE))


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    return parse_shipped("hardware_settings.yaml")


@lru_cache(maxsize=1)
def generations() -> tuple[Generation, ...]:
    """Return the rows of the table in its order; earlier ones win."""
    return tuple(
        Generation(**{**row, "precisions": tuple(row["precisions"]), "settings": settings_of(row["settings"])})
        for row in table()["generations"]
    )


def usable_memory(vendor: str, name: str, total_bytes: float, release: int | None = None) -> tuple[float, str]:
    """Return what a device may use of main memory that it shares, and in words who says so; empty where it is all.

    Args:
        release: first number of the system's release; None for the current one.
    """
    for row in table()["unified_memory"]:
        covers = row["vendor"] == vendor and is_called(row["device"], name)
        if covers and ("before" not in row or (release is not None and release < row["before"])):
            sizes = ((size["up_to_gib"] or math.inf, size["share"]) for size in row["sizes"])
            usable = total_bytes * next(share for most, share in sizes if total_bytes <= most * 2**30)
            return usable, row["words"].format(usable=format_bytes(usable), total=format_bytes(total_bytes))
    return total_bytes, ""


@dataclass(frozen=True, slots=True)
class Collectives:
    """The library that devices talk through: its name in PyTorch, why, and the settings of links that it takes."""

    backend: str
    reason: str
    links: tuple[str, ...]


def collectives_of(gpu: Accelerator) -> Collectives:
    """Return the library of a device's generation, else of its vendor, else that of processors."""
    generation, rows = generation_of(gpu), table()["collectives"]
    named = generation.collectives if generation is not None and generation.collectives else gpu.vendor
    row = rows.get(named, rows["none"])
    return Collectives(row["backend"], row["reason"], tuple(row.get("links", ())))


@dataclass(frozen=True, slots=True)
class DataCentre:
    """A vendor's cards for servers and workstations: ``device`` matches their names without the vendor's."""

    vendor: str
    device: str
    settings: tuple[Setting, ...]

    def covers(self, vendor: str, name: str) -> bool:
        return vendor == self.vendor and is_called(self.device, plain_name(name))


@lru_cache(maxsize=1)
def data_centre() -> DataCentre:
    """Return the section of the table about them."""
    row = table()["data_centre"]
    return DataCentre(row["vendor"], row["device"], settings_of(row["settings"]))


def power_limit_command(vendor: str, watts: float) -> str | None:
    """Return the command that limits the power of a vendor's devices; None where no tool of theirs does."""
    row = table()["power_limit"].get(vendor)
    return None if row is None else str(row.format(watts=round(watts)))


def lacks_peer_access(gpu: Accelerator) -> bool:
    """Return whether devices of this kind cannot read each other's memory over PCIe."""
    generation = generation_of(gpu)
    return generation is not None and is_called(generation.no_peer_access, gpu.name.value or "")


def templates(section: str) -> Mapping[str, Mapping[str, str]]:
    """Return the rows of one of the table's other sections, by key."""
    return cast("Mapping[str, Mapping[str, str]]", table()[section])


def settings_of(rows: Sequence[Mapping[str, object]]) -> tuple[Setting, ...]:
    """Return rows of name, value and reason as settings."""
    return tuple(Setting(str(row["name"]), str(row["value"]), str(row["reason"])) for row in rows)
