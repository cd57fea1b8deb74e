"""What a detected machine is good for: its score from 0 to 10, and which parallel dimension belongs on which link."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, cast

from capacity_tui.engine.catalog import Catalog, parse_shipped
from capacity_tui.engine.cluster.catalogue_devices import PCIE_LANE_GBS
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.cluster.detected_machine import cluster_of_machine
from capacity_tui.engine.cluster.hardware_match import HardwareMatch
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.machine import LEVELS, Accelerator, Fact, Machine, MeasuredFacts, missing
from capacity_tui.engine.machine.benchmark import NOT_MEASURED
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_flops,
    format_number,
    format_rate,
    format_seconds,
)

Tier = Literal["LOW", "MEDIUM", "HIGH", "SERVER"]
Anchors = tuple[tuple[float, float], ...]
SOURCE = "profiles/scores.yaml"


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one figure contributes; ``points`` is None with a reason where the figure is not known.

    ``known`` says how the figure came about.
    """

    id: str
    name: str
    value: float | None
    unit: str
    points: float | None
    weight: float
    reason: str = ""
    known: str = ""

    def value_text(self) -> str:
        """Return the figure with its unit, or why there is none."""
        if self.value is None:
            return f"n/a ({self.reason})"
        if self.unit == "FLOP/s":
            return format_flops(self.value, per_second=True)
        shown = {"B": format_bytes, "B/s": format_bandwidth}.get(self.unit)
        if self.unit.endswith("/s") and shown is None:
            return format_rate(self.value, self.unit)
        return shown(self.value) if shown else format_number(self.value)


@dataclass(frozen=True, slots=True)
class Score:
    """A machine's score."""

    value: float  # 0 to 10, the weighed mean of the parts that are known
    tier: Tier  # LOW, MEDIUM, HIGH or SERVER
    verdict: str
    parts: tuple[ScorePart, ...]
    weakest: str  # the known part with the fewest points
    rule: str  # how the number came about, in one sentence


def score_machine(machine: Machine, catalog: Catalog) -> Score:
    """Score a machine by what devices and surroundings can do: as measured where that was done, else as detected."""
    rules = _rules()
    figures = _figures(machine, catalog)
    parts = tuple(_part(rule, figures[rule.id]) for rule in rules.parts)
    known = [(part, part.points) for part in parts if part.points is not None]
    weight = sum(part.weight for part, _ in known)
    value = sum(part.weight * points for part, points in known) / weight if weight else 0.0
    weakest = min(known, key=lambda pair: pair[1])[0].name if known else ""
    bounds = ", ".join(f"{tier} from {least:g}" for tier, least in reversed(rules.tiers))
    rule = f"mean of {len(known)} parts' points by weight; {bounds} ({SOURCE})"
    return Score(value, cast("Tier", _first(rules.tiers, value)), _first(rules.verdicts, value), parts, weakest, rule)


def points_between(anchors: Anchors, value: float) -> float:
    """Return points in proportion to the logarithm of a value between the anchors around it."""
    if value <= anchors[0][0]:
        return anchors[0][1]
    for (low, fewer), (high, more) in pairwise(anchors):
        if value <= high:
            share = math.log(value / low) / math.log(high / low)
            return fewer + share * (more - fewer)
    return anchors[-1][1]


def _figures(machine: Machine, catalog: Catalog) -> dict[str, Fact[float]]:
    """Return every figure with how it is known, or the reason where it is not."""
    cores = machine.cpu.physical_cores.or_else(machine.cpu.usable_threads)
    threads = machine.cpu.usable_threads.value or math.inf
    try:
        devices = _device_figures(cluster_of_machine(machine, catalog), machine.benchmarked)
    except CatalogError as error:
        devices = dict.fromkeys(("arithmetic", "device_memory", "bandwidth", "link"), _unknown(error.one_line()))
    return {
        **devices,
        "main_memory": machine.memory.total_bytes.map(float),
        "cores": cores.map(lambda count: float(min(count, threads))),
        "disk": _disk(machine),
        **_benchmark_figures(machine.benchmarked),
    }


def _benchmark_figures(benchmarks: MeasuredFacts | None) -> dict[str, Fact[float]]:
    if benchmarks is None:
        return dict.fromkeys(("random_reads", "round_trips", "database"), _unknown(NOT_MEASURED))
    return {
        "random_reads": benchmarks.random_reads,
        "round_trips": benchmarks.loopback_seconds.map(lambda seconds: 1 / seconds),
        "database": benchmarks.stored_patterns,
    }


def _device_figures(match: HardwareMatch, measured: MeasuredFacts | None) -> dict[str, Fact[float]]:
    device, count = match.device, match.devices
    fastest = device.half_precision

    def known(name: str, value: float) -> Fact[float]:
        provenance = device.known[name]
        return Fact(value, provenance.origin, provenance.source)

    sized = not device.is_processor and device.memory_bytes is not None
    arithmetic = known(f"peaks.{fastest}", device.peaks[fastest] * count)
    return {
        "arithmetic": _measured_rate(device, fastest, measured) or arithmetic,
        "device_memory": known("memory_bytes", float(device.memory_bytes or 0) * count)
        if sized
        else _unknown("no device beside the CPU"),
        "bandwidth": known("bandwidth", float(device.bandwidth)),
        "link": known("link_bandwidth", float(device.link_bandwidth)) if count > 1 else _unknown("a single device"),
    }


def _measured_rate(device: Device, fastest: str, measured: MeasuredFacts | None) -> Fact[float] | None:
    """Return what a processor reached where that was measured; of a faster type than that, as large a share."""
    if not device.is_processor or measured is None or measured.fp32_flops.value is None:
        return None
    rate = measured.fp32_flops.value * device.peaks[fastest] / device.peak("fp32")
    how = measured.fp32_flops.source
    return Fact(rate, "measured", how if fastest == "fp32" else f"{how}, {fastest} reaching as much of its peak")


def _disk(machine: Machine) -> Fact[float]:
    if machine.benchmarked is not None and machine.benchmarked.disk_read.value is not None:
        return machine.benchmarked.disk_read
    known = _rules().disk_kinds
    rates = {kind: known[kind] for disk in machine.disks if (kind := disk.kind.value or "") in known}
    if not rates:
        return _unknown("no disk of a known kind; detect --benchmark measures it")
    fastest = max(rates, key=lambda kind: rates[kind])
    return Fact(rates[fastest], "assumed", f"what disks of the kind {fastest} usually reach, {SOURCE}")


def _unknown(reason: str) -> Fact[float]:
    return missing(SOURCE, reason)


@dataclass(frozen=True, slots=True)
class _PartRule:
    """A part's weight and anchors."""

    id: str
    name: str
    unit: str
    weight: float
    anchors: Anchors


@dataclass(frozen=True, slots=True)
class _Rules:
    """The contents of scores.yaml."""

    parts: tuple[_PartRule, ...]
    tiers: tuple[tuple[str, float], ...]
    verdicts: tuple[tuple[str, float], ...]
    disk_kinds: Mapping[str, float]


def _part(rule: _PartRule, figure: Fact[float]) -> ScorePart:
    value = figure.value
    if value is None or value <= 0:
        return ScorePart(rule.id, rule.name, None, rule.unit, None, rule.weight, figure.reason or "not reported")
    points, known = points_between(rule.anchors, value), str(figure.provenance)
    return ScorePart(rule.id, rule.name, value, rule.unit, points, rule.weight, known=known)


def _first(rows: Sequence[tuple[str, float]], value: float) -> str:
    return next(name for name, least in rows if value >= least)


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    data = parse_shipped("scores.yaml")
    return _Rules(
        parts=tuple(
            _PartRule(**{**row, "anchors": tuple((float(value), float(points)) for value, points in row["anchors"])})
            for row in data["parts"]
        ),
        tiers=tuple((row["tier"], row["least"]) for row in data["tiers"]),
        verdicts=tuple((row["text"], row["least"]) for row in data["verdicts"]),
        disk_kinds=data["disk_kinds"],
    )


# One micro-batch as an example: 4096 tokens of a model 4096 wide, in two bytes.
EXAMPLE_BYTES = 4096 * 4096 * 2
ALL_REDUCES_A_LAYER = 4  # tensor parallel: two forward, two backward (Shoeybi et al. 2019)


@dataclass(frozen=True, slots=True)
class Placement:
    """Advice on one parallel dimension: the devices or links it belongs on, and the figures behind it."""

    dimension: str
    where: str
    reason: str


def placement_advice(machine: Machine, catalog: Catalog) -> tuple[Placement, ...]:
    """Return where tensor, pipeline and data parallel belong on a machine of several accelerators."""
    gpus = machine.accelerators
    matrix = machine.topology.links.value
    if len(gpus) < 2 or not matrix:
        return ()
    groups = linked_groups(matrix)
    fast, slow = _direct_rate(gpus[0], catalog), _pcie_rate(gpus[0])
    largest = max(len(group) for group in groups)
    if largest == 1:
        return (_no_direct_links(matrix, slow), *_between(matrix, slow))
    inside = _listed(groups)
    advice = [
        Placement(
            "tensor, sequence and expert parallel",
            f"within {inside}",
            f"direct links{_at(fast)}; sizes up to {largest}",
        )
    ]
    if fast and slow:
        advice.append(_crossing(largest, fast, slow))
    if len(groups) > 1:
        advice += _between(matrix, slow)
    else:
        advice.append(
            Placement("data and pipeline parallel", "between machines", "all devices here share direct links")
        )
    return tuple(advice)


def linked_groups(matrix: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    """Return the devices that reach each other over direct links, as groups of indices."""
    remaining, groups = set(range(len(matrix))), []
    while remaining:
        group, edge = set(), {min(remaining)}
        while edge:
            group |= edge
            edge = {peer for device in edge for peer in remaining if matrix[device][peer] not in (*LEVELS, "X")} - group
        remaining -= group
        groups.append(tuple(sorted(group)))
    return tuple(groups)


def all_reduce_seconds(payload_bytes: float, devices: int, bandwidth: float) -> float:
    """Return the time of a ring all-reduce: 2(n − 1)/n × payload over the bandwidth of one direction in B/s."""
    return 2 * (devices - 1) / devices * payload_bytes / bandwidth


def _crossing(devices: int, fast: float, slow: float) -> Placement:
    near = all_reduce_seconds(EXAMPLE_BYTES, devices, fast) * ALL_REDUCES_A_LAYER
    far = all_reduce_seconds(EXAMPLE_BYTES, 2 * devices, slow) * ALL_REDUCES_A_LAYER
    return Placement(
        "tensor parallel beyond the direct links",
        "avoid",
        f"{ALL_REDUCES_A_LAYER} all-reduces of {format_bytes(EXAMPLE_BYTES)} a layer and micro-batch take "
        f"{format_seconds(near)} on direct links and {format_seconds(far)} over PCIe or a network of its speed, "
        f"{far / near:.0f} times as long",
    )


def _no_direct_links(matrix: Sequence[Sequence[str]], slow: float | None) -> Placement:
    pairs = [row[other] for index, row in enumerate(matrix) for other in range(index)]
    level = max(pairs, key=LEVELS.index)
    if slow is None:
        return Placement("tensor parallel", "avoid", f"no direct links; the farthest pair is {level}")
    seconds = all_reduce_seconds(EXAMPLE_BYTES, len(matrix), slow) * ALL_REDUCES_A_LAYER
    reason = f"no direct links: {ALL_REDUCES_A_LAYER} all-reduces of {format_bytes(EXAMPLE_BYTES)} a layer and "
    reason += f"micro-batch take {format_seconds(seconds)} over PCIe at best, and the farthest pair is {level}"
    return Placement("tensor parallel", "only where a model fits no other way", reason)


def _between(matrix: Sequence[Sequence[str]], slow: float | None) -> list[Placement]:
    crosses = any("SYS" in row for row in matrix)
    where = "between the groups, and across sockets last" if crosses else "over PCIe"
    sent = format_seconds(EXAMPLE_BYTES / slow) if slow else "little"
    return [
        Placement(
            "pipeline parallel", where, f"a stage sends {format_bytes(EXAMPLE_BYTES)} once a micro-batch: {sent}"
        ),
        Placement("data parallel", where, "gradients move once a step and overlap with the backward pass"),
    ]


def _direct_rate(gpu: Accelerator, catalog: Catalog) -> float | None:
    row_id = gpu.catalogue_id.value
    if row_id is None or row_id not in catalog.accelerators:
        return None
    rate = catalog.accelerators[row_id].link_gbs
    return rate * 1e9 if rate else None


def _pcie_rate(gpu: Accelerator) -> float | None:
    generation, lanes = gpu.pcie.generation_max.value, gpu.pcie.lanes_max.value
    if generation not in PCIE_LANE_GBS or not lanes:
        return None
    return PCIE_LANE_GBS[generation] * lanes * 1e9


def _listed(groups: Sequence[Sequence[int]]) -> str:
    several = [group for group in groups if len(group) > 1]
    if len(groups) == 1:
        return "the whole machine"
    return "; ".join(f"GPU {', '.join(str(index) for index in group)}" for group in several)


def _at(rate: float | None) -> str:
    return f" of {format_bandwidth(rate)} per direction" if rate else ""
