"""What a written report says beyond the figures: charts, advice with its effects, sources, the plan itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from capacity_tui.engine.estimate import METRICS, Estimate, Metric, Note, Scaling, figure, limit_label, part_label
from capacity_tui.engine.explain import Roofline
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present.pictures.charts import Slice, curve_name
from capacity_tui.engine.present.pictures.roofline_chart import intensity_text
from capacity_tui.engine.solve import Curve, curves
from capacity_tui.engine.units import (
    devices_in_words,
    format_bytes,
    format_flops,
    format_number,
    format_percent,
    format_quantity,
    format_seconds,
)
from capacity_tui.engine.verdict import Verdict

KERNEL_HEADS = ("Kernel", "Intensity", "Reaches", "Kernel time", "Bound by")


SCALING_HEADS = ("Devices", "Batch", "Step", "Speed-up", "Efficiency", "Waits for others", "Limited by")


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a whole, with its share of it."""

    label: str
    text: str
    share: str


def memory_slices(estimate: Estimate) -> tuple[Slice, ...]:
    """Return the parts of memory that are there at all, in their order."""
    parts = estimate.memory.parts.items()
    return tuple(
        Slice(part_label(name), float(size), format_bytes(float(size))) for name, size in parts if float(size) > 0
    )


def capacity_slice(estimate: Estimate) -> Slice | None:
    """Return the memory of a device; None where it is unknown."""
    capacity = estimate.memory.capacity_bytes
    return None if capacity is None else Slice("capacity", float(capacity), format_bytes(float(capacity)))


def time_slices(estimate: Estimate) -> tuple[Slice, ...]:
    """Return the parts of a step that take any time, in their order."""
    parts = estimate.computation.parts.items()
    return tuple(
        Slice(part_label(name), float(seconds), format_seconds(float(seconds)))
        for name, seconds in parts
        if float(seconds) > 0
    )


def shares(slices: Iterable[Slice]) -> tuple[Share, ...]:
    """Return parts with their shares of the whole."""
    found = tuple(slices)
    total = sum(each.size for each in found)
    return tuple(Share(each.label, each.text, format_percent(each.size / total, 1)) for each in found)


def savings(note: Note, estimate: Estimate) -> tuple[str, ...]:
    """Return what a note changes in an estimate, as signed amounts: time, memory, money."""
    saved = note.saves or {}
    firsts: dict[str, str] = {}
    for key, metric in METRICS.items():
        if metric.topic and key in saved:
            firsts.setdefault(metric.topic, key)
    return tuple(_saving(figure(estimate, key).metric, saved[key]) for key in firsts.values())


def _saving(metric: Metric, amount: float) -> str:
    return f"{metric.name} {'-' if amount < 0 else '+'}{format_quantity(abs(amount), metric.unit)}"


def kernel_rows(roofline: Roofline) -> tuple[tuple[str, ...], ...]:
    """Return the kernels of a roofline as cells under ``KERNEL_HEADS``."""
    return tuple(
        (
            point.name,
            intensity_text(point.intensity),
            format_flops(point.flops_per_second, per_second=True),
            format_percent(point.share, 1),
            point.bound,
        )
        for point in roofline.points
    )


def scaling_rows(points: Iterable[Scaling]) -> tuple[tuple[str, ...], ...]:
    """Return the points of a scalability analysis as cells under ``SCALING_HEADS``."""
    return tuple(
        (
            f"{format_number(point.devices)}{' (model)' if point.parallelism == 'model' else ''}",
            format_number(point.batch),
            format_seconds(point.step_seconds),
            format_number(point.speedup, 2),
            format_percent(point.efficiency),
            format_percent(point.communication_share),
            limit_label(point.limited_by) if point.fits is not False else Verdict.DOES_NOT_FIT.words,
        )
        for point in points
    )


@dataclass(frozen=True, slots=True)
class GrowthRemarks:
    """What to know of one curve.

    Attributes:
        knee: devices at its knee; None for none, or while counts are missing.
        lines: the same in words, with where communication dominates and what an hour less costs.
    """

    knee: int | None
    lines: tuple[str, ...]


def growth_remarks(points: Sequence[Scaling], *, is_complete: bool = True) -> GrowthRemarks:
    """Return where the knee of a curve is, where communication dominates, and what going faster costs.

    Args:
        points: of one curve, by rising number of devices.
        is_complete: whether all counts are there.
    """
    if not is_complete:
        return GrowthRemarks(None, ())
    if not points:
        return GrowthRemarks(None, ("This runs on one device, and is not divided.",))
    curve = Curve(points[0].batch, points[0].parallelism, tuple(points), points[0].growth)
    knee = curve.knee if curve.growth == "strong" else None
    lines = (knee_text(curve), _network_text(curve), _price_text(curve), _source_text(curve))
    return GrowthRemarks(knee, tuple(line for line in lines if line))


def _network_text(curve: Curve) -> str:
    if curve.network_from is None:
        return f"Communication never dominates up to {format_number(curve.points[-1].devices)} devices."
    return f"Communication dominates from {format_number(curve.network_from)} devices on."


def _price_text(curve: Curve) -> str:
    """Return what the fastest costs beside the cheapest."""
    priced = [
        point for point in curve.points if point.fits is not False and point.job_seconds and point.usd is not None
    ]
    if not priced:
        return ""
    cheapest = min(priced, key=lambda point: (point.usd or 0.0, point.job_seconds or 0.0))
    fastest = min(priced, key=lambda point: (point.job_seconds or 0.0, point.usd or 0.0))
    if fastest is cheapest:
        return f"The fastest is the cheapest: {devices_in_words(fastest.devices)}."
    return f"Cheapest: {_run_text(cheapest)}. Fastest: {_run_text(fastest)}."


def _source_text(curve: Curve) -> str:
    """Return where the price of a device is somebody else's than for fewer of them; empty where it is one list's."""
    priced = [point for point in curve.points if point.price_source]
    changes = [
        f"from {devices_in_words(after.devices)} on {after.price_source}, up to {format_number(before.devices)} "
        f"{before.price_source}"
        for before, after in pairwise(priced)
        if after.price_source != before.price_source
    ]
    return f"Prices are not of one list: {'; '.join(changes)}." if changes else ""


def _run_text(point: Scaling) -> str:
    cost = format_quantity(point.usd or 0.0, "USD")
    return f"{devices_in_words(point.devices)}, {format_seconds(point.job_seconds)}, {cost}"


def scaling_text(points: Iterable[Scaling]) -> tuple[str, ...]:
    """Return where communication dominates and where the knee is, a line for each curve."""
    return tuple(f"{_taken_over(curve)} {knee_text(curve)}".rstrip() for curve in curves(points))


def knee_text(curve: Curve) -> str:
    """Return where more devices lose more than they bring; empty where the batch grows with them."""
    if curve.growth == "weak" or len(curve.points) < 2:
        return ""
    if curve.knee is None:
        return f"No knee up to {format_number(curve.points[-1].devices)} devices."
    return f"The knee is at {format_number(curve.knee)}: there speed-up times efficiency is largest."


def open_length(plan: Plan, estimate: Estimate) -> str:
    """Return why a report names no whole job, empty where it does."""
    if estimate.computation.steps is not None or plan.task in ("infer", "fit"):
        return ""
    return "The plan gives no length: tokens, steps or epochs would give time, price and energy of the whole job."


def _taken_over(curve: Curve) -> str:
    name = curve_name(curve).capitalize()
    devices = curve.network_from
    if devices is None:
        last = curve.points[-1]
        share = format_percent(last.communication_share)
        return f"{name}: communication takes {share} of a step on {format_number(last.devices)} devices."
    return f"{name}: communication dominates from {format_number(devices)} devices on."
