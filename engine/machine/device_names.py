"""From what a driver calls a device to the catalogue's id for it; no match is None with a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import cast

from capacity_tui.engine.machine.facts import Fact, missing
from capacity_tui.engine.machine.host_files import parse_cpu_list
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
    pattern: re.Pattern[str]
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
        flag: the kernel's name of it.
        name: its usual name.
        bits: its vector width, 0 where it has none of its own.
        type: the number type it multiplies beside the vectors' own, empty where none.
        flops_per_cycle: of one core in that type; None where ``times_fp32`` tells.
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
    """The contents of device_names.yaml; ``makers`` matches a maker's name in front of a device's."""

    makers: re.Pattern[str]
    cpu_vendors: Mapping[str, str]
    tolerance: float
    accelerators: tuple[AcceleratorName, ...]
    cpus: tuple[tuple[str, re.Pattern[str]], ...]
    disks: tuple[tuple[DiskKind, re.Pattern[str]], ...]
    arm_parts: Mapping[str, str]
    simd: tuple[Simd, ...]
    x86_models: tuple[X86Model, ...]
    server_cpus: re.Pattern[str]


def match_accelerator(name: str, memory_bytes: int | None, source: str = SOURCE) -> Fact[str]:
    """Return the catalogue id of an accelerator by its driver's name and its memory in bytes."""
    names = device_names()
    plain = plain_name(name)
    named = [row for row in names.accelerators if row.pattern.fullmatch(plain)]
    return _only(named, f"name {name!r}", memory_bytes, source)


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
        if pattern.search(plain):
            return Fact(identifier, "catalogue", SOURCE)
    return missing(SOURCE, f"no catalogue row for {model!r}")


def match_disk(model: str) -> DiskKind | None:
    """Return the kind of a disk whose model name alone tells it, such as a cloud volume."""
    return next((kind for kind, pattern in device_names().disks if pattern.search(model)), None)


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
    """Return the bundled table of device names.

    Read without the catalogue's reader, whose checks load pydantic and would double the time of detection.
    """
    import yaml  # noqa: PLC0415 - 15 ms that a screen's first paint must not wait for

    text = files("capacity_tui.profiles").joinpath("device_names.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = cast("dict[str, list[dict[str, object]]]", yaml.load(text, Loader=loader))  # noqa: S506 - both are safe loaders
    makers = "|".join(re.escape(name) for name in cast("list[str]", data["makers"]))
    return DeviceNames(
        makers=re.compile(rf"^(?:{makers})\s+", re.IGNORECASE),
        cpu_vendors={str(row["id"]): str(row["name"]) for row in data["cpu_vendors"]},
        tolerance=float(cast("float", data["memory_tolerance"])),
        accelerators=tuple(_accelerator(row) for row in data["accelerators"]),
        cpus=tuple((str(row["id"]), _pattern(row)) for row in data["cpus"]),
        disks=tuple((cast("DiskKind", row["kind"]), _pattern(row)) for row in data["disks"]),
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
        pattern=_pattern(row),
        memory_mib=cast("int | None", row.get("memory_mib")),
        pci=tuple(cast("list[str]", row.get("pci", []))),
    )


def _pattern(row: Mapping[str, object]) -> re.Pattern[str]:
    return re.compile(str(row["pattern"]), re.IGNORECASE)
