"""The page of an answer: verdict, advice, figures with ranges, charts, sources, and the plan itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from capacity_tui.engine.estimate import (
    METRICS,
    Estimate,
    Metric,
    Note,
    Scaling,
    figure,
    limit_label,
    part_label,
)
from capacity_tui.engine.explain import Roofline, memory_timeline, step_timeline
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.present.parts import CodePart, Part, PicturePart, SectionsPart, TablePart, TextPart, table_part
from capacity_tui.engine.present.pictures.charts import Slice, bar_chart, curve_name, roofline_chart, scaling_chart
from capacity_tui.engine.present.pictures.roofline_chart import intensity_text, limit_text, roofline_lines
from capacity_tui.engine.present.pictures.timeline_chart import memory_lines, step_lines
from capacity_tui.engine.present.summary import chosen, figure_sections, verdict_part
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

_WIDTH = 72
"""Columns of drawings of text."""
SCALING_HEADS = ("devices", "batch", "step", "speed-up", "efficiency", "waits for others", "limited by")
_KERNEL_HEADS = ("Kernel", "Intensity", "Reaches", "Kernel time", "Bound by")


def page_parts(plan: Plan, estimate: Estimate, roofline: Roofline | None = None) -> Iterator[Part]:
    """Yield the page of an answer: verdict, advice, figures with ranges, charts, sources, the plan.

    Args:
        plan: the plan as resolved.
        estimate: what was computed for it.
        roofline: its roofline, where there is one.
    """
    report = plan.report
    yield verdict_part(plan, estimate)
    if text := open_length(plan, estimate):
        yield TextPart(text, "quiet")
    if estimate.warnings:
        yield TextPart("Warnings", "strong")
        yield from (TextPart(note.detail, "item", note.title) for note in estimate.warnings)
    if report.include_recommendations and estimate.recommendations:
        yield from _advice(estimate)
    yield TextPart("Figures", "strong")
    # Parts of memory and time have tables of their own here.
    brief = plan.model_copy(update={"report": report.model_copy(update={"detailed_breakdown": False})})
    yield SectionsPart(("Value", "Range, or where from"), figure_sections(brief, estimate), has_aside=True)
    if report.detailed_breakdown:
        yield from _memory(estimate, is_drawn=report.include_plots)
        yield from _time(estimate, is_drawn=report.include_plots)
    if roofline is not None:
        yield from _bottleneck(roofline, estimate, is_drawn=report.include_plots, in_full=report.detailed_breakdown)
    if estimate.scalability:
        yield from _scalability(estimate, is_drawn=report.include_plots)
    yield from _basis(plan, estimate)
    yield TextPart("The plan", "strong")
    yield TextPart("With every default filled in, as it can be loaded again.", "quiet")
    yield CodePart(dump_plan(plan))


def _advice(estimate: Estimate) -> Iterator[Part]:
    yield TextPart("Recommendations", "strong")
    yield TextPart("Each was estimated alone, in place of the plan; effects do not add up.", "quiet")
    rows = [(note.title, note.detail, ", ".join(savings(note, estimate))) for note in estimate.recommendations]
    yield table_part(("What", "Effect", "Changes"), rows)


def _memory(estimate: Estimate, *, is_drawn: bool) -> Iterator[Part]:
    slices = memory_slices(estimate)
    if slices:
        yield TextPart("Where memory goes", "strong")
        chart = bar_chart("Memory of a device", slices, _capacity_slice(estimate))
        caption = "Memory of the fullest device, as its driver shows it."
        lines = tuple(memory_lines(memory_timeline(estimate), _WIDTH))
        yield from _drawn_table(PicturePart(chart, lines, caption), "Size", slices, is_drawn=is_drawn)


def _time(estimate: Estimate, *, is_drawn: bool) -> Iterator[Part]:
    slices = time_slices(estimate)
    if slices:
        yield TextPart("Where time goes", "strong")
        chart = bar_chart("Time of a step", slices)
        caption = "One step, by what the device does or waits for."
        lines = tuple(step_lines(step_timeline(estimate), _WIDTH))
        yield from _drawn_table(PicturePart(chart, lines, caption), "Time", slices, is_drawn=is_drawn)


def _drawn_table(picture: PicturePart, head: str, slices: Sequence[Slice], *, is_drawn: bool) -> Iterator[Part]:
    """Yield parts of a whole as a picture, and as a table with their shares."""
    if is_drawn:
        yield picture
    total = sum(part.size for part in slices)
    rows = tuple((part.label, part.text, format_percent(part.size / total, 1)) for part in slices)
    yield TablePart(("Part", head, "Share"), rows, (1, 2), has_swatches=is_drawn)


def _bottleneck(roofline: Roofline, estimate: Estimate, *, is_drawn: bool, in_full: bool) -> Iterator[Part]:
    yield TextPart("What limits it", "strong")
    yield TextPart(limit_text(roofline, estimate))
    if is_drawn:
        caption = (
            "Roofline of one device; larger circles take more time, the diamond is the whole run. Both axes are "
            "logarithmic."
        )
        yield PicturePart(roofline_chart(roofline), tuple(roofline_lines(roofline)), caption)
    if in_full:
        rows = tuple((f"{number} {row[0]}", *row[1:]) for number, row in enumerate(_kernel_rows(roofline), 1))
        yield TablePart(_KERNEL_HEADS, rows, (1, 2, 3, 4), has_swatches=is_drawn)


def _scalability(estimate: Estimate, *, is_drawn: bool) -> Iterator[Part]:
    yield TextPart("Scalability", "strong")
    yield from (TextPart(line) for line in scaling_text(estimate.scalability))
    drawn = curves(estimate.scalability)
    if is_drawn and (chart := scaling_chart(drawn)):
        caption = "Speed-up over devices; the dashed line is ideal."
        yield PicturePart(chart, (), caption, tuple(curve_name(curve) for curve in drawn))
    yield scaling_table(estimate.scalability)


def _basis(plan: Plan, estimate: Estimate) -> Iterator[Part]:
    known = estimate.basis
    yield TextPart("What this rests on", "strong")
    rows = (
        ("Method", known.method),
        ("Calibration", known.calibration),
        ("Catalogue", f"checked {known.catalogue_date or 'on a day that is not known'}"),
        ("Prices", estimate.cost.source or "none known"),
        ("Assumed", "; ".join(known.assumed) or "nothing"),
        ("Chosen", "; ".join(chosen(plan, estimate))),
        ("Ranges", "from the 10th to the 90th percentile of the error on comparable published runs"),
    )
    yield table_part(("", ""), [row for row in rows if row[1]])


def memory_slices(estimate: Estimate) -> tuple[Slice, ...]:
    """Return the parts of memory that are there at all, in their order."""
    parts = estimate.memory.parts.items()
    return tuple(
        Slice(part_label(name), float(size), format_bytes(float(size))) for name, size in parts if float(size) > 0
    )


def _capacity_slice(estimate: Estimate) -> Slice | None:
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


def _kernel_rows(roofline: Roofline) -> tuple[tuple[str, ...], ...]:
    """Return the kernels of a roofline as cells under ``_KERNEL_HEADS``."""
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


def open_length(plan: Plan, estimate: Estimate) -> str:
    """Return why a report names no whole job, empty where it does."""
    if estimate.computation.steps is not None or plan.task in ("infer", "fit"):
        return ""
    return "The plan gives no length: tokens, steps or epochs would give time, price and energy of the whole job."


def scaling_table(points: Iterable[Scaling]) -> TablePart:
    """Return the points of a scalability analysis as a table."""
    return table_part(SCALING_HEADS, scaling_rows(points), range(len(SCALING_HEADS) - 1))


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


def _taken_over(curve: Curve) -> str:
    name = curve_name(curve).capitalize()
    devices = curve.network_from
    if devices is None:
        last = curve.points[-1]
        share = format_percent(last.communication_share)
        return f"{name}: communication takes {share} of a step on {format_number(last.devices)} devices."
    return f"{name}: communication dominates from {format_number(devices)} devices on."
