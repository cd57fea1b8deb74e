"""Words of a line that name hardware: by name and number, or by the figures of a device of one's own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from capacity_tui.engine.catalog import Accelerator, Catalog, Instance, Row, Table, key_of
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon.processor_words import counts_none, nearest_processor, numbered_processor
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import WHOSE_MEMORY, Meaning
from capacity_tui.engine.plan.plan import DETECTED

NAME, DEVICES, PER_NODE = Key.HARDWARE_NAME, Key.HARDWARE_DEVICES, Key.HARDWARE_PER_NODE
MEMORY = "memory_mib"  # Key of a device's memory in a spec; of a processor it is the main memory
SPEC = Key.HARDWARE_SPEC
HOST_MEMORY = f"{SPEC}.host_memory_gib"
_COUNTS = (
    re.compile(r"(?P<count>\d{1,7})\s*[x×*]\s*(?P<name>\S.*)", re.IGNORECASE),
    re.compile(r"(?P<name>[^\s].*?)\s*[x×*]\s*(?P<count>\d{1,7})", re.IGNORECASE),
)
_NODES = (  # 2x8xh100, 2x8 h100, 2x h100*8
    re.compile(r"(?i)(?P<nodes>\d{1,4})\s*[x×*]\s*(?P<count>\d{1,2})(?:\s+(?!x\s)(?=[a-z])|\s*[x×*]\s*)(?P<name>\w.*)"),
    re.compile(r"(?i)(?P<nodes>\d{1,4})\s*[x×*\s]\s*(?P<name>\w.*?)\s*[x×*]\s*(?P<count>\d{1,2})"),
)
_SOCKETS = re.compile(r"(?P<count>[1248])[sp]\s+(?P<name>[a-z].*)", re.IGNORECASE)  # 2S xeon 8480
_NEAR_A_NUMBER = re.compile(r"(?P<count>\d{1,3})\s+(?P<name>\d{4}(?!\d).*)")  # 2 4090; a larger number is a length
_GLUED = re.compile(r"(?P<count>\d{1,7})\s*(?!(?<=\d)[a-z]\s)(?P<name>[a-z].*)", re.IGNORECASE)  # but 768p 5 epochs
_OWN = re.compile(r"(?:gpu|device|card|custom|accelerator)?\((?P<figures>[^()]*)\)?", re.IGNORECASE)
_FIGURE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z/]+)", re.IGNORECASE)
_RATES = {"gb/s": 1.0, "gbps": 1.0, "gbs": 1.0, "tb/s": 1e3, "tbps": 1e3, "tbs": 1e3}
_PEAKS = {
    **dict.fromkeys(("tf", "tflop", "tflops", "tflop/s", "tflops/s"), 1.0),
    **dict.fromkeys(("pf", "pflop", "pflops", "pflop/s"), 1e3),
}
_POWER = {"w": 1.0, "watt": 1.0, "watts": 1.0, "kw": 1e3}
MIB_OF_GIB = 1024
_SIZES = {"mib": 1, "mb": 1, "gib": 1024, "gb": 1024, "g": 1024, "tib": 1024**2, "tb": 1024**2}
"""MiB of a unit. Memory of devices is sold in binary units, whatever letter is missing: a card of 24 GB has 24 GiB."""
_LEAST_MEMORY = 1024  # MiB that any device or host has
_SAME_SIZE = 0.08  # Share by which the memory that a driver reports may differ from what a device is sold with
# Times the memory of a row that no card of its name has: sold with twice as much or half, stacked memory a stack more.
_MORE_THAN_ANY, _MORE_STACKS = 2.2, 1.5
_SIZE_BEHIND = re.compile(r"(?<=[a-z\d])-(\d{2,3})g?$", re.IGNORECASE)  # A memory that a name ends in, as ``a100-40``
_BARE_NAME = re.compile(r"\d{3,4}\s*[a-z][a-z0-9 ]*", re.IGNORECASE)  # A model number without its line: 1660 super
_SIZE_INSIDE = re.compile(r"(.+?)[\s-](\d{2,3}gb)[\s-](sxm\d?|pcie|nvl|ti|super|max|pro|ultra)", re.IGNORECASE)
"""A memory inside a name, as ``h100 80gb pcie``."""
LAPTOP, _MOBILE = "laptop", re.compile(r"\s*mobile$", re.IGNORECASE)
_SIZE_IN_ID, _SUPER = re.compile(r"\d+gb"), re.compile(r"(?<=\d)S$|(?<=(?i: ti)) ?[sS]$")  # 4080S, 4070 Ti S
_SLICE = re.compile(r"(?P<name>[a-z\s-]*[a-z]\d[a-z]*)-(?P<count>\d{1,4})", re.IGNORECASE)
_EXAMPLE = "gpu(48GiB,180TFLOPs,900GB/s)"


@lru_cache(maxsize=4096)
def named_hardware(word: str, catalog: Catalog) -> Meaning | None:
    """Return the hardware that a word or some stand for, with a number of devices or without; None where it is none."""
    named = _alone(word, catalog)
    alone = named or nearest_processor(word, catalog)
    if alone is not None:
        last = None if named is not None else _alone(word.rpartition(" ")[2], catalog)
        is_card = last is not None and last.values.get(NAME) in catalog.accelerators
        return None if is_card else alone  # i7 3060
    chips = _SLICE.fullmatch(word)
    if chips is not None and (sold := vocabulary().slices.get(key_of(chips["name"]))):
        return _several(sold, int(chips["count"]), catalog)
    if chips is not None and (sold := vocabulary().core_slices.get(key_of(chips["name"]))) and int(chips["count"]) > 1:
        return _several(sold, int(chips["count"]) // 2, catalog)
    return _in_nodes(word, catalog) or _some(word, catalog)


def _in_nodes(word: str, catalog: Catalog) -> Meaning | None:
    """Return devices of several nodes, as ``2x8xh100``; of processors the smaller number counts sockets."""
    for match in filter(None, (pattern.fullmatch(word) for pattern in _NODES)):
        few, many = sorted((nodes := int(match["nodes"]), size := int(match["count"])))
        is_behind = match.start("name") < match.start("count")
        usual = vocabulary().bounds["devices of a node"]
        is_large = many > usual and (is_behind or few == usual)  # 8x a100 x 16
        is_swapped = is_behind and nodes == usual  # 8x h100 x 4
        nodes, size = (many, few) if is_large else (size, nodes) if is_swapped else (nodes, size)
        node = _several(match["name"], size, catalog) or _sockets(few, match["name"], catalog)
        row = None if node is None else node.values.get(NAME)
        if node is None or counts_none(match["nodes"], match, row, catalog):
            continue
        if row in catalog.processors:
            return _sockets(few, match["name"], catalog)  # 12*2 xeon silver 4214r
        if isinstance(devices := node.values.get(DEVICES), int):
            return Meaning(f"{nodes} x {node.words}", {**node.values, DEVICES: nodes * devices, PER_NODE: devices})
    return None


def _some(word: str, catalog: Catalog) -> Meaning | None:
    """Return a number of devices, as ``8xh100`` and ``2S xeon 8480``."""
    if (socket := _SOCKETS.fullmatch(word)) is not None:
        return _sockets(int(socket["count"]), socket["name"], catalog)
    for match in filter(None, (pattern.fullmatch(word) for pattern in (*_COUNTS, _GLUED, _NEAR_A_NUMBER))):
        count = int(match["count"])
        hardware = _several(match["name"], count, catalog)
        if hardware is None or nearest_processor(f"{match['count']}x", catalog):  # 5600x 32gb
            continue
        if counts_none(match["count"], match, hardware.values.get(NAME), catalog):
            continue
        none = PlanError("no devices", repr(word)[:60], "write 1 or more", Place(field=DEVICES))
        return hardware if count else Meaning(fault=none)
    return None


def _sockets(count: int, name: str, catalog: Catalog) -> Meaning | None:
    """Return so many processors of one machine; None where a name is no processor's."""
    one = _alone(name, catalog) or nearest_processor(name, catalog) or Meaning()
    several = replace(one, words=f"{count} × {one.words}", values={**one.values, DEVICES: count})
    return several if one.values.get(NAME) in catalog.processors else None


def counted(word: str) -> tuple[int, str] | None:
    """Return the number and the name of a word such as ``8xh10O``, whatever the name is; None for other words."""
    match = _COUNTS[0].fullmatch(word)
    return (int(match["count"]), match["name"]) if match and int(match["count"]) else None


def hardware_called(name: str, count: int | None, catalog: Catalog, why: str) -> Meaning:
    """Return hardware of the catalogue whose name was guessed."""
    meaning = _hardware(catalog.find_hardware(name), count)
    return Meaning(meaning.words, meaning.values, why)


def device_of_figures(word: str, catalog: Catalog) -> Meaning | None:
    """Return a device given by its figures, as ``gpu(48GiB,180TFLOPs,900GB/s)``; None for another word."""
    match = _OWN.fullmatch(word)
    if match is None:
        return None
    spec: dict[str, object] = {}
    for figure in filter(None, map(str.strip, re.split(r"[,;\s]\s*(?![a-zA-Z])|,", match["figures"]))):
        key, equals, value = figure.partition("=")
        given: Mapping[str, object] | None = {key.strip(): _number(value.strip())} if equals else figures_of(figure)
        if given is None:
            hint = f"write memory, arithmetic and bandwidth, as {_EXAMPLE}, or key=value"
            return Meaning(fault=PlanError("not a figure of a device", repr(figure)[:80], hint, Place(field=SPEC)))
        spec |= given
    if not spec:
        return Meaning(fault=PlanError("a device without figures", hint=f"write {_EXAMPLE}", place=Place(field=SPEC)))
    return custom_device(spec, catalog)


def _number(text: str) -> float | str:
    """Return a text as the number that it says; other texts as they are."""
    return float(text) if text.replace(".", "", 1).isdecimal() else text


def figures_of(word: str) -> dict[str, float] | None:
    """Return the keys of ``hardware.spec`` that a figure such as ``48GiB`` or ``900GB/s`` gives; None for others."""
    match = _FIGURE.fullmatch(word)
    unit = match["unit"].casefold() if match else ""
    if match is None:
        return None
    number = float(match["number"])
    if unit in _SIZES:
        return {MEMORY: round(number * _SIZES[unit])}
    if unit in _RATES:
        return {"bandwidth_gbs": number * _RATES[unit]}
    if unit in _POWER:
        return {"tdp_w": number * _POWER[unit]}
    return dict.fromkeys(("bf16_tflops", "fp16_tflops"), number * _PEAKS[unit]) if unit in _PEAKS else None


def given_figure(
    text: str,
    figure: Mapping[str, float],
    is_ram: bool,
    name: str,
    catalog: Catalog,
    devices: int = 1,
    *,
    is_total: bool = False,
) -> Meaning:
    """Return what a figure of the hardware sets: one of each device, or the memory of their host.

    Args:
        text: the figure as it was written.
        figure: the keys of ``hardware.spec`` that it gives.
        is_ram: whether the line calls it main memory.
        name: of the hardware; empty where none was named.
        catalog: facts.
        devices: how many there are.
        is_total: whether the line says that it is of all of them together.
    """
    row = catalog.accelerators.get(name)
    is_of_host = is_ram and catalog.processors.find_id(name) is None and not (row is not None and row.unified_memory)
    memory, hint = figure.get(MEMORY), "write GB where gigabytes are meant"
    little = PlanError("so little memory?", text, hint) if memory is not None and memory < _LEAST_MEMORY else None
    if little or is_of_host:
        values: dict[str, object] = {} if little else {HOST_MEMORY: figure[MEMORY] / 1024}
        return Meaning(f"{text} of host memory", values, fault=little)
    if row is not None and memory:
        if is_memory_of(row, memory):
            return Meaning(f"{text}, as it has")
        sibling = with_memory(row, memory, catalog)
        is_shared, one = devices > 1 and (is_total or sibling is None), memory / devices
        why = f"{text}: {one / 1024:g}GB of each; write {text} each where each has so much"
        if is_shared and is_memory_of(row, one):
            return Meaning(f"{text}, as they have together", why=why)
        if is_shared and (other := with_memory(row, one, catalog)) is not None:  # 4xA100 160GB
            return Meaning(other, {NAME: other}, why)
        is_more = str(row.memory_type).startswith("HBM") and memory > (row.memory_mib or memory)
        differs = _MORE_STACKS if is_more else _MORE_THAN_ANY
        if sibling is not None or (fault := memory_of_another(row, memory, differs)) is not None:
            return Meaning(sibling, {NAME: sibling}) if sibling is not None else Meaning(fault=fault)
    is_other = row is not None and row.kind == "gpu" and not row.unified_memory and bool(memory)
    why = f"{text}: what else counts is that of {name}, which is sold with another memory" if is_other else ""
    return Meaning(f"{text} of each device", {f"{SPEC}.{key}": value for key, value in figure.items()}, why)


def with_memory(row: Accelerator, memory: float, catalog: Catalog) -> str | None:
    """Return the row of the same name with a memory in MiB, as an RTX 6000 with 48 GB; None where none has it."""
    sibling = _SIZE_IN_ID.sub(f"{memory / 1024:g}gb", row.id)
    if sibling != row.id and sibling in catalog.accelerators:
        return sibling
    name = {part for part in _parts(row.id) if part in vocabulary().product_lines or any(map(str.isdigit, part))}
    tiers = vocabulary().tiers - _parts(row.id)
    rows = (
        other
        for other in catalog.accelerators.values()
        if name <= _parts(other.id) and is_memory_of(other, memory) and tiers.isdisjoint(_parts(other.id))
    )
    return min((other.id for other in rows if len(name) > 1), key=lambda other: len(_parts(other)), default=None)


def _parts(row_id: str) -> set[str]:
    return {part for part in row_id.split("-") if not _SIZE_IN_ID.fullmatch(part)}


def is_memory_of(row: Accelerator, memory: float) -> bool:
    """Return whether a memory in MiB is what devices of a row have, as drivers and sellers call it."""
    return bool(row.memory_mib and abs(row.memory_mib / memory - 1) < _SAME_SIZE)


def most_memory(catalog: Catalog) -> float:
    """Return the MiB beyond which no device has memory: larger figures are of data."""
    return _MORE_THAN_ANY * max(row.memory_mib or 0 for row in catalog.accelerators.values())


def memory_of_another(row: Accelerator, memory: float, differs: float = _MORE_THAN_ANY) -> PlanError | None:
    """Return the fault of a memory in MiB that no device of a row's name has; None where one may have it.

    Args:
        row: the device.
        memory: what the line says, MiB.
        differs: times that it may be more or less than what the device has.
    """
    most = differs * (row.memory_mib or math.inf)
    least = 0.0 if row.unified_memory or row.kind != "gpu" else (row.memory_mib or 0.0) / differs
    if least <= memory <= most:
        return None
    detail = f"{memory / 1024:g}GB, where {row.id} has {(row.memory_mib or 0) / 1024:.0f}"
    hint = f"write {memory / 1024:g}GB ram of the host, or figures of a device of your own, as {_EXAMPLE}"
    return PlanError(WHOSE_MEMORY, detail, hint)


def custom_device(spec: Mapping[str, object], catalog: Catalog, maker: str = "") -> Meaning:
    """Return a device of one's own: the nearest of the catalogue, of a maker if given, says what its figures do not."""
    given = {key: float(value) for key, value in spec.items() if isinstance(value, int | float)}
    usual = [row_id for name in vocabulary().hardware if (row_id := catalog.accelerators.find_id(name))]

    def rank(row: Accelerator) -> tuple[float, int, bool, float]:
        """Put what differs least first; of those alike, what is usual, of a usual maker, and not the fastest."""
        peaks = ((value, _peak(row, key)) for key, value in given.items())
        differs = sum(abs(math.log(value / peak)) for value, peak in peaks if value and peak)
        order = usual.index(row.id) if row.id in usual else len(usual)
        return round(differs, 2), order, row.vendor != vocabulary().makers[0], row.bandwidth_gbs or 0

    like = min((row for row in catalog.accelerators.values() if _is_like(row, maker)), key=rank)
    why = f"what is not given of your GPU is as of {like.id}, the nearest known"
    return Meaning(f"GPU of your own ({', '.join(_figure_words(spec))})", {NAME: like.id, SPEC: dict(spec)}, why)


def _is_like(row: Accelerator, maker: str) -> bool:
    """Whether a row may say what is not given of a GPU of one's own."""
    if maker:
        return bool(row.bandwidth_gbs) and row.vendor == maker
    return bool(row.bandwidth_gbs and row.bf16_tflops) and row.kind == "gpu" and not row.unified_memory


def hardware_names(catalog: Catalog) -> Iterable[str]:
    """Return what hardware may be called, the usual names first."""
    tables = (catalog.accelerators, catalog.instances, catalog.processors)
    others = (name for table in tables for name in (*table.aliases, *table))
    return dict.fromkeys((*vocabulary().hardware, *others))


def offered_accelerators(catalog: Catalog) -> list[Accelerator]:
    """Return the accelerators as lists offer them: those with fast links first, by maker, the newest first.

    What is only announced comes last.
    """
    makers = vocabulary().makers

    def rank(row: Accelerator) -> tuple[bool, bool, int]:
        return row.is_announced, row.link_gbs is None, makers.index(row.vendor) if row.vendor in makers else len(makers)

    newest = sorted(catalog.accelerators.values(), key=lambda row: row.released or "", reverse=True)
    return sorted(newest, key=rank)


def _alone(word: str, catalog: Catalog) -> Meaning | None:
    """Return the hardware of a name without a number."""
    if key_of(word) in vocabulary().here:
        return Meaning("this machine", {NAME: DETECTED})
    row = _row_named(word, catalog)
    if row is None:
        return device_of_figures(word, catalog)
    return _meant(word, _hardware(row, None), row, catalog)


def _meant(name: str, meaning: Meaning, row: Row, catalog: Catalog) -> Meaning:
    """Return hardware with what to know of a name that is no device's: a family of machines, as ``g5``, a free tier."""
    if (remark := vocabulary().remarks.get(key_of(name))) is not None:
        return replace(meaning, why=f"{name}: {row.id}; {remark}")
    if row.id not in catalog.instances or key_of(name) not in map(key_of, catalog.aliases["instances"]):
        return meaning
    others = [other for other in catalog.instances if other.startswith(f"{row.id.rpartition('-')[0]}-")]
    why = f"{name}: {row.id}, one of {len(others)} sizes (or name another)" if len(others) > 1 else ""
    return replace(meaning, why="; ".join(filter(None, (meaning.why, why))))


def _several(name: str, count: int, catalog: Catalog) -> Meaning | None:
    """Return a number of devices of a name, or of a figure that each of them has."""
    user_defined = device_of_figures(name, catalog)
    if user_defined is not None:
        return _counted(user_defined, count)
    figure = figures_of(name)
    if figure is not None:
        spec = {f"{SPEC}.{key}": value for key, value in figure.items()}
        return Meaning(f"{count} devices of {name}", {DEVICES: count, **spec})
    row = _row_named(name, catalog)
    return None if row is None else _meant(name, _hardware(row, count), row, catalog)


@lru_cache(maxsize=4096)
def _row_named(name: str, catalog: Catalog) -> Row | None:
    """Return the row of a name, its plural too; None where there is none."""
    tables: tuple[Table[Any], ...] = (catalog.accelerators, catalog.processors, catalog.instances, catalog.clusters)
    plural = name[:-1] if name.endswith(("s", "S")) and name[-3:-2] != " " else ""  # 4090 ds is no 4090 D
    portable = f"{name[len(LAPTOP) :]} {LAPTOP}" if name.casefold().startswith(LAPTOP) else ""
    portable = portable or _MOBILE.sub(rf" {LAPTOP}", name)
    starts = ((typed, row) for typed, row in vocabulary().prefixes.items() if name.casefold().startswith(typed))
    clouds = (f"{row}{name[len(typed) :]}" for typed, row in starts)
    sized = _SIZE_BEHIND.sub(r"-\1gb", plural or name)  # a100-80s
    inside = (_SIZE_INSIDE.sub(made, name) for made in (r"\1 \3 \2", r"\1 \3") if _SIZE_INSIDE.fullmatch(name))
    bare = (f"{line} {name}" for line in vocabulary().product_lines if _BARE_NAME.fullmatch(name))
    usual = plural if name.casefold() in vocabulary().plurals and name.endswith("s") else ""
    names = (usual, name, *bare, _SUPER.sub(" super", name), plural, portable)
    for tried in (*names, name.replace(" ", "."), name.replace("-", ".", 1), sized, *clouds, *inside):
        for table in tables if key_of(tried) else ():
            row_id = table.find_id(tried)
            if row_id is not None:
                row: Row = table[row_id]
                return row
    processor = numbered_processor(name, catalog)
    return None if processor is None else catalog.processors[processor]


def portable_of(row_id: str, catalog: Catalog) -> str | None:
    """Return the row of laptops that has the name of a card, as ``rtx-3050-laptop`` of ``rtx-3050-8gb``."""
    return catalog.accelerators.find_id(f"{re.sub(rf'-{_SIZE_IN_ID.pattern}$', '', row_id)}-{LAPTOP}")


def _hardware(row: Row, count: int | None) -> Meaning:
    row_id = row.id
    if count is None:
        return Meaning(row_id, {NAME: row_id})
    if isinstance(row, Instance):
        devices = count * row.sold_devices
        why = f"{count} instances of {row.sold_devices} devices each" if count > 1 else ""
        return Meaning(f"{count} × {row_id}", {NAME: row_id, DEVICES: devices}, why)
    return Meaning(f"{count} × {row_id}", {NAME: row_id, DEVICES: count})


def _counted(meaning: Meaning, count: int) -> Meaning:
    if meaning.fault is not None:
        return meaning
    return Meaning(f"{count} × {meaning.words}", {**meaning.values, DEVICES: count}, meaning.why)


def _peak(row: Accelerator, key: str) -> float | None:
    value = getattr(row, key, None)
    return float(value) if isinstance(value, int | float) and value else None


def _figure_words(spec: Mapping[str, object]) -> Iterable[str]:
    shown = {"memory_mib": "MiB", "bandwidth_gbs": "GB/s", "bf16_tflops": "TFLOP/s", "tdp_w": "W"}
    for key, value in spec.items():
        if key in shown and isinstance(value, int | float):
            yield f"{value / 1024:g} GiB" if key == "memory_mib" else f"{value:g} {shown[key]}"
        elif key not in shown and key != "fp16_tflops":
            yield f"{key} {value}"
