"""One number for a machine, from 0 to 10, and the rule that gave it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Literal, cast

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.cluster.detected_machine import cluster_of_machine
from capacity_tui.engine.cluster.hardware_match import HardwareMatch
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.machine import Fact, Machine, MeasuredFacts, missing
from capacity_tui.engine.machine.benchmark import NOT_MEASURED
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bandwidth, format_bytes, format_flops, format_number, format_rate

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
    """A machine's score.

    Attributes:
        value: 0 to 10, the weighed mean of the parts that are known.
        tier: LOW, MEDIUM, HIGH or SERVER.
        weakest: the known part with the fewest points.
        rule: how the number came about, in one sentence.
    """

    value: float
    tier: Tier
    verdict: str
    parts: tuple[ScorePart, ...]
    weakest: str
    rule: str


def score_machine(machine: Machine, catalog: Catalog) -> Score:
    """Score a machine by what its devices and surroundings can do: as measured where that was done, else as detected.

    Args:
        machine: what was detected, and what benchmarks found.
    """
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
    """Return the figures that only benchmarks measure."""
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

    sized = device.kind != "cpu" and device.memory_bytes is not None
    arithmetic = known(f"peaks.{fastest}", device.peaks[fastest] * count)
    return {
        "arithmetic": _reached(device, fastest, measured) or arithmetic,
        "device_memory": known("memory_bytes", float(device.memory_bytes or 0) * count)
        if sized
        else _unknown("no device beside the CPU"),
        "bandwidth": known("bandwidth", float(device.bandwidth)),
        "link": known("link_bandwidth", float(device.link_bandwidth)) if count > 1 else _unknown("a single device"),
    }


def _reached(device: Device, fastest: str, measured: MeasuredFacts | None) -> Fact[float] | None:
    """Return what a processor reached where that was measured; of a faster type than that, as large a share."""
    if device.kind != "cpu" or measured is None or measured.fp32_flops.value is None:
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
    import yaml  # noqa: PLC0415 - a screen's first paint must not wait for it

    text = files("capacity_tui.profiles").joinpath("scores.yaml").read_text(encoding="utf-8")
    data = cast("Mapping[str, Sequence[Mapping[str, object]]]", yaml.safe_load(text))
    return _Rules(
        parts=tuple(_part_rule(row) for row in data["parts"]),
        tiers=tuple((str(row["tier"]), float(cast("float", row["least"]))) for row in data["tiers"]),
        verdicts=tuple((str(row["text"]), float(cast("float", row["least"]))) for row in data["verdicts"]),
        disk_kinds=cast("Mapping[str, float]", data["disk_kinds"]),
    )


def _part_rule(row: Mapping[str, object]) -> _PartRule:
    pairs = cast("Sequence[Sequence[float]]", row["anchors"])
    anchors = tuple((float(value), float(points)) for value, points in pairs)
    return _PartRule(str(row["id"]), str(row["name"]), str(row["unit"]), float(cast("float", row["weight"])), anchors)
