"""Entries of the fleet guide's files, read field by field as rows of the catalogue, with remarks and problems."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, ValidationError

from capacity_tui.engine.catalog.reading import Document, KeyPath, brandless_key_of, read_text, read_yaml
from capacity_tui.engine.catalog.rows.base import IDENTIFIES, Informational
from capacity_tui.engine.catalog.rows.devices import Accelerator, Instance
from capacity_tui.engine.catalog.rows.prices import day_of_file
from capacity_tui.engine.catalog.table import Table, refusals
from capacity_tui.engine.errors import CapacityError, CatalogError, DocumentError, Place
from capacity_tui.engine.printable import printable
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import GIGA, format_money


@dataclass(frozen=True)
class Remark:
    """Something that was read otherwise than it is written, or not at all."""

    place: Place  # where it stands
    words: str  # how it was read, and why

    def one_line(self) -> str:
        """Return place and words as one line."""
        return f"{self.place}: {self.words}"


@dataclass
class FleetFileContent:
    """Content of the files, collected."""

    # rows by table, each of them with the lines of its file
    documents: dict[str, list[Document]] = field(default_factory=dict)
    aliases: dict[str, dict[str, str]] = field(default_factory=dict)  # names by table, and the ids that they stand for
    problems: list[CapacityError] = field(default_factory=list)  # what cannot be used; what stands beside it can
    remarks: list[Remark] = field(default_factory=list)  # what was read otherwise than it is written

    def add(self, table: str, document: Document, rows: Mapping[str, tuple[KeyPath, Any]]) -> None:
        """Add rows to a table: by id, where each stands in the document, and its fields."""
        lines: dict[KeyPath, int] = {}
        for row_id, (path, _) in rows.items():
            depth = len(path)
            lines[(row_id,)] = document.place(*path).line or 1
            lines |= {(row_id, *key[depth:]): line for key, line in document.lines.items() if key[:depth] == path}
        data = {row_id: fields for row_id, (_, fields) in rows.items()}
        self.documents.setdefault(table, []).append(Document(data, document.file, lines))


_TEXT_OR_NOT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/|\t', re.DOTALL)
_COMMA_TOO_MANY = re.compile(r",(?=\s*[}\]])")
_VISIBLE = re.compile(r"[^\n]")


def read_commented_json(path: Path) -> Document:
    """Return the data of a JSON file; comments (``//`` and ``/* */``) and commas too many do no harm."""
    # Without its comments JSON is YAML; what is taken out leaves blanks, so that lines stay what they are.
    plain = _TEXT_OR_NOT.sub(lambda match: match[1] or _VISIBLE.sub(" ", match[0]), read_text(path))
    try:
        return read_yaml(plain, str(path))
    except DocumentError as error:
        if error.title != "not valid YAML":
            raise
        raise _in_words_of_json(plain, error) from None


def _in_words_of_json(plain: str, error: DocumentError) -> DocumentError:
    """Return a fault of a file as a reader of JSON has it; as it was where that one finds none."""
    hint = "look for a comma or a quote"
    try:
        json.loads(_COMMA_TOO_MANY.sub(" ", plain))
    except json.JSONDecodeError as fault:
        place = Place(error.place.file, fault.lineno)
        return DocumentError("not valid JSON", f"{fault.msg}, column {fault.colno}", hint, place)
    return DocumentError("not valid JSON", error.detail, hint, error.place)


_ALIKE = 0.1  # How far figures of one thing may differ, as a share
_FACTORS = ("memory_bandwidth_factor", "interconnect_multiplier")


def add_instances(
    content: FleetFileContent,
    instances: Table[Instance],
    accelerators: Table[Accelerator],
    document: Document,
    at: KeyPath,
) -> None:
    """Add the instances of a file, whose entries stand ``at`` a path of it."""
    data: Any = document.data
    for step in at:
        data = data[step]
    rows: dict[str, tuple[KeyPath, Any]] = {}
    for name, given in data.items():
        path = (*at, name)
        try:
            entry = InstanceEntry.model_validate(given)
        except ValidationError as error:
            content.problems += refusals(error, InstanceEntry, document, path, CatalogError)
            continue
        reading = _Reading(name, entry, document, path, content)
        known = instances.known(name)
        entry_row = reading.known(known, instances, accelerators) if known else reading.own(accelerators)
        if entry_row is not None:
            rows[entry_row[0]] = (path, entry_row[1])
    content.add("instances", document, rows)


class _Reading:
    """One entry of the file, and what is stated of it."""

    def __init__(
        self, name: str, entry: InstanceEntry, document: Document, path: KeyPath, content: FleetFileContent
    ) -> None:
        self.name, self.entry, self.document, self.path, self.content = name, entry, document, path, content

    def known(
        self, row: Instance, instances: Table[Instance], accelerators: Table[Accelerator]
    ) -> tuple[str, dict[str, Any]]:
        """Return the row that an entry changes, and the fields it changes: what it costs."""
        self._tell_factors()
        meant = self._meant(row, instances)
        if meant.id != row.id:
            self.content.aliases.setdefault("instances", {})[self.name] = meant.id
        if meant.accelerator is not None:
            self._compare(meant, accelerators[meant.accelerator])
        return meant.id, self._prices(self._share(meant) or 1.0)

    def own(self, accelerators: Table[Accelerator]) -> tuple[str, dict[str, Any]] | None:
        """Return the row of an instance nobody else has; None where too little is stated of it."""
        entry = self.entry
        if entry.gpu_type is None or entry.gpu_memory_gb is None:
            missing = "gpu_type" if entry.gpu_type is None else "gpu_memory_gb"
            detail = f"no instance is called {printable(self.name)!r}, and a new one needs {missing}"
            self.content.problems.append(
                CatalogError("a field is missing", detail, "add it, or correct the name", self._at())
            )
            return None
        self._tell_factors()
        device = accelerator_of(entry.gpu_type, entry.gpu_memory_gb, accelerators)
        if device is None:
            device = self._new_device(entry, entry.gpu_type, entry.gpu_memory_gb, accelerators)
        elif entry.compute_tflops:
            self._compare_peak(accelerators[device], entry.compute_tflops)
        count = entry.gpus_per_instance
        if count is None:
            self._tell("gpus_per_instance", "not given: one GPU")
        fields: dict[str, Any] = {
            "name": entry.name or self.name,
            "provider": "own",
            "accelerator": device,
            "accelerator_count": count or 1,
            "accelerator_memory_gb": entry.gpu_memory_gb,
            "vcpus": entry.vcpus,
            "in_node_link": entry.interconnect_type,
            "in_node_gbs": self._direction(),
            **self._prices(1.0),
        }
        return self.name, {key: value for key, value in fields.items() if value is not None}

    def _meant(self, row: Instance, instances: Table[Instance]) -> Instance:
        """Return the size of an instance that an entry is about, by its GPUs and by its price."""
        count, usd = self.entry.gpus_per_instance, self.entry.on_demand_cost_per_hour
        if count is None or count == row.sold_devices:
            return row
        others = [
            size
            for size in instances.where("accelerator", row.accelerator)
            if size.provider == row.provider and size.accelerator_count == count
        ]
        priced = [size for size in (row, *others) if size.on_demand_usd_per_hour]
        if usd is None or not priced:
            return others[0] if others else row

        def distance(size: Instance) -> float:
            return abs(math.log(usd / (size.on_demand_usd_per_hour or usd)))

        meant = min(priced, key=distance)
        if meant is row:
            dearer = min(others, key=distance, default=None)
            note = f"; {dearer.name} with {count} costs {_usd(dearer)}" if dearer else ""
            words = f"{count} GPUs, but a price of {row.name} with {row.sold_devices} ({_usd(row)}){note}"
            self._tell("gpus_per_instance", f"{words}: read as the price of {row.name}")
        return meant

    def _share(self, row: Instance) -> float | None:
        """Return by what prices are multiplied: all GPUs where they are plainly those of one; None as they are."""
        usd, known, count = self.entry.on_demand_cost_per_hour, row.on_demand_usd_per_hour, row.sold_devices
        if usd is None or known is None or count == 1 or not 0.6 < usd * count / known < 1.6:
            return None
        words = f"{format_money(usd)} is the price of one GPU: {row.name} has {count} and costs {_usd(row)}"
        self._tell("on_demand_cost_per_hour", f"{words}; read as {format_money(usd * count)} for the instance")
        return float(count)

    def _prices(self, times: float) -> dict[str, Any]:
        """Return the prices of an entry, of the day on which its file was written."""
        entry = self.entry
        prices = {
            "on_demand_usd_per_hour": entry.on_demand_cost_per_hour,
            "spot_usd_per_hour": entry.spot_cost_per_hour,
        }
        fields: dict[str, Any] = {key: usd * times for key, usd in prices.items() if usd is not None}
        if fields and self.document.file:
            day = day_of_file(Path(self.document.file)).isoformat()
            dates = {"on_demand_usd_per_hour": "price_date", "spot_usd_per_hour": "spot_price_date"}
            fields |= {dates[key]: day for key in tuple(fields)}
        return fields

    def _compare(self, row: Instance, device: Accelerator) -> None:
        """Tell where figures of an entry are not those of its hardware: those of the hardware are used."""
        entry = self.entry
        memory = row.accelerator_memory_gb
        if entry.gpu_memory_gb and memory and not _nearly_equal(entry.gpu_memory_gb, memory):
            self._tell("gpu_memory_gb", f"{entry.gpu_memory_gb:g} GB: a {device.name} of {row.name} has {memory:g}")
        if entry.vcpus and row.vcpus and entry.vcpus != row.vcpus:
            self._tell("vcpus", f"{entry.vcpus}: {row.name} has {row.vcpus}")
        if entry.compute_tflops:
            self._compare_peak(device, entry.compute_tflops)
        if entry.interconnect_bandwidth_gbps:
            self._compare_link(row, device, entry.interconnect_bandwidth_gbps)

    def _compare_peak(self, device: Accelerator, tflops: float) -> None:
        dense = device.fp16_tflops or device.bf16_tflops or device.fp32_tflops
        if dense is None or _nearly_equal(tflops, dense):
            return
        sparse = device.fp16_marketed_sparse_tflops or 2 * dense
        what = "the headline with sparsity" if _nearly_equal(tflops, sparse) else "not what its datasheet says"
        self._tell("compute_tflops", f"{tflops:g} is {what}: {device.name} reaches {dense:g} dense, which is used")

    def _compare_link(self, row: Instance, device: Accelerator, stated: float) -> None:
        link = row.in_node_gbs if row.in_node_gbs else device.link_gbs
        if not device.link_gbs:
            path = f"{link:g} GB/s per direction over {row.in_node_link or 'PCIe'}" if link else "PCIe alone"
            words = f"GB/s: {device.name} has no such link: {path} is used"
        elif link and _nearly_equal(stated, 2 * link):
            words = f"is GB/s in both directions together: {link:g} GB/s per direction is used"
        elif link:
            words = f"is neither Gbit/s nor GB/s of {device.name}: its {link:g} GB/s per direction is used"
        self._tell("interconnect_bandwidth_gbps", f"{stated:g} {words}")

    def _direction(self) -> float | None:
        """Return what one direction of the links of a new instance carries, GB/s."""
        stated = self.entry.interconnect_bandwidth_gbps
        if stated is None:
            return None
        words = f"{stated:g} is read as GB/s in both directions together, as the guide has them: {stated / 2:g} each"
        self._tell("interconnect_bandwidth_gbps", words)
        return stated / 2

    def _new_device(
        self, entry: InstanceEntry, gpu_type: str, memory_gb: float, accelerators: Table[Accelerator]
    ) -> str:
        """Add the accelerator of a new instance, and return its id."""
        row_id = "-".join(gpu_type.lower().split())
        fields: dict[str, Any] = {
            "name": gpu_type,
            "vendor": gpu_type.split(maxsplit=1)[0] if gpu_type.split() else gpu_type,
            "memory_mib": int(memory_gb * 1e9 / 2**20),
            "memory_mib_assumed": True,
            "link_gbs": None if entry.interconnect_bandwidth_gbps is None else entry.interconnect_bandwidth_gbps / 2,
        }
        if entry.compute_tflops:
            peak = entry.compute_tflops / 2
            near = nearest_accelerator(peak, memory_gb, accelerators)
            fields |= {"fp16_tflops": peak, "bf16_tflops": peak, "bandwidth_gbs": near.bandwidth_gbs}
            words = f"not in these files: {near.bandwidth_gbs:g} GB/s of {near.name}, the nearest in peak and memory"
            self._tell("gpu_type", f"memory bandwidth is {words}; a row of accelerators.yaml can say it")
            words = f"{entry.compute_tflops:g} is read as the headline with sparsity, as the guide has them: {peak:g}"
            self._tell("compute_tflops", f"{words} dense; a row of accelerators.yaml can say it exactly")
        known = {key: value for key, value in fields.items() if value is not None}
        self.content.add("accelerators", self.document, {row_id: (self.path, known)})
        return row_id

    def _tell_factors(self) -> None:
        for name in _FACTORS:
            if getattr(self.entry, name) is not None:
                self._tell(name, "not used: bandwidth and efficiency of the hardware itself stand in its place")

    def _tell(self, field: str, words: str) -> None:
        self.content.remarks.append(Remark(self.document.place(*self.path, field), words))

    def _at(self) -> Place:
        return self.document.place(*self.path)


def _nearly_equal(one: float, other: float) -> bool:
    return abs(one / other - 1) <= _ALIKE


def _usd(row: Instance) -> str:
    return f"{format_money(row.on_demand_usd_per_hour)}/h"


NOT_USED = Informational("is reported as not used: bandwidth and efficiency of the hardware itself stand in its place")


class InstanceEntry(BaseModel):
    """Fields under their names in the file; an entry may have any part of them.

    Units are what the file means, not what it says: TFLOPS are headlines with sparsity, the bandwidth of links is
    GB/s in both directions together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    name: str | None = None
    family: Annotated[str | None, IDENTIFIES] = None
    gpu_type: str | None = None
    vcpus: PositiveInt | None = None
    gpu_memory_gb: PositiveFloat | None = None
    gpus_per_instance: PositiveInt | None = None
    compute_tflops: PositiveFloat | None = None
    interconnect_type: Annotated[str | None, IDENTIFIES] = None
    interconnect_bandwidth_gbps: PositiveFloat | None = None
    on_demand_cost_per_hour: PositiveFloat | None = None
    spot_cost_per_hour: PositiveFloat | None = None
    memory_bandwidth_factor: Annotated[PositiveFloat | None, NOT_USED] = None
    interconnect_multiplier: Annotated[PositiveFloat | None, NOT_USED] = None
    description: Annotated[str | None, IDENTIFIES] = None


_SAME_MEMORY = 0.1


def accelerator_of(name: str, memory_gb: float, accelerators: Table[Accelerator]) -> str | None:
    """Return the id of a device of a name, as ``NVIDIA H100``, with such a memory; None where there is none."""
    for spelled in (f"{name} {memory_gb:g}GB", name):
        row = accelerators.known(spelled)
        if row is not None and _has(row, memory_gb):
            return row.id
    key = brandless_key_of(name, accelerators.brands)
    alike = (row_id for row_id in accelerators if key and brandless_key_of(row_id, accelerators.brands).startswith(key))
    return next((row_id for row_id in alike if _has(accelerators[row_id], memory_gb)), None)


def nearest_accelerator(tflops: float, memory_gb: float, accelerators: Table[Accelerator]) -> Accelerator:
    """Return the known device that is nearest in its dense 16-bit peak and its memory."""
    known = [row for row in accelerators.values() if row.fp16_tflops and row.bandwidth_gbs]

    def distance(row: Accelerator) -> float:
        memory = row.memory_marketed or row.memory_bytes / GIGA
        return abs(math.log((row.fp16_tflops or tflops) / tflops)) + abs(math.log(memory / memory_gb))

    return min(known, key=distance)


def _has(row: Accelerator, memory_gb: float) -> bool:
    return abs((row.memory_marketed or row.memory_bytes / GIGA) / memory_gb - 1) <= _SAME_MEMORY
