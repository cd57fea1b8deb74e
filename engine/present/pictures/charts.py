"""Charts as inline SVG: they take colours and font from the page around them and load nothing.

Shapes carry the classes ``c0`` to ``c7`` (fill), ``s0`` to ``s7`` (line), ``grid``, ``limit`` and ``label``, which the
page colours. Every chart names itself and says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeAlias

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.explain import (
    Amount,
    MemoryTimeline,
    Roofline,
    StepTimeline,
    memory_timeline,
    roofline,
    step_timeline,
)
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.present.cluster_report import curve_name
from capacity_tui.engine.present.pictures.svg import (
    COLOURS,
    WIDTH,
    Plot,
    element,
    fill,
    label,
    line,
    polyline,
    standalone,
    svg,
)
from capacity_tui.engine.present.pictures.text_charts import (
    ASCII,
    ASCII_BARS,
    BLOCKS,
    UNICODE,
    Frame,
    Points,
    frame_of,
    memory_lines,
    point_text,
    rank_frame,
    roofline_lines,
    step_lines,
)
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import Curve
from capacity_tui.engine.units import count_in_words, format_count, format_flops, format_number, format_quantity

_SMALLEST_LABEL = 7.0  # Pixels a character takes, to tell whether a label fits
_ROW, _NAMES = 36, 150  # Pixels from one bar to the next, and for their names
_WIDE = 50.0  # Span of an axis from which on powers of ten are marks enough


@dataclass(frozen=True, slots=True)
class Slice:
    """One part of a bar: its words, its size, and the size as text."""

    label: str
    size: float
    text: str


def bar_chart(title: str, slices: Sequence[Slice], limit: Slice | None = None) -> str:
    """Return parts of a whole as one bar; a limit, such as the memory there is, as a line across it."""
    total = sum(entry.size for entry in slices)
    extent = max(total, limit.size if limit else 0.0) * 1.02
    if extent <= 0:
        return ""
    scale = WIDTH / extent
    described = ", ".join(f"{entry.label} {entry.text}" for entry in slices)
    if limit is not None:
        described = f"{described}; {limit.label} {limit.text}"
    return svg(title, described, 74, _bar(slices, limit, scale))


def _bar(slices: Sequence[Slice], limit: Slice | None, scale: float) -> Iterator[str]:
    yield from _parts(slices, map(fill, range(len(slices))), scale, 0.0, 24, 34, 45)
    if limit is not None:
        position = limit.size * scale
        yield line(position, 16, position, 66, "limit")
        anchor = "end" if position > WIDTH / 2 else "start"
        yield label(f"{limit.label} {limit.text}", position + (-4 if anchor == "end" else 4), 14, "label", anchor)


def _parts(
    slices: Sequence[Slice], colours: Iterable[str], scale: float, left: float, top: int, height: int, text_at: int
) -> Iterator[str]:
    """Yield the parts of a whole side by side from a place on, their names in those that have room for them."""
    for entry, colour in zip(slices, colours, strict=True):
        width = entry.size * scale
        described = f"{entry.label}: {entry.text}"
        yield element("rect", described, x=left, y=top, width=width, height=height, class_=colour)
        if len(entry.label) * _SMALLEST_LABEL < width:
            yield label(entry.label, left + width / 2, text_at, "inside", "middle")
        left += width


def stacked_chart(title: str, rows: Sequence[tuple[str, Sequence[Slice]]], limit: Slice | None = None) -> str:
    """Return wholes below one another, each a bar of its parts behind its name; a limit as a line across them all."""
    extent = max([sum(entry.size for entry in slices) for _, slices in rows] + [limit.size if limit else 0.0]) * 1.02
    if extent <= 0:
        return ""
    described = "; ".join(f"{name}: {', '.join(f'{one.label} {one.text}' for one in slices)}" for name, slices in rows)
    return svg(title, described, _ROW * len(rows) + 40, _stacked(rows, limit, extent))


def _stacked(rows: Sequence[tuple[str, Sequence[Slice]]], limit: Slice | None, extent: float) -> Iterator[str]:
    scale = (WIDTH - _NAMES) / extent
    # A part has one colour in all rows.
    names = list(dict.fromkeys(entry.label for _, slices in rows for entry in slices))
    for number, (name, slices) in enumerate(rows):
        top = 26 + number * _ROW
        yield label(name, _NAMES - 8, top + 19, "label", "end")
        colours = (fill(names.index(entry.label)) for entry in slices)
        yield from _parts(slices, colours, scale, float(_NAMES), top, _ROW - 8, top + 19)
    if limit is not None:
        position = _NAMES + limit.size * scale
        yield line(position, 18, position, 26 + _ROW * len(rows), "limit")
        yield label(f"{limit.label} {limit.text}", position - 4, 14, "label", "end")


def roofline_chart(roofline: Roofline) -> str:
    """Return a roofline: both limits, the ridge, every kernel, and the run as a diamond."""
    frame = frame_of(roofline)
    result = "; ".join(point_text(point) for point in roofline.points)
    described = (
        f"Roofline of {roofline.device}: ridge at {format_number(roofline.ridge)} FLOP/B, peak "
        f"{format_flops(roofline.peak, per_second=True)}; the run at {format_number(roofline.intensity, 1)} FLOP/B "
        f"reaches {format_flops(roofline.flops_per_second, per_second=True)}. {result}"
    )
    return svg("Roofline", described, _PLOT.height + 60, _roofline(roofline, frame))


_PLOT = Plot(left=84, top=16, width=WIDTH - 84 - 16, height=280)
_LOW_PLOT = replace(_PLOT, height=150)


def _roofline(roofline: Roofline, frame: Frame) -> Iterator[str]:
    def position(intensity: float, rate: float) -> tuple[float, float]:
        return _PLOT.x(frame.across(intensity)), _PLOT.y(frame.up(rate))

    rates, intensities = _ticks(frame.bottom, frame.top), _ticks(frame.left, frame.right)
    yield from _PLOT.grid(
        ((frame.up(rate), format_flops(rate, per_second=True, decimals=0)) for rate in rates),
        ((frame.across(one), format_number(one, 0 if one >= 1 else 2)) for one in intensities),
    )
    yield label("FLOP for each byte of memory traffic", _PLOT.x(0.5), _PLOT.y(0) + 36, "label", "middle")
    roof = [position(entry, roofline.roof(entry)) for entry in (frame.left, roofline.ridge, frame.right)]
    yield polyline(roof, "roof")
    x, y = position(roofline.ridge, roofline.peak)
    yield line(x, y, x, _PLOT.y(0), "limit")
    yield label(f"ridge {format_number(roofline.ridge)} FLOP/B", x + 6, _PLOT.y(0) - 8, "label", "start")
    for number, point in enumerate(roofline.points):
        x, y = position(point.intensity, point.flops_per_second)
        radius = 5.0 + 9.0 * point.share**0.5
        yield element("circle", point_text(point), cx=x, cy=y, r=radius, class_=f"{fill(number)} point")
        yield label(str(number + 1), x, y + 4, "inside", "middle")
    x, y = position(roofline.intensity, roofline.flops_per_second)
    diamond = f"{x},{y - 9} {x + 9},{y} {x},{y + 9} {x - 9},{y}"
    yield element("polygon", "the run", points=diamond, class_="run")


def scaling_chart(curves: Sequence[Curve]) -> str:
    """Return speed-up over devices, one line a curve, with the ideal one; both axes logarithmic."""
    points = [point for curve in curves for point in curve.points]
    counts = sorted({point.devices for point in points})
    if len(counts) < 2:
        return ""
    highest = max(float(counts[-1]), *(point.speedup for point in points))
    frame = Frame(counts[0] / 1.1, counts[-1] * 1.1, min(point.speedup for point in points) / 1.2, highest * 1.2)
    described = "; ".join(f"{curve_name(curve)}: {_speedups(curve)}" for curve in curves)
    return svg("Speed-up over devices", described, _PLOT.height + 60, _scaling(curves, counts, frame))


def _speedups(curve: Curve) -> str:
    return ", ".join(f"{format_number(point.speedup, 2)} on {point.devices}" for point in curve.points)


def _scaling(curves: Sequence[Curve], counts: Sequence[int], frame: Frame) -> Iterator[str]:
    def position(devices: float, speedup: float) -> tuple[float, float]:
        return _PLOT.x(frame.across(devices)), _PLOT.y(frame.up(speedup))

    yield from _PLOT.grid(
        ((frame.up(count), f"{format_number(count)} x") for count in counts if frame.up(count) <= 1),
        ((frame.across(count), format_number(count)) for count in counts),
    )
    yield label("devices", _PLOT.x(0.5), _PLOT.y(0) + 36, "label", "middle")
    yield polyline([position(count, count) for count in (counts[0], counts[-1])], "ideal")
    for number, curve in enumerate(curves):
        places = [position(point.devices, point.speedup) for point in curve.points]
        yield polyline(places, f"s{number % COLOURS}")
        for (x, y), point in zip(places, curve.points, strict=True):
            text = f"{curve_name(curve)}: {format_number(point.speedup, 2)} on {count_in_words(point.devices)}"
            yield element("circle", text, cx=x, cy=y, r=4, class_=fill(number))


def rank_chart(title: str, counted: Points, law: Points) -> str:
    """Return counts over ranks with the line of a law; both axes logarithmic."""
    frame = rank_frame(counted)
    result = ", ".join(f"rank {format_number(rank)}: {format_number(count)} times" for rank, count in counted)
    return svg(title, result, _PLOT.height + 60, _ranks(counted, law, frame))


def _ranks(counted: Points, law: Points, frame: Frame) -> Iterator[str]:
    yield from _PLOT.grid(
        ((frame.up(count), format_count(count)) for count in _ticks(frame.bottom, frame.top)),
        ((frame.across(rank), format_count(rank)) for rank in _ticks(frame.left, frame.right)),
    )
    yield label("rank", _PLOT.x(0.5), _PLOT.y(0) + 36, "label", "middle")
    places = [(frame.across(rank), frame.up(count)) for rank, count in law]
    yield polyline([(_PLOT.x(across), _PLOT.y(up)) for across, up in places if 0 <= up <= 1], "s1")
    for rank, count in counted:
        x, y = _PLOT.x(frame.across(rank)), _PLOT.y(frame.up(count))
        yield element(
            "circle", f"rank {format_number(rank)}: {format_number(count)} times", cx=x, cy=y, r=3, class_="c0"
        )


@dataclass(frozen=True, slots=True)
class Course:
    """One line over time: its name, and value at each moment in seconds; None where it was not known."""

    label: str
    points: Sequence[tuple[float, float | None]]


def course_chart(title: str, courses: Sequence[Course], unit: str) -> str:
    """Return values over time, both axes from zero; a gap where a value was not known. Empty where nothing moved."""
    values = [value for course in courses for _, value in course.points if value is not None]
    seconds = max((moment for course in courses for moment, _ in course.points), default=0.0)
    if len(values) < 2 or seconds <= 0 or max(values) <= 0:
        return ""
    top = max(values) * 1.1
    described = "; ".join(f"{course.label}: {_range_text(course, unit)}" for course in courses)
    return svg(title, described, _LOW_PLOT.height + 50, _courses(courses, unit, seconds, top))


def _range_text(course: Course, unit: str) -> str:
    known = [value for _, value in course.points if value is not None]
    return f"{format_quantity(min(known), unit)} to {format_quantity(max(known), unit)}" if known else "not known"


def _courses(courses: Sequence[Course], unit: str, seconds: float, top: float) -> Iterator[str]:
    plot = _LOW_PLOT
    yield from plot.grid(
        ((value / top, format_quantity(value, unit)) for value in _even_ticks(top, unit)),
        ((moment / seconds, format_quantity(moment, "s")) for moment in _even_ticks(seconds, "s")),
    )
    for number, course in enumerate(courses):
        for known, piece in groupby(course.points, key=lambda point: point[1] is not None):
            places = [(plot.x(moment / seconds), plot.y((value or 0.0) / top)) for moment, value in piece]
            if known and len(places) > 1:
                yield polyline(places, f"s{number % COLOURS}")


def _even_ticks(top: float, unit: str) -> tuple[float, ...]:
    """Return about five round values from zero on; those of binary bytes are powers of two apart."""
    if unit == "B":
        step = 2.0 ** math.ceil(math.log2(top / 5))
    else:
        power = 10.0 ** math.floor(math.log10(top / 5))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * 5 >= top)
    return tuple(step * number for number in range(int(top / step) + 1))


def _ticks(low: float, high: float) -> Iterator[float]:
    """Yield round values between two bounds: powers of ten, with 2 and 5 times them where those are few."""
    steps = (1.0,) if high / low > _WIDE else (1.0, 2.0, 5.0)
    for power in range(-12, 24):
        yield from (step * 10.0**power for step in steps if low <= step * 10.0**power <= high)


Picture: TypeAlias = Roofline | MemoryTimeline | StepTimeline
PICTURES = {"memory": "Memory", "computation": "Time", "bottleneck": "Roofline"}
"""What there is a picture of, by the group of result keys that it belongs to."""

_ON_THE_ROOFLINE = (Figure.MFU, Figure.MODEL_TFLOPS_PER_DEVICE)
_MARGIN = 1  # Columns the roofline's axis takes beside its plane


def picture_of(key: str, answer: Answer) -> Picture | None:
    """Return the picture behind the figure of a result key, or of a whole group of them; None where there is none."""
    group = "bottleneck" if key in _ON_THE_ROOFLINE else key.partition(".")[0]
    if group == "memory":
        return memory_timeline(answer.estimate)
    if group == "computation":
        return step_timeline(answer.estimate)
    return roofline(answer) if group == "bottleneck" else None


def picture_svg(picture: Picture) -> str:
    if isinstance(picture, Roofline):
        return roofline_chart(picture)
    if isinstance(picture, MemoryTimeline):
        capacity = picture.capacity
        limit = None if capacity is None else Slice("memory", capacity, format_quantity(capacity, "B"))
        phases = [(phase.name, _slices((phase,))) for phase in picture.phases]
        stages = [(stage.name, _slices((stage,))) for stage in picture.stages]
        return stacked_chart("Memory over a step", [*phases, ("at the peak", _slices(picture.parts)), *stages], limit)
    phases = [
        (phase.name, [Slice(one.name, one.seconds, format_quantity(one.seconds, "s")) for one in phase.stretches])
        for phase in picture.phases
    ]
    return stacked_chart("Time of a step", phases)


def picture_file(picture: Picture) -> str:
    """Return a picture as an SVG file of its own; empty where there is nothing to draw."""
    chart = picture_svg(picture)
    return f"{standalone(chart)}\n" if chart else ""


def _slices(amounts: Sequence[Amount]) -> list[Slice]:
    return [Slice(amount.name, amount.size, format_quantity(amount.size, "B")) for amount in amounts]


def picture_lines(picture: Picture, width: int, ascii_only: bool = False) -> tuple[str, ...]:
    if isinstance(picture, Roofline):
        return roofline_lines(picture, max(width - _MARGIN, 2), glyphs=ASCII if ascii_only else UNICODE)
    bars = ASCII_BARS if ascii_only else BLOCKS
    return (
        memory_lines(picture, width, bars) if isinstance(picture, MemoryTimeline) else step_lines(picture, width, bars)
    )
