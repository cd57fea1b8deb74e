"""What a written report says beyond the figures: charts, advice with its effects, sources, the plan itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from capacity_tui.engine.choose.scaling import Curve, curves
from capacity_tui.engine.estimate.figures import Metric, figure, limit_label, part_label, written
from capacity_tui.engine.estimate.note import Note
from capacity_tui.engine.estimate.result import Estimate, Scaling
from capacity_tui.engine.explain.roofline import Roofline
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.present.pictures.charts import Slice, curve_name
from capacity_tui.engine.present.pictures.roofline_chart import intensity_text
from capacity_tui.engine.units import (
    format_bytes,
    format_flops,
    format_number,
    format_percent,
    format_seconds,
)
from capacity_tui.engine.verdict import Verdict

KERNEL_HEADS = ("Kernel", "Intensity", "Reaches", "Kernel time", "Bound by")


SCALING_HEADS = ("Devices", "Batch", "Step", "Speed-up", "Efficiency", "Waits for others", "Limited by")
# Of each group the first figure that changes is told.
_TOLD = (
    ("computation.estimated_train_time_seconds", "computation.tokens_per_second", "computation.step_seconds"),
    ("memory.reserved_bytes",),
    ("cost.usd", "cost.usd_per_million_tokens"),
)


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
    firsts = (next((key for key in group if key in saved), None) for group in _TOLD)
    return tuple(_saving(figure(estimate, key).metric, saved[key]) for key in firsts if key is not None)


def _saving(metric: Metric, amount: float) -> str:
    return f"{metric.label} {'-' if amount < 0 else '+'}{written(abs(amount), metric.unit)}"


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
            limit_label(point.limited_by) if point.fits is not False else Verdict.OVER.value,
        )
        for point in points
    )


def scaling_text(points: Iterable[Scaling]) -> tuple[str, ...]:
    """Return where communication takes over, one sentence a curve."""
    return tuple(_taken_over(curve) for curve in curves(points))


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
    return f"{name}: communication takes over at {format_number(devices)} devices."
