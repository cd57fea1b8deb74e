"""Parts of a page that have a picture: memory, time, what limits a run, and what more devices bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from capacity_tui.engine.estimate import Estimate, part_label
from capacity_tui.engine.explain import Roofline, memory_timeline, step_timeline
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.present.cluster_report import curve_name, scaling_table, scaling_text
from capacity_tui.engine.present.parts import Part, PicturePart, TablePart, TextPart
from capacity_tui.engine.present.pictures.charts import Slice, bar_chart, roofline_chart, scaling_chart
from capacity_tui.engine.present.pictures.text_charts import (
    intensity_text,
    limit_text,
    memory_lines,
    roofline_lines,
    step_lines,
)
from capacity_tui.engine.solve import curves
from capacity_tui.engine.units import format_bytes, format_flops, format_percent, format_seconds

_WIDTH = 72  # Columns of drawings of text
_KERNEL_HEADS = ("Kernel", "Intensity", "Reaches", "Kernel time", "Bound by")


def memory_parts(estimate: Estimate, *, is_drawn: bool) -> Iterator[Part]:
    """Yield where the memory of a device goes."""
    slices = _slices(estimate.memory.parts, format_bytes)
    if slices:
        yield TextPart("Where the memory goes", "strong")
        capacity = estimate.memory.capacity_bytes
        limit = None if capacity is None else Slice("capacity", float(capacity), format_bytes(float(capacity)))
        chart = bar_chart("Memory of a device", slices, limit)
        caption = "Memory of the fullest device, as the driver shows it."
        lines = tuple(memory_lines(memory_timeline(estimate), _WIDTH))
        yield from _drawn_table(PicturePart(chart, lines, caption), "Size", slices, is_drawn=is_drawn)


def time_parts(estimate: Estimate, *, is_drawn: bool) -> Iterator[Part]:
    """Yield where the time of a step goes."""
    slices = _slices(estimate.computation.parts, format_seconds)
    if slices:
        yield TextPart("Where the time goes", "strong")
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


def bottleneck_parts(roofline: Roofline, estimate: Estimate, *, is_drawn: bool, in_full: bool) -> Iterator[Part]:
    """Yield what limits a run, in full with its kernels."""
    yield TextPart("What limits it", "strong")
    yield TextPart(limit_text(roofline, estimate))
    if is_drawn:
        caption = (
            "Roofline of one device; larger circles take more time, the diamond is the whole run. Both axes are "
            "logarithmic."
        )
        yield PicturePart(roofline_chart(roofline), tuple(roofline_lines(roofline)), caption)
    if in_full:
        rows = tuple(
            (
                *(f"{number} {point.name}", intensity_text(point.intensity)),
                format_flops(point.flops_per_second, per_second=True),
                *(format_percent(point.share, 1), point.bound),
            )
            for number, point in enumerate(roofline.points, 1)
        )
        yield TablePart(_KERNEL_HEADS, rows, (1, 2, 3, 4), has_swatches=is_drawn)


def scalability_parts(estimate: Estimate, *, is_drawn: bool) -> Iterator[Part]:
    """Yield what more devices bring."""
    yield TextPart("Scalability", "strong")
    yield from (TextPart(line) for line in scaling_text(estimate.scalability))
    drawn = curves(estimate.scalability)
    if is_drawn and (chart := scaling_chart(drawn)):
        caption = "Speed-up over devices; the dashed line is ideal."
        yield PicturePart(chart, (), caption, tuple(curve_name(curve) for curve in drawn))
    yield scaling_table(estimate.scalability)


def _slices(parts: Mapping[str, Number], text: Callable[[float], str]) -> tuple[Slice, ...]:
    sizes = {name: float(size) for name, size in parts.items()}
    return tuple(Slice(part_label(name), size, text(size)) for name, size in sizes.items() if size > 0)
