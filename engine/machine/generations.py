"""Hardware generations: which matrix units and number types each has, and the settings that suit it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.machine.device_names import plain_name
from capacity_tui.engine.machine.facts import Fact, missing

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Accelerator

SOURCE = "profiles/hardware_settings.yaml"
BY_GENERATION = missing(SOURCE, "no row for this generation")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a framework or of the system, and why it has that value."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Generation:
    """What all devices of a generation share.

    Attributes:
        target: matches the whole compute capability or compiler target; None where only names identify it.
        device: matches the whole device name without its vendor; None where the target identifies it.
        matrix_units: what multiplies matrices; empty if nothing special does.
        precisions: types with units of their own.
        no_peer_access: matches the names of devices that cannot read each other's memory over PCIe; None for no device.
        collectives: row of the section of that name; None where it is the vendor's.
    """

    id: str
    name: str
    vendor: str
    target: re.Pattern[str] | None
    device: re.Pattern[str] | None
    matrix_units: str
    precisions: tuple[str, ...]
    settings: tuple[Setting, ...]
    no_peer_access: re.Pattern[str] | None = None
    collectives: str | None = None

    def covers(self, vendor: str, name: str, target: str | None) -> bool:
        """Return whether a device belongs here, by its vendor, name and compute capability or compiler target."""
        if vendor != self.vendor:
            return False
        if self.device is not None and self.device.fullmatch(plain_name(name)):
            return True
        return self.target is not None and target is not None and self.target.fullmatch(target) is not None


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
    units = Fact(row.matrix_units, "catalogue", SOURCE) if row.matrix_units else missing(SOURCE, f"{row.name} has none")
    return replace(gpu, matrix_units=units, precisions=Fact(row.precisions, "catalogue", SOURCE))


@lru_cache(maxsize=1)
def table() -> Mapping[str, object]:
    """Return the bundled table."""
    return parse_shipped(files("capacity_tui.profiles") / "hardware_settings.yaml")


@lru_cache(maxsize=1)
def generations() -> tuple[Generation, ...]:
    """Return the rows of the table in its order; earlier ones win."""
    rows = cast("Sequence[Mapping[str, object]]", table()["generations"])
    return tuple(
        Generation(
            id=str(row["id"]),
            name=str(row["name"]),
            vendor=str(row["vendor"]),
            target=_pattern(row, "target"),
            device=_pattern(row, "device"),
            matrix_units=str(row.get("matrix_units") or ""),
            precisions=tuple(cast("Sequence[str]", row["precisions"])),
            settings=settings_of(cast("Sequence[Mapping[str, object]]", row["settings"])),
            no_peer_access=_pattern(row, "no_peer_access"),
            collectives=cast("str | None", row.get("collectives")),
        )
        for row in rows
    )


@dataclass(frozen=True, slots=True)
class UnifiedShare:
    """What part of main memory a GPU that shares it may hold, for machines up to a size."""

    up_to_bytes: int | None
    share: float


@lru_cache(maxsize=1)
def unified_shares() -> tuple[UnifiedShare, ...]:
    """Return the shares by size of memory, smallest machines first."""
    rows = cast("Sequence[Mapping[str, float | None]]", table()["unified_memory"])
    sizes = (row["up_to_gib"] for row in rows)
    limits = (None if size is None else int(size * 2**30) for size in sizes)
    return tuple(UnifiedShare(limit, float(row["share"] or 0)) for limit, row in zip(limits, rows, strict=True))


@dataclass(frozen=True, slots=True)
class Collectives:
    """The library that devices talk through: its name in PyTorch, why, and the settings of links that it takes."""

    backend: str
    reason: str
    links: tuple[str, ...]


def collectives_of(gpu: Accelerator) -> Collectives:
    """Return the library of a device's generation, else of its vendor, else that of processors."""
    generation, rows = generation_of(gpu), cast("Mapping[str, Mapping[str, object]]", table()["collectives"])
    named = generation.collectives if generation is not None and generation.collectives else gpu.vendor
    row = rows.get(named, rows["none"])
    return Collectives(str(row["backend"]), str(row["reason"]), tuple(cast("Sequence[str]", row.get("links", ()))))


@dataclass(frozen=True, slots=True)
class DataCentre:
    """A vendor's cards for servers and workstations: ``device`` matches their names without the vendor's."""

    vendor: str
    device: re.Pattern[str]
    settings: tuple[Setting, ...]

    def covers(self, vendor: str, name: str) -> bool:
        """Return whether a device is one of them."""
        return vendor == self.vendor and self.device.fullmatch(plain_name(name)) is not None


@lru_cache(maxsize=1)
def data_centre() -> DataCentre:
    """Return the section of the table about them."""
    row = cast("Mapping[str, object]", table()["data_centre"])
    pattern = re.compile(str(row["device"]), re.IGNORECASE)
    return DataCentre(str(row["vendor"]), pattern, settings_of(cast("Sequence[Mapping[str, object]]", row["settings"])))


def power_limit_command(vendor: str, watts: float) -> str | None:
    """Return the command that limits the power of a vendor's devices; None where no tool of theirs does."""
    row = cast("Mapping[str, str]", table()["power_limit"]).get(vendor)
    return None if row is None else row.format(watts=round(watts))


def lacks_peer_access(gpu: Accelerator) -> bool:
    """Return whether devices of this kind cannot read each other's memory over PCIe."""
    generation = generation_of(gpu)
    names = None if generation is None else generation.no_peer_access
    return names is not None and names.fullmatch(gpu.name.value or "") is not None


def templates(section: str) -> Mapping[str, Mapping[str, str]]:
    """Return the rows of one of the table's other sections, by key."""
    return cast("Mapping[str, Mapping[str, str]]", table()[section])


def settings_of(rows: Sequence[Mapping[str, object]]) -> tuple[Setting, ...]:
    """Return rows of name, value and reason as settings."""
    return tuple(Setting(str(row["name"]), str(row["value"]), str(row["reason"])) for row in rows)


def _pattern(row: Mapping[str, object], key: str) -> re.Pattern[str] | None:
    return re.compile(str(row[key]), re.IGNORECASE) if key in row else None
